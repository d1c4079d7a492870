"""The contract of an exporter: one way to leave the workbench with a file that another program reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from workbench.progress import Progress

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

    suffix: ClassVar[str]
    """The usual ending of the file's name; empty for a folder."""

    needs_model: ClassVar[bool]
    """Whether weights are read: without, the quantized model may hold no tensors and the model may be None."""

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write ``quantized`` to ``out``, read it back, prove that it is the same, and return the paths written.

        Nothing is left at ``out`` that failed the proof, and what was there before stays until the proof is done.
        Raises ExportError for what the target cannot hold and for a place that cannot be written, and
        FingerprintMismatchError if ``model`` is another one.
        """
