"""Which file, or which half of it, a split of a data set is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from workbench.errors import DataError, nearest

CALIBRATION, EVALUATION, ALL = "calibration", "evaluation", "all"
SPLITS = (CALIBRATION, EVALUATION, ALL)
TEXT = (".txt", ".md", ".text", ".rst")
ARRAYS = (".npy", ".npz", ".pt", ".pth", ".safetensors")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
BUNDLED = {"language-model": "text", "digits-classifier": "digits-classifier"}
EXPECTED = (
    "a text file, a .npy/.npz/.pt/.safetensors file of arrays, a folder of images in class folders, or a folder with "
    "calibration.* and evaluation.*"
)
HALVING_SEED = 20240229
"""Which half a sample belongs to never depends on the seed that samples are drawn with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """``half``: 0 the calibration half of ``file``, 1 the evaluation half, None all of it.  ``kind``: ``text``,
    ``arrays`` or ``images``; ``given`` is what a session records."""

    file: Path
    kind: str
    half: int | None
    split: str
    name: str
    given: str


def locate(path: str | Path, split: str) -> Part:
    """Return the part of ``path`` that is ``split``; raises DataError saying what was expected."""
    if split not in SPLITS:
        raise DataError(f"there is no split {split!r}{nearest(split, SPLITS)}; expected {', '.join(SPLITS)}")
    text = str(path)
    if text.startswith("demo:"):
        return _in_pair(_bundled(text.removeprefix("demo:")), split, text, text)
    source = Path(os.path.abspath(Path(path).expanduser()))
    if not source.exists():
        raise DataError(f"the data {source} does not exist; expected {EXPECTED}")
    if source.is_dir():
        return _in_folder(source, split)
    return _in_file(source, split)


def _bundled(name: str) -> Path:
    folder = Path(str(files("workbench_resources"))) / "demo" / BUNDLED.get(name, name)
    if name not in BUNDLED or not folder.is_dir():
        raise DataError(f"there is no bundled data {name!r}{nearest(name, BUNDLED)}; bundled are {', '.join(BUNDLED)}")
    return folder


def _in_folder(folder: Path, split: str) -> Part:
    if _named(folder, CALIBRATION) or _named(folder, EVALUATION):
        return _in_pair(folder, split, folder.name, str(folder))
    return Part(file=folder, kind="images", half=_half(split), split=split, name=folder.name, given=str(folder))


def _in_pair(folder: Path, split: str, name: str, given: str) -> Part:
    if split == ALL:
        raise DataError(f"{name} holds a calibration and an evaluation part; ask for one of them")
    file = _named(folder, split)
    if file is None:
        raise DataError(f"{folder} holds no {split} data; expected {split}.txt, {split}.npz or the like in it")
    return Part(file=file, kind=_kind(file), half=None, split=split, name=name, given=given)


def _in_file(file: Path, split: str) -> Part:
    kind, other = _kind(file), EVALUATION if split == CALIBRATION else CALIBRATION
    if split == ALL or file.stem.startswith(split):
        return Part(file=file, kind=kind, half=None, split=split, name=file.name, given=str(file))
    if file.stem.startswith(other):
        partner = file.with_name(split + file.name.removeprefix(other))
        if not partner.is_file():
            raise DataError(f"{file} is {other} data and there is no {partner.name} beside it; name the {split} data")
        return Part(file=partner, kind=kind, half=None, split=split, name=partner.name, given=str(partner))
    return Part(file=file, kind=kind, half=_half(split), split=split, name=file.name, given=str(file))


def _half(split: str) -> int | None:
    return {CALIBRATION: 0, EVALUATION: 1}.get(split)


def _named(folder: Path, split: str) -> Path | None:
    """Return the file or folder of ``folder`` that is named after a split."""
    entries = sorted(entry for entry in folder.iterdir() if entry.stem.split("_")[0] == split)
    entries = [entry for entry in entries if entry.is_dir() or entry.suffix.lower() in (*TEXT, *ARRAYS)]
    return entries[0] if entries else None


def _kind(file: Path) -> str:
    suffix = file.suffix.lower()
    if file.is_dir():
        return "images"
    if suffix in ARRAYS:
        return "arrays"
    if suffix in TEXT:
        return "text"
    if suffix in PICTURES:
        raise DataError(f"{file} is a single image; give the folder of images")
    raise DataError(f"{file} is data of an unknown kind ({suffix or 'no suffix'}); expected {EXPECTED}")


def half_of(count: int, half: int | None) -> np.ndarray:
    """Return the indices of the samples in one half of ``count`` (ascending, int64); all of them for None.

    The halves are disjoint, cover everything and mix the order of the file; with one sample the second is empty.
    """
    if half is None:
        return np.arange(count)
    order = np.random.default_rng(HALVING_SEED).permutation(count)
    middle = (count + 1) // 2
    return np.sort(order[:middle] if half == 0 else order[middle:])
