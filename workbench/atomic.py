"""Files that appear whole or not at all: written beside their place, flushed to the disk, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import WorkbenchError

_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is too large",
}


@contextlib.contextmanager
def replacing(path: Path, error: type[WorkbenchError], what: str) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``; when the block ends well, flush it and rename it to ``path``.

    ``what`` names the content in messages (``the plan``).  If anything fails, the temporary file is removed and
    whatever was at ``path`` stays as it was; an OSError is raised as ``error``, other exceptions pass as they are.
    A symbolic link at ``path`` is followed, and the permissions of a replaced file are kept.
    """
    with _beside(path, error, what) as (target, temporary):
        yield temporary
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(target, temporary)
        _flush(temporary)
        os.replace(temporary, target)
        _flush(target.parent)


@contextlib.contextmanager
def replacing_folder(path: Path, error: type[WorkbenchError], what: str) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; when the block ends well, flush its files and rename it to ``path``.

    A folder at ``path`` is replaced as a whole: the caller has made sure that it may be.  Failures are handled as in
    :func:`replacing`; the old folder is set aside during the swap and put back if the swap fails.
    """
    with _beside(path, error, what) as (target, temporary):
        temporary.mkdir()
        yield temporary
        for entry in sorted(temporary.rglob("*")):
            _flush(entry)
        _swap(temporary, target, temporary.with_suffix(".old"))
        _flush(target.parent)


@contextlib.contextmanager
def _beside(path: Path, error: type[WorkbenchError], what: str) -> Iterator[tuple[Path, Path]]:
    """Yield the real place of ``path`` and a temporary one beside it, which is removed at the end.

    Raises ``error`` where the folder is missing, and for an OSError.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise error(
            f"{what} cannot be written to {path}: there is no folder {target.parent}; create it or choose another"
        )
    temporary = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.part")
    try:
        yield target, temporary
    except OSError as failure:
        raise error(_explain(failure, path, what)) from failure
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def _swap(temporary: Path, target: Path, aside: Path) -> None:
    if not target.exists():
        os.rename(temporary, target)
        return
    os.rename(target, aside)
    try:
        os.rename(temporary, target)
    except OSError:
        os.rename(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _flush(path: Path) -> None:
    """Have the system write a file's bytes, or a folder's names, to the disk."""
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explain(failure: OSError, path: Path, what: str) -> str:
    reason = _FULL.get(failure.errno or 0) or failure.strerror or str(failure)
    free = ""
    if failure.errno == errno.ENOSPC:
        with contextlib.suppress(OSError):
            free = f" ({shutil.disk_usage(Path(os.path.realpath(path)).parent).free / 1e6:.1f} MB are free)"
    return (
        f"{what} could not be written to {path}: {reason}{free}; what was there before is untouched. "
        "Make room or choose another place, and try again"
    )
