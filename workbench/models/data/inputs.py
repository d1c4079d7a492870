"""What a model takes: enough for a data set to make batches of it, and to say what is wrong with other data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import DataError, first_line
from workbench.models.readers.pooling import Pooling
from workbench.models.readers.tokenizer import require_tokenizer
from workbench.plain_file import read_text
from workbench.readable import few

if TYPE_CHECKING:
    import torch

SHAPES = {
    "input_ids": "samples x tokens", "attention_mask": "samples x tokens", "token_type_ids": "samples x tokens",
    "decoder_input_ids": "samples x decoder tokens", "decoder_attention_mask": "samples x decoder tokens",
    "labels": "samples x decoder tokens", "input_features": "samples x mel bands x frames",
    "input_values": "samples x points of sound", "pixel_values": "samples x channels x height x width",
    "past_values": "samples x steps x channels", "task_inputs": "samples x tokens of the task",
    "pixel_values_videos": "samples x frames x channels x height x width",
}  # fmt: skip
"""The shapes of the inputs that transformers' networks share."""

IN_A_ROW = " in a row"
"""How names end of what has several entries for each sample (pictures, tiles, patches), and a network takes those of
all samples in a row."""

NOTHING = -1
"""What stands in whole numbers, as NaN does in others, where a sample has fewer entries than another: none is there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputSpec:
    """``tokens`` tells whether the model takes token ids (None: unknown, as for weights-only models).

    Token models: ``vocabulary`` ids from 0, at most ``positions`` of them in one sample (None: unknown), exactly
    ``length`` where the program was exported for one length; ``tokenizer`` is the folder with the tokenizer's files.
    Image models: ``channels`` of axis 1, ``size`` as (height, width) in pixels, ``mean`` and ``std`` of each channel
    for images scaled to 0..1.  ``preprocess`` is the model's own function from arrays as stored to what it takes; where
    there is one, nothing else is done to the arrays.

    ``main`` is the name under which ``forward`` takes the tokens or ``inputs`` (empty: its first argument), ``takes``
    the names of all its arguments, ``tensors`` those that are said to be tensors of data, ``requires`` those without
    which it cannot run; ``labels`` stand in for a decoder's ids, ``begun`` with a token of its own instead of the
    tokenizer's.  ``folder`` holds the processor's files.
    ``sentences``: a sample is one text with special tokens and padding, not a window of running text; ``embeds``: the
    output is a vector for each sample, of tokens by ``pooling``.  ``rate`` is the sampling rate in Hz that a model of
    sounds without a processor states.  ``batch`` is the number of samples that a program was exported for, where it
    takes no other.  ``arrange`` makes of a batch with padding what the network goes by.  ``shapes`` are the shapes of
    inputs in words where a file states them; ``accepted`` the random probe that the network ran with.
    """

    tokens: bool | None = None
    vocabulary: int | None = None
    positions: int | None = None
    length: int | None = None
    tokenizer: Path | None = None
    channels: int | None = None
    size: tuple[int, int] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    preprocess: Callable[[Any], Any] | None = None
    main: str = ""
    takes: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    begun: bool = False
    folder: Path | None = None
    sentences: bool = False
    embeds: bool = False
    pooling: Pooling = Pooling.MEAN
    rate: int | None = None
    batch: int | None = None
    arrange: Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]] | None = None
    shapes: Mapping[str, str] = field(default_factory=dict)
    accepted: int = 0

    @property
    def takes_sound(self) -> bool:
        """Whether the main input is made of sound."""
        return self.main in ("input_values", "input_features") or self.rate is not None

    @property
    def has_decoder(self) -> bool:
        """Whether the model is an encoder-decoder, whose output belongs to the decoder's tokens."""
        return "decoder_input_ids" in self.requires

    def missing(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the required arguments for which nothing is among ``names``."""
        present = {*names, self.main if {"inputs", "input_ids"} & {*names} else ""}
        present |= {"decoder_input_ids"} if "labels" in names else set()
        return tuple(name for name in self.requires if name not in present)

    def shape_of(self, name: str) -> str:
        """Return the shape of an argument in words, with sizes where they are known."""
        if name in self.shapes:
            return self.shapes[name]
        if name == "pixel_values":
            height, width = self.size or ("height", "width")
            return f"samples x {self.channels or 'channels'} x {height} x {width}"
        if name == (self.main or "inputs") and name not in SHAPES:
            tokens = f"samples x {self.length or 'tokens'}"
            return tokens if self.tokens else f"samples x {self.channels} x ..." if self.channels else "samples x ..."
        return SHAPES.get(name, "samples x ...")

    def in_words(self, names: Collection[str]) -> str:
        """Return a clause that names what the model takes and ``names`` lack; empty where that is nothing."""
        present = (*names, self.main, "labels")
        others = [f"{name} ({self.shape_of(name)})" for name in self.takes if name in SHAPES and name not in present]
        others += [name for name in self.tensors if name not in SHAPES and name not in present]
        return f"; it also takes {few(others, 8)}" if others else ""


def arguments_of(function: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all arguments of ``forward``, and of those that have no default."""
    named = [each for each in parameters_of(function) if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    return tuple(each.name for each in named), tuple(each.name for each in named if each.default is each.empty)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return what ``forward`` takes, also that of a TorchScript program, which Python knows no signature of."""
    schema = getattr(function, "schema", None) if type(function).__name__ == "ScriptMethod" else None
    if schema is None:
        return list(inspect.signature(function).parameters.values())
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            each.name, kinds[each.kwarg_only],
            default=each.default_value if each.has_default_value() else inspect.Parameter.empty,
        )
        for each in schema.arguments[1:]
    ]  # fmt: skip


def arguments_for(batch: Mapping[str, torch.Tensor], spec: InputSpec) -> dict[str, torch.Tensor]:
    """Return what of ``batch`` ``forward`` takes, under its own names: all but the main input where that has no name.

    Labels go to an encoder-decoder only, which makes the decoder's input of them.
    """
    batch = {name.removesuffix(IN_A_ROW): entries_of(name, each) for name, each in batch.items()}
    batch = {name: each for name, each in batch.items() if len(each)}
    aliases = {name for name in ("inputs", "input_ids") if name not in spec.takes}
    names = {name: spec.main if name in aliases else name for name in batch}
    return {
        names[name]: tensor for name, tensor in batch.items()
        if names[name] in spec.takes and (name != "labels" or (spec.has_decoder and "decoder_input_ids" not in batch))
    }  # fmt: skip


def entries_of(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return what an input of a batch has for its samples; what stands in a row without the places that are empty."""
    if not name.endswith(IN_A_ROW):
        return tensor
    entries = tensor.flatten(0, 1)
    first = entries.flatten(1)[:, 0] if entries.ndim > 1 else entries
    there = ~first.isnan() if entries.is_floating_point() else first != NOTHING
    return entries if bool(there.all()) else entries[there]


def main_of(batch: Mapping[str, torch.Tensor], spec: InputSpec) -> torch.Tensor:
    """Return the one input of ``batch``: its ids or ``inputs``, else the only array but the labels.

    Raises DataError, which names what came and what the model takes, where that is not clear.
    """
    names = [name for name in batch if name != "labels"]
    main = next((name for name in ("input_ids", "inputs") if name in batch), names[0] if len(names) == 1 else None)
    if main is None:
        came = few((f"{name} {tuple(batch[name].shape)}" for name in names), 8) or "no inputs"
        takes = [name for name in spec.takes if name != "labels"] or ["inputs"]
        expected = few((f"{name} ({spec.shape_of(name)})" for name in takes), 8)
        raise DataError(f"the data hold {came}; the model takes {expected}: give the arrays these names")
    return batch[main]


def fast_tokenizer(folder: Path | None) -> Any:
    """Return the tokenizer of ``tokenizer.json`` in ``folder``, or of a GGUF file; None without one.

    Raises DataError for a damaged one.
    """
    if folder is not None and folder.suffix == ".gguf" and folder.is_file():
        from workbench.models.gguf.tokenizer import tokenizer_in

        return tokenizer_in(folder)
    if folder is None or not (folder / "tokenizer.json").is_file():
        return None
    from tokenizers import Tokenizer

    require_tokenizer(folder / "tokenizer.json")
    try:
        return Tokenizer.from_str(read_text(folder / "tokenizer.json"))
    except Exception as error:  # the tokenizers' own errors have no common type
        raise DataError(f"the tokenizer in {folder} cannot be used: {first_line(error)}") from error
