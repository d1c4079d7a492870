"""What calibration, scoring and evaluation need of data, and how batches are counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch

from workbench.errors import CannotRunError, DataError
from workbench.memory import Footprint
from workbench.models.data.inputs import IN_A_ROW, entries_of
from workbench.models.data.record import DataRecord
from workbench.models.layer import Layer
from workbench.models.model import Batch, Model
from workbench.models.summary import ModelSummary, OutputKind
from workbench.progress import Progress, silent

NOISE = 1e-2
"""The difference between two runs, over the spread of the outputs, that rounding in another order does not explain."""

OFTEN = 12
"""Runs of a sample where random numbers are drawn: seven in ten layers that are dropped one time in ten are noticed."""

PIECE = 1 << 20
"""Numbers of two outputs that are compared at once."""

UNLABELLED = 255
"""The label of pixels that do not count, as data sets and transformers use it; negative labels do not count either."""

LABEL_AXES = {
    OutputKind.TOKEN_LOGITS: (2,), OutputKind.TOKEN_CLASSES: (2,), OutputKind.CLASS_LOGITS: (1,),
    OutputKind.POSITION_CLASSES: (2, 3, 4),
}  # fmt: skip
"""Axes of labels that are numbers of classes: one for each sample, token or pixel, or letters of a transcript."""


MASKS = ("attention_mask", "decoder_attention_mask", "feature_attention_mask", "input_features_mask", "padding_mask")
"""Names of masks of texts, of sounds, and of sounds beside a text."""

PIXELS = ("pixel_mask", "pixel_attention_mask")
"""Names of masks of pictures (pictures x height x width, or x patches)."""

FRAMES = "mask of frames "
"""How names of masks begin that the network makes of those of sounds: of its own frames."""


@runtime_checkable
class Data(Protocol):
    """Samples in a fixed order."""

    @property
    def record(self) -> DataRecord:
        """What a session records of the data."""
        ...

    def __len__(self) -> int:
        """Return the number of samples."""
        ...

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield all samples in order, ``batch_size`` at a time; the last batch may be smaller."""
        ...


def require_data(model: Model, data: Data, purpose: str) -> None:
    """Raise CannotRunError for a weights-only model, DataError for empty data."""
    if model.summary.cannot_run is not None:
        raise CannotRunError(f"{model.summary.name} cannot be run for {purpose}: {model.summary.cannot_run}")
    if not len(data):
        raise DataError(f"the data set {data.record.name} holds no samples; {purpose} needs at least one")


def require_repeatable(model: Model, batch: Batch, output: torch.Tensor | None = None) -> None:
    """Raise DataError where the model gives other outputs when it runs again on the same samples.

    With the ``output`` that the batch gave, its first sample runs once, and twice only where that differs.  Where
    random numbers are drawn, which many a network does for nothing, it runs OFTEN: some chances are rare.
    """
    sample: Batch = {name: tensor[:1] for name, tensor in batch.items()}
    before, known = _drawn(batch), output if output is None else output[:1]
    with torch.no_grad():
        try:
            first = model.run(sample)
        except DataError:  # a program for batches of one size
            sample, first, known = batch, model.run(batch), output
        quiet = before.equal(_drawn(batch))
        if known is not None and quiet and known.shape == first.shape and _noise(first, known):
            return
        others = [model.run(sample) for _ in range(1 if quiet else OFTEN)]
    for other in others:
        require_shape(first, other)
    odd = [other for other in others if not _noise(first, other)]
    if odd and bool(first.isfinite().all()):
        spread, difference = _spread(first), _difference(first, odd[0])
        raise DataError(
            f"{model.summary.name} is random: run twice on the same samples, its outputs differ by {difference:.3g} "
            f"(their spread is {spread:.3g}), so no figure of it would mean anything; switch dropout and other "
            "randomness off where the network is evaluated"
        )


def _drawn(batch: Batch) -> torch.Tensor:
    """Return where torch's random numbers are, on the CPU and on the batch's CUDA device."""
    states = (torch.cuda.get_rng_state(tensor.device) for tensor in batch.values() if tensor.is_cuda)
    return torch.cat([torch.get_rng_state(), *states])


def _noise(first: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two outputs differ by no more than rounding in another order."""
    return not first.numel() or not _difference(first, other) > NOISE * _spread(first)


def _spread(output: torch.Tensor) -> float:
    """Return the standard deviation of an output, the magnitude of a single number."""
    values = output if _is_wide(output) else output.float()
    return float(values.std() if values.numel() > 1 else values.abs().max())


def _is_wide(output: torch.Tensor) -> bool:
    return output.is_floating_point() and output.dtype.itemsize > 2


def _difference(output: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest difference of two outputs, NaN where any is; a piece at a time, since logits are large."""
    pieces = zip(*(torch.split(each.reshape(-1), PIECE) for each in (output, other)), strict=True)
    largest = [(a - b if _is_wide(a) else a.float() - b.float()).abs().max() for a, b in pieces]
    return float(torch.stack(largest).max())


def require_shape(first: torch.Tensor, again: torch.Tensor) -> None:
    """Raise DataError for two outputs of the same samples that have other shapes, and so cannot be compared."""
    if first.shape[1:] != again.shape[1:]:
        raise DataError(
            f"the model answers the same sample with {tuple(first.shape[1:])} numbers and with "
            f"{tuple(again.shape[1:])}: how many there are depends on chance, on the weights or on the samples beside "
            "it (points that it finds, sounds of its own length), so that a quantized model cannot be compared with it"
        )


def require_classes(batch: Batch, output: torch.Tensor, kind: OutputKind) -> None:
    """Raise DataError for labels that the model has no class for; below 0, or 255 of pixels, counts for nothing."""
    labels, classes = batch.get("labels"), output.shape[-1]
    if labels is None or (axes := labels.ndim) not in LABEL_AXES.get(kind, ()) or not labels.numel():
        return
    between = labels[labels != labels.round()].tolist()
    if between:
        raise DataError(f"the label {between[0]:g} is not a class; give the number of a class, 0 to {classes - 1}")
    if axes > 1:
        labels = labels[(labels >= 0) & ((labels != UNLABELLED) | (classes > UNLABELLED) | (axes < 3))]
    low, high = (int(bound) for bound in torch.aminmax(labels)) if labels.numel() else (0, 0)
    if low < 0 or high >= classes:
        raise DataError(
            f"the labels are {low} to {high}, the model has the classes 0 to {classes - 1}; give labels of this "
            f"model's classes{', and -100 where there is none' if axes > 1 else ''}"
        )


def numbered_batches(
    model: Model, data: Data, batch_size: int, progress: Progress = silent, text: str = ""
) -> Iterator[tuple[int, Batch]]:
    """Yield each batch, on the model's device, with its number from 0.

    Where there is a text, ``text, batch n of all`` is reported before it.
    """
    total, footprint = -(-len(data) // batch_size), Footprint()
    for number, batch in enumerate(batches_of(model, data, batch_size)):
        if text:
            progress(number / total, f"{text}, batch {number + 1} of {total}")
        yield number, batch
        footprint.settle()


def batches_of(model: Model, data: Data, batch_size: int) -> Iterator[Batch]:
    """Yield the batches of ``data`` on the model's device."""
    return map(model.on_device, data.batches(batch_size))


def tappable(model: Model) -> tuple[Layer, ...]:
    """Return the layers whose own input and output a tap can see, in model order."""
    return tuple(layer for layer in model.summary.layers if layer.name in model.tappable)


def routed(model: Model) -> tuple[Layer, ...]:
    """Return the layers of experts whose products a tap can see, in model order."""
    return tuple(layer for layer in model.summary.layers if layer.name in model.routed)


def token_mask(batch: Batch) -> torch.Tensor | None:
    """Return for which tokens the output is real (bool, samples x tokens), None where it is for all.

    That is the decoder's mask where there is one, else the attention mask.
    """
    mask = batch.get("decoder_attention_mask" if has_decoder(batch) else "attention_mask")
    return None if mask is None or bool((mask != 0).all()) else mask != 0


def counted_mask(batch: Batch) -> torch.Tensor | None:
    """Return at which tokens the output counts in a loss (bool, samples x tokens), None where it does at all.

    That is at real ones, where the token that it predicts counts (``scored``) or the window ends.
    """
    mask, scored = token_mask(batch), batch.get("scored")
    if scored is None or has_decoder(batch) or bool((scored[:, 1:] != 0).all()):
        return mask
    predicted = torch.nn.functional.pad(scored[:, 1:] != 0, (0, 1), value=True)
    return predicted if mask is None else predicted & mask


def output_mask(batch: Batch, output: torch.Tensor) -> torch.Tensor | None:
    """Return ``counted_mask`` where the output has these samples and tokens, or the frames of sounds and the pixels of
    pictures that are not padding (bool, samples x positions); else None: all of the output counts."""
    mask = counted_mask(batch)
    if mask is not None and output.shape[:2] == mask.shape:
        return mask
    if output.ndim < 3 or has_decoder(batch) or "input_ids" in batch:
        return None
    return replace(Padding.of(batch), masks=()).mask(output)


def _is_of_sounds(batch: Batch, mask: torch.Tensor) -> bool:
    """Return whether ``mask`` is of the points of sounds, or of their features (samples x bands x points)."""
    sounds = (tensor for tensor in batch.values() if tensor.is_floating_point() and tensor.ndim in (2, 3))
    return any(mask.shape in (each.shape[:2], each.shape[::2]) for each in sounds)


def frames(mask: torch.Tensor, count: int) -> torch.Tensor:
    """Return which of ``count`` frames hold something of each sound (bool, samples x frames): those at its beginning in
    the proportion of its points."""
    lengths = -(-mask.sum(dim=1) * count // mask.shape[1])
    return torch.arange(count, device=mask.device) < lengths[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class Padding:
    """Which positions of a batch are real: ``masks`` (bool, samples, or samples' choices, x tokens) of the axes with
    padding, and of these the ``sounds``', several of whose points make a frame; ``texts`` have lengths of no frames.
    ``frames`` (bool, samples x frames) are as the network counts them, ``pictures`` bool, pictures x height x width."""

    masks: tuple[torch.Tensor, ...] = ()
    sounds: tuple[torch.Tensor, ...] = ()
    texts: frozenset[int] = frozenset()
    frames: tuple[torch.Tensor, ...] = ()
    pictures: tuple[torch.Tensor, ...] = ()

    @staticmethod
    def of(batch: Batch) -> Padding:
        """Read the masks off the batch."""
        bare = {name: name.removesuffix(IN_A_ROW) for name in batch}
        known = {name for name, own in bare.items() if own in (*MASKS, *PIXELS) or own.startswith(FRAMES)}
        named = {bare[name]: entries_of(name, batch[name]).ne(0) for name in batch if name in known}
        padded = {name: mask for name, mask in named.items() if not bool(mask.all())}
        pixels = [mask for name, mask in padded.items() if name in PIXELS and mask.ndim > 2]
        own = [mask for name, mask in padded.items() if name in MASKS or (name in PIXELS and mask.ndim == 2)]
        masks = tuple(mask.flatten(0, -2) for mask in own)
        texts = {each.shape[-1] for name, each in batch.items() if name.endswith(("input_ids", "labels"))}
        return Padding(
            masks, tuple(mask for mask in masks if _is_of_sounds(batch, mask)), frozenset(texts),
            tuple(mask for name, mask in padded.items() if name.startswith(FRAMES)),
            tuple(mask.flatten(0, -3) for mask in pixels),
        )  # fmt: skip

    def mask(self, tensor: torch.Tensor, axis: int = -1) -> torch.Tensor | None:
        """Return which positions of ``tensor``, with features along ``axis``, are real (bool, samples x positions, or x
        height x width); None where all are, or where its axes are others."""
        if tensor.ndim < (3 if tensor.is_floating_point() else 2):  # features of as many samples as there are tokens
            return None
        shape = (len(tensor), *(tensor.shape[2:] if axis == 1 else tensor.shape[1:2]))
        return self.at(shape, flat=tensor.ndim == 3)

    def at(self, shape: tuple[int, ...], flat: bool = True) -> torch.Tensor | None:
        """Return which positions (samples x positions, or x height x width) are real, of frames and pixels by where
        they lie; ``flat``: they are no further divided."""
        known = next((mask for mask in (*self.masks, *self.frames) if mask.shape == shape), None)
        if known is not None or not (flat or len(shape) == 3) or (len(shape) == 2 and shape[1] in self.texts):
            return known
        for mask in self.pictures:
            own = mask if len(mask) == shape[0] else mask[mask.flatten(1).any(dim=1)]  # empty ones are left out
            grids = [shape[1:]] if len(shape) == 3 else _grids(mask.shape[1:], shape[1])
            if len(own) == shape[0] and grids:
                parts = [_in_grid(own, *grid) for grid in grids]
                return parts[0] if len(shape) == 3 else torch.cat([part.flatten(1) for part in parts], dim=1)
        points = (mask for mask in self.sounds if len(shape) == 2 and len(mask) == shape[0])
        longer = next((mask for mask in points if mask.shape[1] > shape[1] > 1), None)
        return None if longer is None else frames(longer, shape[1])

    def real(self, tensor: torch.Tensor, axis: int = -1) -> torch.Tensor:
        """Return the real positions ``[positions, ...]`` of ``tensor``, or all of it as it is."""
        mask = self.mask(tensor, axis)
        return tensor if mask is None else tensor.movedim(axis, -1)[mask]


def _grids(sizes: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Return the height and width of ``count`` positions in pictures of these ``sizes``, which are every so many pixels
    of it; or of levels that follow each other, each half the one before; empty where no such grid has so many."""
    steps = [tuple(-(-size // step) for size in sizes) for step in range(1, min(sizes) + 1)]
    steps += [tuple(size // step for size in sizes) for step in range(1, min(sizes) + 1)]
    levels = [steps[step - 1] for step in (4, 8, 16, 32, 64, 128) if step <= min(sizes)]
    several = [levels[first:end] for first in range(len(levels)) for end in range(first + 2, len(levels) + 1)]
    return next((grids for grids in [[each] for each in steps] + several if sum(map(math.prod, grids)) == count), [])


def _in_grid(mask: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return ``mask`` (pictures x pixels' rows x columns) at the pixels that stand for those of a coarser picture."""
    rows, columns = (
        torch.arange(count, device=mask.device) * size // count
        for count, size in zip((height, width), mask.shape[1:], strict=True)
    )
    return mask[:, rows[:, None], columns]


def has_decoder(batch: Batch) -> bool:
    """Return whether an encoder-decoder's batch came: then the output belongs to the decoder's tokens."""
    return "decoder_input_ids" in batch or "decoder_attention_mask" in batch


def token_ids(batch: Batch) -> torch.Tensor:
    """Return the ids (int64, samples x tokens) of the tokens that the output belongs to."""
    names = ("decoder_input_ids", "labels") if has_decoder(batch) else ("input_ids",)
    return next((batch[name] for name in names if name in batch), next(iter(batch.values())))


def samples_of(batch: Batch) -> int:
    """Return the number of samples of the batch."""
    return int(next(iter(batch.values())).shape[0])


def units_of(batch: Batch, summary: ModelSummary) -> int:
    """Return how many units the model's loss is counted in: tokens that count where each has logits, else samples."""
    if not summary.output.per_token:
        return samples_of(batch)
    mask, ids = counted_mask(batch), token_ids(batch)
    return int(mask.sum()) if mask is not None else int(ids.shape[0] * ids.shape[1])
