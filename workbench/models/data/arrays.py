"""Arrays of inputs and labels, or of token windows, from ``.npy``, ``.npz``, ``.pt`` and ``.safetensors`` files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.errors import DataError, NotAModelError, UnsafeModelError, WorkbenchError
from workbench.models.data import batches
from workbench.models.data.files import Prepare, Stored
from workbench.models.data.inputs import InputSpec
from workbench.models.data.pictures.images import preparation
from workbench.models.data.text import windows
from workbench.models.readers.npz_file import read_npz
from workbench.models.readers.torch_file import UnsupportedTensor
from workbench.plain_file import opened, require_room
from workbench.readable import few

INPUTS = ("input_ids", "tokens", "pixel_values", "input_values", "input_features", "images", "inputs", "x", "data")
MASKS = ("attention_mask", "mask")
LABELS = ("labels", "y", "targets", "label")
KINDS = {"U": "texts", "S": "bytes", "c": "complex numbers"}
UNSIGNED = {np.dtype(np.uint16): np.int32, np.dtype(np.uint32): np.int64, np.dtype(np.uint64): np.int64}
SHARES = (
    "{}: labels are rows of {} shares that sum to 1, and no number of a class: without labels that are, such as the "
    "place of the largest share, no accuracy is measured"
)


def read_arrays(
    file: Path, spec: InputSpec, requested: int | None, length: int, half: int | None, stride: int | None = None
) -> Stored:
    """Read a file of arrays.

    Integer matrices are token windows for a model that takes tokens: as they are, or cut to ``asked`` tokens.  Integer
    vectors are token streams, cut into windows of ``length``.  An attention mask beside windows says which tokens are
    real.  Everything else is inputs, with labels if there are any.  Raises DataError.
    """
    arrays = _load(file)
    named = named_inputs(arrays, spec, file)
    if named is not None:
        return named
    key, inputs, labels = _pick(arrays, file, spec.main)
    if spec.tokens is True or (spec.tokens is None and not inputs.is_floating_point() and inputs.ndim < 3):
        cut = _token_windows(inputs, file, spec, requested, length, half, stride)
        masks, notes = _mask(arrays, inputs, cut["input_ids"], file)
        tensors, prepare = {**cut, **masks}, None
        labels = None if inputs.ndim == 1 else labels
    else:
        as_stored = spec.preprocess is not None or inputs.dtype == torch.uint8
        notes = ()
        tensors, prepare = {"inputs": inputs if as_stored else inputs.to(torch.float32)}, _prepare(inputs, spec)
    count = len(next(iter(tensors.values())))
    labels, more = _by_number(labels, tensors, file)
    if labels is not None:
        if len(labels) != count:
            raise DataError(f"{file} holds {count} samples but {len(labels)} labels; each sample needs one")
        alike = "input_ids" in tensors and labels.shape == inputs.shape
        tensors["labels"] = _labels(labels[:, : tensors["input_ids"].shape[1]] if alike else labels)
    masked = {*MASKS} if "attention_mask" in tensors else set()
    notes = (*notes, *more, *_of_binary_masks(labels, file), *_left_out(arrays, {key, *masked, *LABELS}, file))
    halved = "input_ids" in tensors and inputs.ndim == 1
    return Stored(count=count, load=lambda rows: rows_of(tensors, rows), prepare=prepare, halved=halved, notes=notes)


def named_inputs(arrays: Mapping[str, torch.Tensor], spec: InputSpec, file: Path) -> Stored | None:
    """Return the samples of arrays that ``forward`` takes by name, where it takes more than one, with labels.

    None where the main input, its mask and labels are all there is.  An encoder-decoder's decoder gets a mask: of the
    labels that are not negative where none came.  Raises DataError for an input that is missing or of other samples.
    """
    usual = {spec.main, *INPUTS, *MASKS, *LABELS}
    own = {name: tensor for name, tensor in arrays.items() if name in spec.takes}
    masked = spec.tokens is False and own.keys() & {*MASKS}  # of sounds, say; token windows have a reader of their own
    if not (own.keys() - usual or masked or len(spec.requires) > 1 or "choices" in spec.shape_of("input_ids")):
        return None
    first = next((arrays[name] for name in INPUTS if name in arrays and name not in own), None)
    if spec.main and spec.main not in own and first is not None:
        own[spec.main] = first
    missing = spec.missing({*own, *arrays.keys() & {"labels"}})
    if missing:
        lacking = few((f"{name} ({spec.shape_of(name)})" for name in missing), 8)
        or_labels = ", or labels in place of the decoder's ids" if "decoder_input_ids" in missing else ""
        raise DataError(f"{file} holds {few(arrays, 8)}; the model also needs {lacking}{or_labels}")
    labels = next((arrays[name] for name in LABELS if name in arrays), None)
    tensors = {name: _as_taken(name, tensor, file) for name, tensor in own.items() if name != "labels"}
    labels, more = _by_number(labels, tensors, file)
    read = {*own, *(LABELS if labels is not None else ()), *(INPUTS if first is not None else ())}
    notes = (*more, *_of_binary_masks(labels, file), *_left_out(arrays, read, file))
    if labels is not None:
        tensors["labels"] = _labels(labels)
    counts = {name: len(tensor) if tensor.ndim else 0 for name, tensor in tensors.items()}
    if len(set(counts.values())) != 1 or not min(counts.values()):
        listed = few((f"{name} {count}" for name, count in counts.items()), 8)
        raise DataError(f"{file}: every array needs one row for each sample, their rows are {listed}")
    if spec.main in tensors and spec.main != "input_ids":
        tensors["input_ids" if spec.tokens else "inputs"] = tensors.pop(spec.main)
    for mask in sorted(tensors.keys() & {*batches.MASKS, *batches.PIXELS}):
        tensors[mask], more = read_mask(tensors[mask], file, mask.replace("_", " "))
        notes += more
    if spec.has_decoder:
        tensors = _with_decoder(tensors, file)
    return Stored(count=min(counts.values()), load=lambda rows: rows_of(tensors, rows), notes=notes)


def _left_out(arrays: Mapping[str, torch.Tensor], read: Collection[str], file: Path) -> tuple[str, ...]:
    """Return a note that names arrays which are not ``read``, one for all."""
    names = [name for name in arrays if name.lower() not in read and name not in read]
    are = "is" if len(names) == 1 else "are"
    return (f"{file.name}: {few(names, 8)} {are} left out, as the model takes no such array",) if names else ()


def _of_binary_masks(labels: torch.Tensor | None, file: Path) -> tuple[str, ...]:
    """Return a note where the labels of pixels are those of a picture in black and white."""
    if labels is None or labels.ndim < 3 or not (labels == 255).any() or ((labels != 0) & (labels != 255)).any():
        return ()
    return (f"{file.name}: labels are 0 and 255 alone, and 255 counts for nothing; where it is a class, store it as 1",)


def _with_decoder(tensors: dict[str, torch.Tensor], file: Path) -> dict[str, torch.Tensor]:
    """Return an encoder-decoder's tensors with the decoder's mask; raises DataError where its ends do not agree."""
    target, labels = tensors.get("decoder_input_ids"), tensors.get("labels")
    if target is not None and labels is not None and labels.ndim == 2 and labels.shape != target.shape:
        raise DataError(
            f"{file}: decoder_input_ids are {tuple(target.shape)} and labels {tuple(labels.shape)}; give a label for "
            "each of the decoder's tokens"
        )
    tensors = with_decoder_mask(tensors)
    read_mask(tensors["decoder_attention_mask"], file, "decoder's mask (where labels are not negative)")
    return tensors


def with_decoder_mask(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return an encoder-decoder's tensors with the decoder's mask, one decoder token longer where that tells the masks
    of both ends apart."""
    names = [name for name in ("decoder_input_ids", "labels") if name in tensors and tensors[name].ndim == 2]
    target = tensors[names[-1]]
    mask = tensors.get("decoder_attention_mask", (target >= 0).to(torch.int64))
    tensors = {**tensors, "decoder_attention_mask": mask}
    if "attention_mask" in tensors and tensors["attention_mask"].shape == mask.shape:
        for name, filler in (("decoder_input_ids", 0), ("labels", -100), ("decoder_attention_mask", 0)):
            if name in tensors and tensors[name].ndim == 2:
                tensors[name] = torch.nn.functional.pad(tensors[name], (0, 1), value=filler)
    return tensors


def _by_number(
    labels: torch.Tensor | None, inputs: Mapping[str, torch.Tensor], file: Path
) -> tuple[torch.Tensor | None, tuple[str, ...]]:
    """Return the numbers of the classes of rows that have a single 1 and else 0, with a note; other labels as given.

    So are those of tokens, which have the shape of one of ``inputs``, and shares of classes, which a note names.
    """
    if labels is None or labels.ndim != 2 or not labels.numel() or labels.shape[1] < 2:
        return labels, ()
    if any(labels.shape == each.shape for each in inputs.values()):
        return labels, ()
    ones = labels == 1
    if not ((ones | (labels == 0)).all() and (ones.sum(dim=1) == 1).all()):
        shares = labels.is_floating_point() and bool(
            (labels >= 0).all() and ((labels.sum(dim=1) - 1).abs() < 1e-3).all()
        )
        return labels, (SHARES.format(file.name, labels.shape[1]),) * shares
    note = f"{file.name}: labels are rows of 0 with a single 1, samples x {labels.shape[1]}: its place is the class"
    return ones.int().argmax(dim=1), (note,)


def _labels(labels: torch.Tensor) -> torch.Tensor:
    return labels.to(torch.float32 if labels.is_floating_point() else torch.int64)


def _as_taken(name: str, tensor: torch.Tensor, file: Path) -> torch.Tensor:
    """Return ids, masks and whole numbers as int64, truth values as they are, else float32; DataError for half ids."""
    if tensor.dtype == torch.bool and not name.endswith("attention_mask"):
        return tensor
    counted = name.endswith(("_ids", "mask"))
    if counted and tensor.is_floating_point() and not bool((tensor == tensor.round()).all()):
        raise DataError(f"{file}: {name} holds fractions; give whole numbers")
    whole = not tensor.is_floating_point() and name not in ("pixel_values", "input_values", "input_features", "inputs")
    return tensor.to(torch.int64 if whole or counted else torch.float32)


def read_mask(mask: torch.Tensor, file: Path, name: str = "attention mask") -> tuple[torch.Tensor, tuple[str, ...]]:
    """Return a mask (samples x tokens, or x pixels) as 1 and 0 for padding (int64), and a note where it was 255, say.

    Raises DataError where it leaves a sample nothing, or has other numbers: those that are added to scores, or count
    the texts of a window.
    """
    highest = mask.max() if mask.numel() else mask.new_ones(())
    if not bool(((mask == 0) | (mask == highest)).all()) or float(highest) != round(float(highest)) or highest < 0:
        raise DataError(
            f"{file}: the {name} holds numbers from {float(mask.min()):.3g} to {float(highest):.3g}; give 1 for "
            "what is real and 0 for padding"
        )
    note = f"{file.name}: the {name} holds {int(highest)}, which is taken for 1"
    empty = torch.nonzero((mask != 0).flatten(1).sum(dim=1) == 0).flatten().tolist()
    if empty:
        share = f"{len(empty)} of {len(mask)} samples"
        raise DataError(f"{file}: the {name} is 0 all through in {share}, the first is {empty[0]}")
    return (mask != 0).to(torch.int64), (note,) if highest > 1 else ()


def rows_of(tensors: Mapping[str, torch.Tensor], indices: np.ndarray) -> dict[str, torch.Tensor]:
    """Return some samples of every tensor."""
    return {name: tensor[torch.from_numpy(indices)] for name, tensor in tensors.items()}


def _prepare(inputs: torch.Tensor, spec: InputSpec) -> Prepare:
    if spec.preprocess is not None or (inputs.dtype == torch.uint8 and inputs.ndim in (3, 4)):
        return preparation(spec)
    return None if inputs.dtype != torch.uint8 else lambda values: values.to(torch.float32)


def _load(file: Path) -> dict[str, torch.Tensor]:
    try:
        if file.suffix == ".safetensors":
            from workbench.models.sources.stored import tensors_in_files

            store = tensors_in_files([file], DataError)
            return {name: store.read(name) for name in store.tensors}
        if file.suffix in (".pt", ".pth"):
            return _tensors(file)
        with opened(file) as stream:
            start = stream.read(6)
        if start[:2] == b"PK":
            return {name: _tensor(array, name) for name, array in read_npz(file).items()}
        if start != b"\x93NUMPY":  # NumPy takes anything else for a pickle
            raise DataError(f"{file} is not a NumPy file: it begins with neither \\x93NUMPY nor PK")
        require_room(file, file.stat().st_size)
        return {"inputs": _tensor(np.load(file, allow_pickle=False))}
    except WorkbenchError:
        raise
    except Exception as error:  # safetensors has an error type of its own, and NumPy raises many
        pickled = " (pickled objects are never read)" if "pickle" in str(error) else ""
        raise DataError(f"{file} cannot be read as arrays{pickled}: {error}") from error


def _tensors(file: Path) -> dict[str, torch.Tensor]:
    from workbench.models.sources.state_dict_file import load_weights_only, require_plain

    try:
        loaded = load_weights_only(file)
        for value in loaded.values() if isinstance(loaded, Mapping) else loaded if isinstance(loaded, list) else ():
            if isinstance(value, UnsupportedTensor):
                require_plain(value, f"{file}: a tensor")
    except UnsafeModelError:
        raise DataError(
            f"{file} holds pickled objects, which are never opened; save plain tensors (torch.save)"
        ) from None
    except NotAModelError as error:
        raise DataError(str(error)) from None
    if isinstance(loaded, torch.Tensor):
        return {"inputs": loaded}
    if isinstance(loaded, list | tuple):
        loaded = dict(zip(("inputs", "labels"), loaded, strict=False))
    if not isinstance(loaded, Mapping):
        raise DataError(f"{file} holds {type(loaded).__name__}; a tensor or named tensors were expected")
    return {
        str(name): torch.tensor(value) if _holds_numbers(value) else value
        for name, value in loaded.items() if isinstance(value, torch.Tensor) or _holds_numbers(value)
    }  # fmt: skip


def _holds_numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, int | float) for each in value)


def _tensor(array: np.ndarray, name: str = "it") -> torch.Tensor:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds {KINDS.get(array.dtype.kind, array.dtype.name)}; give numbers")
    if array.dtype in UNSIGNED:
        array = array.astype(UNSIGNED[array.dtype])
    return torch.from_numpy(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)))


def _pick(arrays: dict[str, torch.Tensor], file: Path, main: str) -> tuple[str, torch.Tensor, torch.Tensor | None]:
    by_name = {name.lower(): array for name, array in arrays.items()}
    key = next((name for name in (main.lower(), *INPUTS) if name in by_name), None)
    if key is None and len(by_name) == 1:
        key = next(iter(by_name))
    if key is None:
        raise DataError(f"{file} holds {few(arrays, 8) or 'nothing'}; expected {', '.join(INPUTS)}, and labels")
    inputs = by_name[key]
    if inputs.ndim == 0 or inputs.shape[0] == 0 or inputs.numel() == 0:
        raise DataError(f"{file} is empty: {key} has the shape {tuple(inputs.shape)}; give at least one sample")
    labels = next((by_name[name] for name in LABELS if name in by_name), None)
    if labels is None or not labels.ndim:
        return key, inputs, None
    return key, inputs, labels.reshape(len(labels)) if labels.numel() == len(labels) else labels


def _mask(
    arrays: Mapping[str, torch.Tensor], inputs: torch.Tensor, tokens: torch.Tensor, file: Path
) -> tuple[dict[str, torch.Tensor], tuple[str, ...]]:
    """Return the attention mask of token windows under its name, nothing without one, and :func:`read_mask`'s note."""
    mask = next((array for name, array in arrays.items() if name.lower() in MASKS), None)
    if mask is None:
        return {}, ()
    if mask.shape != inputs.shape or inputs.ndim != 2:
        raise DataError(
            f"{file} holds token ids of shape {tuple(inputs.shape)} and an attention mask of shape "
            f"{tuple(mask.shape)}; give both as windows x tokens"
        )
    own, notes = read_mask(mask[:, : tokens.shape[1]].float(), file)
    return {"attention_mask": own}, notes


def _token_windows(
    inputs: torch.Tensor, file: Path, spec: InputSpec, requested: int | None, length: int, half: int | None,
    stride: int | None,
) -> dict[str, torch.Tensor]:  # fmt: skip
    if inputs.is_floating_point() or inputs.is_complex() or inputs.dtype == torch.bool or inputs.ndim > 2:
        kind = f"{tuple(inputs.shape)} {inputs.dtype}".replace("torch.", "")
        raise DataError(f"{file} holds {kind}, the model takes token ids; give integers, windows x tokens, or a text")
    tokens = inputs.to(torch.int64)
    if tokens.ndim == 1:
        return windows(tokens, length, half, stride=stride)
    width, most = tokens.shape[1], spec.length or spec.positions
    if requested == spec.length and spec.length is not None and width < spec.length:
        raise DataError(f"{file} holds windows of {width} tokens, the model takes windows of {spec.length}")
    if requested is not None and requested > width:
        raise DataError(f"{file} holds windows of {width} tokens, {requested} were asked for; ask for at most {width}")
    if requested is None and most is not None and width > most:
        raise DataError(
            f"{file} holds windows of {width} tokens, the model takes {most}; ask for that (sequence length)"
        )
    return {"input_ids": tokens if requested is None else tokens[:, :requested]}
