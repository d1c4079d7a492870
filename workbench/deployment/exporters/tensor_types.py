"""Exports the plan for llama.cpp's own quantizer: a ``--tensor-type-file`` with one line for each tensor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.planning.plan import KEEP, resolve
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorTypes:
    """A text file for ``llama-quantize --tensor-type-file FILE model.gguf out.gguf q8_0``.

    llama.cpp gives each tensor the plan's type and rounds it itself, so the weights are not those that the plan was
    evaluated with; the exporter ``gguf`` writes those.
    """

    name: ClassVar = "tensor-types"
    title: ClassVar = "llama.cpp tensor types"
    description: ClassVar = "the type of each tensor, for llama.cpp's own quantizer (llama-quantize --tensor-type-file)"
    needs_model: ClassVar = False

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write and read back; raises ExportError for a plan that says more than types."""
        from workbench.deployment.gguf_file import tensor_types

        assignments = resolve(quantized.plan, quantized.summary.layers)
        if quantized.plan.transforms or any(each.inputs for each in assignments.values()):
            more = "transforms" if quantized.plan.transforms else "schemes of inputs"
            raise ExportError(
                f"llama.cpp's quantizer takes tensor types only, and this plan also has {more}: remove "
                "them, or export a GGUF file"
            )
        schemes = {name: each.weights for name, each in assignments.items() if each.weights != KEEP}
        types = tensor_types(quantized.summary, schemes)
        lines = {f"^{re.escape(name)}$": kind.lower() for name, kind in types.items()}
        with replacing(out, ExportError, "the tensor types") as temporary:
            temporary.write_text("".join(f"{name}={kind}\n" for name, kind in lines.items()), encoding="utf-8")
            _prove(temporary, types)
        progress(1.0, f"wrote {out.name}")
        return (out,)


def _prove(path: Path, types: dict[str, str]) -> None:
    """Read the file as llama.cpp does: the first expression that matches a tensor's name gives its type."""
    pairs = [line.partition("=")[::2] for line in path.read_text(encoding="utf-8").split()]
    for name, kind in types.items():
        first = next((value for pattern, value in pairs if re.search(pattern, name)), None)
        if first != kind.lower():
            raise ExportError(f"{path.name} gives {name} the type {first} and not {kind}; nothing was written")
