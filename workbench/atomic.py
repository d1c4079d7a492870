"""Files that appear whole or not at all: written beside their place, flushed to the disk, then renamed."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import platform
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from workbench.content_kind import content_kind, require_replaceable
from workbench.errors import WorkbenchError
from workbench.plain_file import kind_of

_HERE = f"{zlib.crc32(platform.node().encode()):08x}"
"""This machine in the names of temporary files: processes of others cannot be seen."""

_TEMPORARY = re.compile(rf"\..+\.{_HERE}-(\d+)-([0-9a-f]{{8}})\.(?:part|old)", re.DOTALL)

_DATA = re.compile(r"[^/]+\.[0-9a-f]{8}\.data", re.DOTALL)
"""The name of a file of data beside another one."""

FORMER = ".former"
"""Where it is listed which data go once the file is replaced that names them."""

CLOCKS = 60.0
"""Seconds by which the clock of a file system may lie behind that of the processes."""

_underway: set[Path] = set()
"""What this process is writing at the moment."""

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
    A symbolic link at ``path`` is followed, a read-only file and one of other contents (a model's weights, for a
    session) are refused, and the temporary file has the permissions of the one that it replaces from its first byte on.
    """
    with _beside(path, error, what) as (target, temporary):
        mode = _mode(target, path, error, what)
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode | 0o200))
        yield temporary
        if mode is not None:
            os.chmod(temporary, mode)
        require_replaceable(path, content_kind(temporary), error, what)
        _flush(temporary)
        os.replace(temporary, target)
        _flush_names(target.parent)


def require_writable(path: Path, error: type[WorkbenchError], what: str, kind: str) -> None:
    """Raise ``error`` where no file of ``kind`` can be written to ``path``: before the work of hours that gives it.

    What changes meanwhile, such as a disk that fills, is noticed when it is written.
    """
    target = _target(path, error, what)
    try:
        is_folder = stat.S_ISDIR(os.lstat(target).st_mode)
    except FileNotFoundError:
        is_folder = False
    except OSError as failure:
        raise error(f"{what} cannot be written to {path}: {failure.strerror}; choose another name") from None
    if is_folder:
        raise error(f"{what} cannot be written to {path}: it is a folder; give the name of a file")
    _mode(target, path, error, what)
    require_replaceable(path, kind, error, what)
    if not os.access(target.parent, os.W_OK):
        raise error(f"{what} cannot be written to {path}: the folder is read-only; choose another or allow it")


def _mode(target: Path, path: Path, error: type[WorkbenchError], what: str) -> int | None:
    """Return the permissions of the file that is replaced, None where there is none; ``error`` for a read-only one."""
    mode = target.stat().st_mode & 0o777 if target.is_file() else None
    if mode is not None and not mode & 0o222:
        raise error(f"{what} cannot be written to {path}: the file is read-only; choose another name or allow it")
    return mode


@contextlib.contextmanager
def replacing_folder(path: Path, error: type[WorkbenchError], what: str) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; when the block ends well, flush its files and rename it to ``path``.

    A folder at ``path`` is replaced as a whole: the caller has made sure that it may be.  Failures are handled as in
    :func:`replacing`.  Where the system can exchange two names in one step (Linux), there is a whole folder at ``path``
    at every moment; elsewhere the old one is set aside during the swap and put back if the swap fails.
    """
    with _beside(path, error, what) as (target, temporary):
        temporary.mkdir()
        yield temporary
        for entry in sorted(temporary.rglob("*")):
            _flush(entry)
        _swap(temporary, target, temporary.with_suffix(".old"))
        _flush_names(target.parent)


@contextlib.contextmanager
def replacing_with_data(path: Path, error: type[WorkbenchError], what: str) -> Iterator[tuple[Path, Path]]:
    """Yield temporary places for a file and for one of data beside it, both with the names that they are going to have.

    The file may so say where its data, if any, are; no other file's have that name, so that an earlier file keeps its
    own.  Both are put beside the file that a link at ``path`` leads to.  Otherwise as :func:`replacing`: data that were
    put in their place before the file was are removed with it, and those that the file at ``path`` names once it is
    replaced; also by the next who writes there if this process is killed.
    """
    with replacing(path, error, what) as temporary:
        target, folder = Path(os.path.realpath(path)), temporary.with_suffix(".old")
        folder.mkdir(mode=0o700)
        data = folder / f"{target.name}.{_mark(temporary)}.data"
        yield folder / target.name, data
        if data.exists():
            shutil.copymode(temporary, data)
            _flush(data)
            os.replace(data, target.with_name(data.name))
        (folder / FORMER).write_bytes(b"\0".join(os.fsencode(each.name) for each in _data_of(target)))
        _flush(folder)
        os.replace(folder / target.name, temporary)


@contextlib.contextmanager
def temporary_folder(parent: Path, error: type[WorkbenchError], what: str) -> Iterator[Path]:
    """Yield a new folder in ``parent``, removed afterwards: with the next one there, if this process is killed."""
    try:
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as failure:
        raise error(_explain(failure, parent, what)) from failure
    with _beside(parent / "temporary", error, what) as (_, folder):
        folder.mkdir(mode=0o700)
        yield folder


@contextlib.contextmanager
def _beside(path: Path, error: type[WorkbenchError], what: str) -> Iterator[tuple[Path, Path]]:
    """Yield the real place of ``path`` and a temporary one beside it, which is removed at the end.

    Raises ``error`` where the folder is missing, and for an OSError.
    """
    target = _target(path, error, what)
    _remove_left_over(target.parent)
    temporary = target.with_name(f".{shortened(target.name)}.{_HERE}-{os.getpid()}-{secrets.token_hex(4)}.part")
    _underway.add(temporary)
    try:
        yield target, temporary
    except OSError as failure:
        raise error(_explain(failure, path, what)) from failure
    finally:
        _remove(temporary)
        _underway.discard(temporary)


def shortened(name: str, most: int = 80) -> str:
    """Return the first ``most`` bytes of a file's name, of which systems take 255, to name another file beside it."""
    return os.fsencode(name)[:most].decode(errors="ignore")


def _target(path: Path, error: type[WorkbenchError], what: str) -> Path:
    """Return the real place of ``path``; ``error`` where the folder is missing, or a device or a pipe is there."""
    target = Path(os.path.realpath(path))
    if not os.path.isdir(target.parent):
        raise error(
            f"{what} cannot be written to {path}: there is no folder {target.parent}; create it or choose another"
        )
    if (kind := kind_of(target)) is not None:
        raise error(f"{what} cannot be written to {path}: it is {kind}, which a file would replace; choose a file")
    return target


def abandon() -> None:
    """Remove what is being written: this process is about to end."""
    for temporary in tuple(_underway):
        with contextlib.suppress(OSError):
            _remove(temporary)


def _mark(temporary: Path) -> str:
    """Return what a temporary name has in common with those of its data."""
    match = _TEMPORARY.fullmatch(temporary.name)
    assert match is not None
    return match[2]


def _data_of(file: Path) -> list[Path]:
    """Return the data beside a file that it names; others may be those of an export underway, or of a renamed file."""
    places = [each for each in file.parent.glob(f"{glob.escape(file.name)}.*.data") if _DATA.fullmatch(each.name)]
    named = file.read_bytes() if places and file.is_file() else b""
    return [place for place in places if os.fsencode(place.name) in named]


def _remove_former(folder: Path) -> None:
    """Remove the data of a file that was replaced, which ``folder`` lists; of one that was not, the list, before the
    temporary file goes that says so."""
    former = folder / FORMER
    if not former.is_file():
        return
    if folder.with_suffix(".part").exists():
        former.unlink()
        return
    for name in map(os.fsdecode, former.read_bytes().split(b"\0")):
        if _DATA.fullmatch(name):
            (folder.parent / name).unlink(missing_ok=True)


def _remove(temporary: Path) -> None:
    """Remove a temporary file or folder; with a file that did not get its place, the data beside it."""
    with contextlib.suppress(OSError):
        _remove_former(temporary.with_suffix(".old"))
    if temporary.is_dir() and not temporary.is_symlink():
        shutil.rmtree(temporary, ignore_errors=True)
        return
    with contextlib.suppress(OSError):  # a file system that is read-only says so of what is not there, too
        if temporary.exists():
            for data in temporary.parent.glob(f"*.{_mark(temporary)}.data"):
                data.unlink()
        temporary.unlink(missing_ok=True)
    if temporary.suffix == ".part":
        shutil.rmtree(temporary.with_suffix(".old"), ignore_errors=True)


def _remove_left_over(folder: Path) -> None:
    """Remove what killed processes of this user and machine left; what others put there might name this one's data."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            with contextlib.suppress(FileNotFoundError):  # removed with another one
                own = match and (os.name == "nt" or entry.stat(follow_symlinks=False).st_uid == os.geteuid())
                if match and own and not _lives(int(match[1]), entry):
                    _remove(Path(entry.path))


def _lives(number: int, entry: os.DirEntry[str]) -> bool:
    """Return whether the process that made ``entry`` is there; one that began later has the number of a former one."""
    import psutil

    try:
        began: float = psutil.Process(number).create_time()
        status = entry.stat(follow_symlinks=False)  # what is renamed or copied has the older time of its contents
        return began <= max(status.st_mtime, status.st_ctime) + CLOCKS
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange two names in one step; False where the system or the file system cannot."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        return bool(rename(-100, os.fsencode(first), -100, os.fsencode(second), 2) == 0)  # AT_FDCWD, RENAME_EXCHANGE
    return False


def _swap(temporary: Path, target: Path, aside: Path) -> None:
    if not target.exists():
        os.rename(temporary, target)
        return
    if _exchanged(temporary, target):  # the old folder has the temporary name now, and is removed with it
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


def _flush_names(folder: Path) -> None:
    """Flush a folder as far as its file system can: the new file is in its place already."""
    with contextlib.suppress(OSError):
        _flush(folder)


def _explain(failure: OSError, path: Path, what: str) -> str:
    short = failure.errno is None and re.fullmatch(r"\d+ requested and \d+ written", str(failure))  # numpy: no reason
    known = "the disk is full, or the file larger than allowed" if short else _FULL.get(failure.errno or 0)
    reason = known or failure.strerror or str(failure)
    free = ""
    if short or failure.errno == errno.ENOSPC:
        with contextlib.suppress(OSError):
            free = f" ({shutil.disk_usage(Path(os.path.realpath(path)).parent).free / 1e6:.1f} MB are free)"
    way_out = "Make room or choose another place" if known else "Choose another place, or correct that"
    untouched = "what was there before is untouched"
    return f"{what} could not be written to {path}: {reason}{free}; {untouched}. {way_out}, and try again"
