"""How a step describes its options: once, for the window's form, the command line's flags and Python.

A step's options are a frozen dataclass.  Each field is made with :func:`option`, whose :class:`OptionInfo` says what
the option means; a field without a default is made with ``field(metadata=info.metadata)``.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TypeVar

from workbench.errors import SchemeError
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme, standard_schemes

T = TypeVar("T")

KEY = "option"
LONGEST_NUMBER = 24
"""Where a field's metadata hold its OptionInfo."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that an option may take, and how a form shows it."""

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionInfo:
    """What is known of one option beside its type and default.

    ``help`` is one phrase or sentence: tooltip and flag help. ``minimum`` and ``maximum`` are inclusive; ``increment``
    is what an arrow of a number field adds. ``choices`` is called when a form or a parser is made; an option of several
    values (a tuple) takes any number of them; ``suggested``: other values are valid too. ``path`` says that the text is
    a path: to ``data`` (a file or a folder), an existing ``file`` or ``folder``, or one to ``save``. ``empty`` says
    what no value (None, an empty text or tuple) means. ``flag`` is the spelling on the command line where it is not the
    field's name, ``metavar`` its placeholder there, ``positional`` makes it an argument without a flag; ``repeated``:
    several values are given by repeating the flag, not by commas. ``parse`` reads a text that is not simply a number or
    a name; it raises ValueError. ``form`` and ``command`` say where the option is offered; a form offers it for models
    that it ``suits``.  ``follow`` returns what a text becomes when the options change, from those before and after.
    """

    label: str
    help: str
    minimum: float | None = None
    maximum: float | None = None
    increment: float = 1.0
    unit: str = ""
    choices: Callable[[], tuple[Choice, ...]] | None = None
    suggested: bool = False
    path: typing.Literal["", "data", "file", "folder", "save"] = ""
    empty: str = ""
    flag: str = ""
    metavar: str = ""
    positional: bool = False
    repeated: bool = False
    parse: Callable[[str], object] | None = None
    form: bool = True
    command: bool = True
    suits: Callable[[ModelSummary], bool] = lambda model: True
    follow: Callable[[typing.Any, typing.Any], str] | None = None

    @property
    def metadata(self) -> Mapping[str, OptionInfo]:
        """The metadata of a dataclass field without a default."""
        return {KEY: self}


def option(default: T, info: OptionInfo) -> T:
    """Return the dataclass field of an option."""
    made: T = field(default=default, metadata=info.metadata)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionField:
    """One option of a step, ready to be drawn or parsed.

    ``kind`` is bool, int, float or str, or another class for what only Python gives; ``several``: the value is a tuple
    of that kind; ``optional``: it may be None; ``required``: there is no default.
    """

    name: str
    info: OptionInfo
    kind: type
    several: bool
    optional: bool
    required: bool
    default: object

    @property
    def flag(self) -> str:
        """The flag on the command line, such as ``--batch-size``."""
        return f"--{self.info.flag or self.name.replace('_', '-')}"

    def fault(self, value: object) -> str | None:
        """Return what is wrong with a value of the right type, None if nothing is."""
        low, high = self.info.minimum, self.info.maximum
        if self.required and value == "":
            return f"{self.info.label}: nothing was given; give {self.info.help}"
        if isinstance(value, int | float) and not isinstance(value, bool):
            if low is not None and value < low:
                return f"{self.info.label} must be at least {_shown(low)}, not {_shown(value)}"
            if high is not None and value > high:
                return f"{self.info.label} must be at most {_shown(high)}, not {_shown(value)}"
        return None


def _shown(number: float) -> str:
    """Return a number as it was typed, a very long one cut off."""
    digits = str(number) if isinstance(number, int) else f"{number:g}"
    return digits if len(digits) <= LONGEST_NUMBER else f"{digits[:LONGEST_NUMBER]}..."


def option_fields(options: type) -> tuple[OptionField, ...]:
    """Return the options of a step's options class, in the order in which they are declared."""
    hints = typing.get_type_hints(options)
    return tuple(_described(item.name, hints[item.name], item.metadata[KEY], item.default) for item in fields(options))


def _described(name: str, hint: object, info: OptionInfo, default: object) -> OptionField:
    members = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    (inner,) = (member for member in members if member is not types.NoneType)
    several = typing.get_origin(inner) is tuple
    kind = typing.get_args(inner)[0] if several else inner
    if typing.get_origin(kind) is typing.Literal:
        kind = type(typing.get_args(kind)[0])
    return OptionField(
        name=name, info=info, kind=kind if isinstance(kind, type) else object, several=several,
        optional=len(members) > 1, required=default is MISSING, default=None if default is MISSING else default,
    )  # fmt: skip


SAMPLES = OptionInfo(
    label="Samples", minimum=1, maximum=1_000_000, empty="all", metavar="N",
    help="how many samples of the data are used; more take longer and narrow the intervals",
)  # fmt: skip
BATCH_SIZE = OptionInfo(
    label="Batch size", minimum=1, maximum=4096, metavar="N", help="samples that run through the model at once"
)  # fmt: skip
SEED = OptionInfo(
    label="Seed", metavar="N", minimum=0, maximum=2**31 - 1,
    help="seed of every random choice: same seed, data and plan, same numbers",
)  # fmt: skip
DATA = OptionInfo(
    label="Data", path="data", empty="the model's bundled data", metavar="DATA",
    help="a text file, a table (.jsonl, .csv, .parquet, .arrow), a folder of texts, images or sounds, an array file "
    "(.npz, .npy, .pt, .safetensors) or a bundled set (demo:language-model)",
)  # fmt: skip
COLUMN = OptionInfo(
    label="Column", metavar="NAME", empty="a column with a usual name, such as text or messages",
    help="the column of a table to read; by commas two texts of a pair, or texts and their label or score",
)  # fmt: skip


def takes_tokens(model: ModelSummary) -> bool:
    """Return whether a model looks tokens up, so that windows of text are its samples."""
    return model.output.per_token or bool(model.embeddings)


WINDOW = OptionInfo(
    suits=takes_tokens,
    label="Window", minimum=2, maximum=1 << 20, unit="tokens", metavar="N",
    help="tokens of a window of running text, the most of a sentence, points of a frame of sound",
    empty="256 tokens, or as many as the model takes",
)  # fmt: skip
STRIDE = OptionInfo(
    suits=takes_tokens,
    label="Stride", minimum=1, maximum=1 << 20, unit="tokens", metavar="N", empty="the window: none overlap",
    help="tokens from one window to the next; perplexity then scores each token once, with the context before it",
)  # fmt: skip
EVALUATION_WINDOW = replace(WINDOW, empty="2,048 tokens, or 256 where the model takes fewer")
EVALUATION_DATA = replace(DATA, empty="the evaluation data that belong to the calibration data, disjoint from them")
BITS_PER_WEIGHT = OptionInfo(
    label="Size", minimum=0.1, maximum=64.0, increment=0.25, unit="bits per weight", metavar="B",
    help="mean bits of the quantizable weights",
)  # fmt: skip
LAYER = OptionInfo(label="Layer", help="the layer's name", metavar="NAME")


def choices_of(names: Iterable[str]) -> tuple[Choice, ...]:
    """Return choices that are shown as they are written."""
    return tuple(Choice(name, name) for name in names)


def scheme_choices() -> tuple[Choice, ...]:
    """Return the schemes of weights and of activations with their bits, fewest first."""
    from workbench.insight.quantities import fixed
    from workbench.insight.schemes import families, reference_bits
    from workbench.numerics.formats import activation_schemes

    listed = [*standard_schemes(), *activation_schemes()]
    names = {*(scheme.name for scheme in listed), *(name for _, members in families() for name in members)}
    return tuple(
        Choice(name, f"{name} · {fixed(reference_bits(name), 2)} bits") for name in sorted(names, key=reference_bits)
    )


def scheme_name(text: str) -> str:
    """Return a scheme's name from its spelling on the command line (``int4_g32`` too), any other word as it is."""
    for name in (text, text.replace("_", "-"), text.replace("-", "_")):
        try:
            return parse_scheme(name).name
        except SchemeError:
            continue
    return text


def scheme_names(schemes: Iterable[str] | None) -> tuple[str, ...]:
    """Return the canonical names of ``schemes``, the standard schemes for none; raises SchemeError."""
    return tuple(parse_scheme(name).name for name in schemes or [scheme.name for scheme in standard_schemes()])


TARGET = OptionInfo(
    label="Target", metavar="NAME", empty="anything",
    help="only what this runs: vllm, gguf, nvidia-9.0, vllm@nvidia-9.0",
)  # fmt: skip
SCHEMES = OptionInfo(
    label="Schemes", choices=scheme_choices, suggested=True, parse=scheme_name, metavar="A,B,...",
    help="allow only these schemes", empty="all that were scored",
)  # fmt: skip
