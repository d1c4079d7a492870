"""Which file, or which half of it, a split of a data set is, and the samples that a reader finds there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import DataError, nearest
from workbench.models.data.table_paths import ANY, SUFFIXES, shards_of, suffix_of, tables_of
from workbench.plain_file import kind_of
from workbench.readable import few

if TYPE_CHECKING:
    import torch

    from workbench.models.data.text import Transcriber

Prepare = Callable[["torch.Tensor"], "torch.Tensor"] | None
"""From a batch of samples as stored to what the model takes; None where they are the same."""

CALIBRATION, EVALUATION, ALL = "calibration", "evaluation", "all"
SPLITS = (CALIBRATION, EVALUATION, ALL)
TEXT = (".txt", ".md", ".text", ".rst")
ARRAYS = (".npy", ".npz", ".pt", ".pth", ".safetensors")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
BUNDLED = {"language-model": "text", "digits-classifier": "digits-classifier", "python-documentation": "text"}
"""Folders of the bundled data by their names: a bundled model's own, and English text for other language models."""
BUNDLED_TEXT = "demo:python-documentation"

SOUNDS = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif", ".opus")
PACKED = (".gz", ".zst", ".bz2", ".xz", ".lz4", ".zip", ".tar", ".tgz", ".7z")
EXPECTED = (
    "a text file, a table (.jsonl, .json, .csv, .parquet, .arrow, .feather), a .npy/.npz/.pt/.safetensors file of "
    "arrays, a folder of texts, of sounds or of images in class folders, or a folder with calibration.* and "
    "evaluation.*"
)
DESCRIBED = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
"""Tables of a folder's files, as ``datasets`` knows them: a column ``file_name``, and labels or transcripts."""
ABOUT = ("readme", "license", "licence")
"""Files that tell of data, and are none."""

HALVING_SEED = 20240229
"""Which half a sample belongs to never depends on the seed that samples are drawn with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """``half``: 0 the calibration half of ``file``, 1 the evaluation half, None all of it.  ``kind``: ``text``,
    ``texts``, ``table``, ``arrays``, ``images`` or ``sounds``; ``recorded`` is the path that a session records."""

    file: Path
    kind: str
    half: int | None
    split: str
    name: str
    recorded: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stored:
    """``count`` samples: ``load(indices)`` gives some, ``prepare`` makes a batch of them what the model takes.

    ``halved``: the stream was cut to the part's half before it was cut into samples.  ``paired``: two rows of the
    tensors that follow each other belong together.  ``text`` turns ids of transcripts into text.  ``groups`` is
    the number of each sample's recording, whose frames no split parts.  ``notes`` may grow while samples load.
    ``by_rows``: a sample is a row, however long a window is.  ``usual``: so many are drawn at most where nobody says
    how many.
    """

    count: int
    load: Callable[[np.ndarray], Mapping[str, torch.Tensor]]
    prepare: Prepare = None
    halved: bool = False
    notes: Sequence[str] = ()
    paired: bool = False
    text: Transcriber | None = None
    groups: np.ndarray | None = None
    by_rows: bool = False
    usual: int | None = None


def locate(path: str | Path, split: str) -> Part:
    """Return the part of ``path`` that is ``split``; raises DataError saying what was expected."""
    if split not in SPLITS:
        raise DataError(f"there is no split {split!r}{nearest(split, SPLITS)}; expected {', '.join(SPLITS)}")
    text, half = str(path), {CALIBRATION: 0, EVALUATION: 1}.get(split)
    bundled = text.startswith("demo:")
    source = _bundled(text.removeprefix("demo:")) if bundled else Path(os.path.abspath(os.path.expanduser(path)))
    if not source.exists() and not shards_of(source):
        raise DataError(f"the data {source} does not exist; expected {EXPECTED}")
    if (kind := kind_of(source)) is not None:
        raise DataError(f"the data {source} is {kind}, not a regular file or a folder; copy what it gives into a file")
    if source.is_dir() and (named_after(source, CALIBRATION) or named_after(source, EVALUATION)):
        name, recorded = (text, text) if bundled else (source.name, str(source))
        file, half = _in_pair(source, split, name), None
    else:
        source = _table_in(source) if source.is_dir() else source
        file, half = (source, half) if source.is_dir() else _in_file(source, split, half)
        name, recorded = file.name, str(file)
    return Part(file=file, kind=_kind(file), half=half, split=split, name=name, recorded=recorded)


def _bundled(name: str) -> Path:
    folder = Path(str(files("workbench_resources"))) / "demo" / BUNDLED.get(name, name)
    if name not in BUNDLED or not folder.is_dir():
        raise DataError(f"there is no bundled data {name!r}{nearest(name, BUNDLED)}; bundled are {', '.join(BUNDLED)}")
    return folder


def _in_pair(folder: Path, split: str, name: str) -> Path:
    if split == ALL:
        raise DataError(f"{name} holds a calibration and an evaluation part; ask for one of them")
    file = named_after(folder, split)
    if file is None:
        raise DataError(f"{folder} holds no {split} data; expected {split}.txt, {split}.npz or the like in it")
    return file


def _in_file(file: Path, split: str, half: int | None) -> tuple[Path, int | None]:
    other = EVALUATION if split == CALIBRATION else CALIBRATION
    if split == ALL or file.stem.startswith(split):
        return file, None
    if not file.stem.startswith(other):
        return file, half
    partner = file.with_name(split + file.name.removeprefix(other))
    if not partner.is_file():
        raise DataError(f"{file} is {other} data and there is no {partner.name} beside it; name the {split} data")
    return partner, None


def named_after(folder: Path, split: str) -> Path | None:
    """Return the file or folder of ``folder`` that is named after a split."""
    entries = sorted(entry for entry in folder.iterdir() if entry.stem.split("_")[0] == split)
    suffixes = (*TEXT, *ARRAYS, *SUFFIXES)
    return next((entry for entry in entries if entry.is_dir() or suffix_of(entry) in suffixes), None)


def _kind(file: Path) -> str:
    suffix = file.suffix.lower()
    if file.is_dir():
        return _kind_of_folder(file)
    if suffix_of(file) in SUFFIXES or not file.exists():  # the shards of one
        return "table"
    if suffix in SOUNDS:
        return "sounds"
    if suffix in ARRAYS:
        return "arrays"
    if suffix in TEXT:
        return "text"
    if suffix in PICTURES:
        raise DataError(f"{file} is a single image; give the folder of images")
    if suffix in PACKED:
        raise DataError(f"{file} is packed ({suffix}); unpack it, and give the file or folder that it holds")
    raise DataError(f"{file} is data of an unknown kind ({suffix or 'no suffix'}); expected {EXPECTED}")


def _kind_of_folder(folder: Path) -> str:
    """Recognize what a folder holds by most files in it and in the folders in it: a list of classes is no text."""
    entries = [folder, *(entry for entry in folder.iterdir() if entry.is_dir())]
    counts = Counter(entry.suffix.lower() for inner in entries for entry in inner.iterdir())
    kinds = {"images": PICTURES, "sounds": SOUNDS, "texts": TEXT}
    return max(kinds, key=lambda kind: sum(counts[suffix] for suffix in kinds[kind]))


def _table_in(folder: Path) -> Path:
    """Return the one table of a data set's folder, as ``datasets`` saves it or the Hub has it, or which describes its
    images or sounds; else the folder itself.

    Raises DataError where there are several.
    """
    described = next((folder / name for name in DESCRIBED if (folder / name).is_file()), None)
    if described is not None:
        return described
    inner = (folder, *sorted(entry for entry in folder.iterdir() if entry.is_dir()))
    entries = [entry for each in inner for entry in sorted(each.iterdir()) if entry.stem.lower() not in ABOUT]
    if any(entry.suffix.lower() in (*SOUNDS, *TEXT, *PICTURES) for entry in entries):
        return folder
    found = [entry for entry in entries if suffix_of(entry) in SUFFIXES]
    tables = [table for table in tables_of(found) if table.suffix.lower() != ".json" or ANY in table.name]
    if len(tables) > 1:
        beside = Counter(table.parent for table in tables)
        own = [each if each.parent == folder or beside[each.parent] > 1 else each.parent for each in tables]
        names = few([str(each.relative_to(folder)) for each in own])
        usual = next((each for each in own if "train" in each.name), own[0])
        raise DataError(f"{folder} holds {len(tables)} tables ({names}); give one of them, as {usual}")
    if tables and len(shards := shards_of(tables[0])) == 1:
        return shards[0]
    return tables[0] if tables else folder


def in_class_folders(folder: Path, suffixes: Sequence[str]) -> tuple[list[Path], list[str] | None]:
    """Return the files of a folder in the order of their paths, with the names of their class folders or None."""
    own = sorted(folder.iterdir())
    classes = [entry for entry in own if entry.is_dir() and not entry.name.startswith(".")]
    found = [file for each in classes for file in sorted(each.iterdir()) if file.suffix.lower() in suffixes]
    if found:
        return found, [file.parent.name for file in found]
    return [file for file in own if file.suffix.lower() in suffixes], None


def half_of(count: int, half: int | None, groups: np.ndarray | None = None) -> np.ndarray:
    """Return the indices of the samples in one half of ``count`` (ascending, int64); all of them for None.

    The halves are disjoint, cover everything and mix the order of the file; with one sample the second is empty.
    Samples of one of the ``groups`` (numbers ``[count]``, ascending) stay together; one group is cut in the middle.
    """
    if half is None:
        return np.arange(count)
    if groups is not None:
        names = np.unique(groups)
        if len(names) > 1:
            return np.flatnonzero(np.isin(groups, names[half_of(len(names), half)]))
        return np.arange(count)[: (count + 1) // 2] if half == 0 else np.arange(count)[(count + 1) // 2 :]
    order = np.random.default_rng(HALVING_SEED).permutation(count)
    middle = (count + 1) // 2
    return np.sort(order[:middle] if half == 0 else order[middle:])
