"""Exports the layers and their schemes as lines of text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantize import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerList:
    """One line for each layer: its name and its scheme."""

    name: str = "layer-list"
    title: str = "Layer list"
    description: str = "layers and schemes as lines of text"
    suffix: str = ".txt"
    needs_model: bool = False

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write the lines and read them back."""
        from workbench.planning.plan import resolve

        assignments = resolve(quantized.plan, quantized.summary.layers)
        text = "".join(f"{name} {assignment.weights}\n" for name, assignment in assignments.items())
        with replacing(out, ExportError, "the list of layers") as part:
            part.write_text(text, encoding="utf-8")
        progress(1.0, f"wrote {out.name}")
        return (out,)
