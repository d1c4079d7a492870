"""Which variant of a kernel is the fastest for a shape on a device: measured once, kept in a file for each device."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..build.source import CudaSource, cache_folder
from ..errors import BackendUnavailable

FORMAT = "kernel tuning"
VERSION = 1
Seconds = Callable[[str], float]
"""Times the variant of a name; raises BackendUnavailable for one that the device cannot run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The fastest variant, and the microseconds of all that ran."""

    variant: str
    microseconds: dict[str, float]


def source_mark(source: CudaSource) -> str:
    """Return a mark that changes with the kernels, so that a changed kernel is measured again."""
    return hashlib.sha256(source.text.encode()).hexdigest()[:12]


def file_for(device: str) -> Path:
    """Return where a device's choices are kept."""
    return cache_folder().parent / "tuning" / f"{re.sub(r'[^a-z0-9]+', '-', device.lower()).strip('-')}.json"


def read(path: Path) -> dict[str, Tuned]:
    """Return the choices of a file; none from a file that is missing, broken or of another version."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["format"] != FORMAT or stored["version"] != VERSION:
            return {}
        return {
            key: Tuned(variant=str(entry["variant"]), microseconds={k: float(v) for k, v in entry["us"].items()})
            for key, entry in stored["choices"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write(path: Path, choices: dict[str, Tuned]) -> None:
    """Write all at once; a folder that cannot be written costs another measurement, no more."""
    entries = {key: {"variant": tuned.variant, "us": tuned.microseconds} for key, tuned in sorted(choices.items())}
    stored = {"format": FORMAT, "version": VERSION, "choices": entries}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(stored, file, indent=1)
        os.replace(file.name, path)
    except OSError:
        return


def tuned(path: Path, key: str, variants: Sequence[str], seconds: Seconds) -> Tuned:
    """Return the choice for ``key``, measuring the variants if the file does not know all of them yet.

    ``key`` names source, shape and whatever else changes the answer.  Raises BackendUnavailable if none runs.
    """
    known = read(path)
    if key in known and set(known[key].microseconds) >= set(variants):
        return known[key]
    times: dict[str, float] = {}
    reasons: list[str] = []
    for variant in variants:
        try:
            times[variant] = seconds(variant) * 1e6
        except BackendUnavailable as error:
            reasons.append(f"{variant}: {error}")
    if not times:
        raise BackendUnavailable(f"no variant of {key} runs: {'; '.join(reasons)}")
    tuned = Tuned(variant=min(times, key=lambda name: times[name]), microseconds=times)
    write(path, read(path) | {key: tuned})
    return tuned
