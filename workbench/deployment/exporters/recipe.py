"""Exports a plan as a recipe that another quantizer carries out itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.atomic import replacing
from workbench.errors import ExportError, nearest
from workbench.planning.plan import resolve
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """YAML for ``llm-compressor`` and ``modelopt`` (its quantization configuration), JSON for ``auto-round``."""

    name: ClassVar = "recipe"
    title: ClassVar = "Recipe"
    description: ClassVar = "the plan for another quantizer: llm-compressor, modelopt or auto-round (--set tool=NAME)"
    needs_model: ClassVar = False
    tool: str = "llm-compressor"

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, parse again, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        from workbench.deployment.recipes import TOOLS

        if self.tool not in TOOLS:
            known = ", ".join(TOOLS)
            raise ExportError(f"there is no tool {self.tool!r}{nearest(self.tool, TOOLS)}; there are {known}")
        if quantized.plan.transforms:
            named = ", ".join(quantized.plan.transforms)
            raise ExportError(f"the plan rewrites the model first ({named}), which a recipe cannot express")
        if model is not None:
            model.summary.require_fingerprint(quantized.fingerprint, "the quantized model")
        tool = TOOLS[self.tool]
        content = tool.make(quantized.summary, resolve(quantized.plan, quantized.summary.layers))
        with replacing(out, ExportError, "the recipe") as temporary:
            if tool.yaml:
                import yaml

                temporary.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
                again = yaml.safe_load(temporary.read_text(encoding="utf-8"))
            else:
                temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
                again = json.loads(temporary.read_text(encoding="utf-8"))
            if again != content:
                raise ExportError(f"the recipe for {self.tool} does not read back as it was written; please report")
        progress(1.0, f"wrote {out.name}")
        return (out,)
