"""Exporters, one file each; a new one is one line in EXPORTERS, or a ``workbench.exporters`` entry point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from workbench.deployment.exporters.compressed_tensors import CompressedTensors
from workbench.deployment.exporters.gguf import Gguf
from workbench.deployment.exporters.gptq import Gptq
from workbench.deployment.exporters.huggingface import HuggingFaceFolder
from workbench.deployment.exporters.imatrix import ImportanceMatrix
from workbench.deployment.exporters.mlx import Mlx
from workbench.deployment.exporters.onnx import Onnx
from workbench.deployment.exporters.onnx_genai import OnnxGenai
from workbench.deployment.exporters.packed_safetensors import PackedSafetensors
from workbench.deployment.exporters.plan_file import PlanFile
from workbench.deployment.exporters.python_script import PythonScript
from workbench.deployment.exporters.recipe import Recipe
from workbench.deployment.exporters.state_dict import StateDict
from workbench.deployment.exporters.tensor_types import TensorTypes
from workbench.deployment.exporters.torchao import Torchao
from workbench.errors import ExportError, nearest
from workbench.progress import Progress
from workbench.registry import Registry

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@runtime_checkable
class Exporter(Protocol):
    """A kind of file or folder.

    Implementations are frozen dataclasses that import nothing heavy when imported.  Their FIELDS are their options,
    each with a default (bool, int, float or str); the command line and Python set them by name (``option=value``).
    """

    name: ClassVar[str]
    """What ``--to`` is given."""

    title: ClassVar[str]
    """What the window calls it."""

    description: ClassVar[str]
    """One line for menus and help."""

    needs_model: ClassVar[bool]
    """Whether weights are read: without, the quantized model may hold no tensors and the model may be None."""

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write ``quantized`` to ``out``, read it back, prove that it is the same, and return the paths written.

        Nothing is left at ``out`` that failed the proof, and what was there before stays until the proof is done.
        Raises ExportError for what the target cannot hold and for a place that cannot be written, and
        FingerprintMismatchError if ``model`` is another one.
        """


@runtime_checkable
class Prepares(Protocol):
    """An exporter that works before it writes: what the estimate of an export adds."""

    def preparing(self, model: Model) -> float:
        """Return the seconds that pass before anything is written, from a trial."""


@runtime_checkable
class Refuses(Protocol):
    """An exporter that knows from schemes and shapes what it cannot hold, before any weight is rounded."""

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """Raise ExportError with every layer of ``planned`` that does not fit, and the reason; it holds no values."""


@runtime_checkable
class LeavesOut(Protocol):
    """An exporter whose file has no place for all that the model's output does not depend on."""

    def left_out(self, model: Model) -> list[str]:
        """Return the layers of ``model`` that the file does not hold."""


@runtime_checkable
class Remarks(Protocol):
    """An exporter whose file not all runtimes of its kind run as it was evaluated."""

    def remarks(self, quantized: QuantizedModel, model: Model, out: Path) -> list[str]:
        """Return a sentence for each runtime that does not, with the reason and what to do; ``out`` was written."""


EXPORTERS: tuple[Exporter, ...] = (
    PlanFile(), PythonScript(), PackedSafetensors(), StateDict(), HuggingFaceFolder(), Gguf(), CompressedTensors(),
    Gptq(), Mlx(), Torchao(), Recipe(), TensorTypes(), ImportanceMatrix(),
    Onnx(), OnnxGenai(),
)  # fmt: skip

REGISTRY: Registry[Exporter] = Registry(
    EXPORTERS, "workbench.exporters", kind="exporter", error=ExportError, member_type=Exporter
)


def exporter(name: str, settings: Sequence[str] = ()) -> Exporter:
    """Return the exporter called ``name``; ``settings`` (``option=value``) change its options from their defaults.

    Raises ExportError that names the closest exporters or options, or says what a value must be.
    """
    member = REGISTRY.get(name.strip().lower())
    known = exporter_options(member)
    values = {}
    for setting in settings:
        key, _, text = setting.partition("=")
        if key not in known:
            listed = f"its options are {', '.join(known)}" if known else "it has no options"
            raise ExportError(f"{member.name} has no option {key!r}{nearest(key, known)}; {listed}")
        values[key] = _parsed(key, text, known[key])
    changed: Exporter = replace(member, **values) if values else member  # type: ignore[type-var]
    return changed


def preparing(member: Exporter, model: Model) -> float:
    """Return the seconds that an exporter works before it writes; 0 where that is nothing to speak of."""
    return member.preparing(model) if isinstance(member, Prepares) else 0.0


def exporter_options(member: Exporter) -> dict[str, bool | int | float | str]:
    """Return an exporter's options with their defaults: the fields of its dataclass."""
    return {item.name: getattr(member, item.name) for item in fields(member)} if is_dataclass(member) else {}


def _parsed(key: str, text: str, default: bool | int | float | str) -> bool | int | float | str:
    """Return an option's value from text, of the type of its default."""
    if isinstance(default, bool):
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise ExportError(f"{key} is true or false, not {text!r}")
    try:
        return type(default)(text)
    except ValueError:
        raise ExportError(f"{key} is a number such as {default}, not {text!r}") from None
