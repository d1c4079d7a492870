"""What a report of a problem holds: versions, the last jobs and messages, the newest log files; to be read first."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from workbench import log
from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.private import without_names
from workbench.version import versions

LOGS, LONGEST = 6, 200_000
"""How many of the newest log files, and characters from the end of each."""


def problem_report(lines: Sequence[str], names: Sequence[str] = (), *, with_names: bool = False) -> dict[str, str]:
    """Return the parts of a report, by file name: ``lines`` of the caller, the versions, the logs.

    Unless ``with_names``, files and folders are not named, nor anything in ``names``.
    """
    parts = {"report.txt": "\n".join([*versions(), "", *lines, ""])}
    try:
        files = sorted(log.folder().glob("*.log*"), key=lambda file: file.stat().st_mtime, reverse=True)[:LOGS]
    except OSError:
        files = []
    for file in files:
        try:
            parts[f"log/{file.name}"] = file.read_text(encoding="utf-8", errors="replace")[-LONGEST:]
        except OSError:
            continue
    return parts if with_names else {name: without_names(text, *names) for name, text in parts.items()}


def write_report(parts: Mapping[str, str], path: Path) -> None:
    """Write the parts as one archive, whole or not at all; raises ExportError."""
    with replacing(path, ExportError, "the report") as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text, zipfile.ZIP_DEFLATED)
