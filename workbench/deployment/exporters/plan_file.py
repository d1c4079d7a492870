"""Exports the plan itself, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.errors import ExportError, PlanError
from workbench.planning.plan import Plan
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan as JSON; the schema is published as ``resources/plan.schema.json``."""

    name: ClassVar = "plan"
    title: ClassVar = "Plan (JSON)"
    description: ClassVar = "the plan as JSON, for this workbench and for other programs"
    needs_model: ClassVar = False

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write the plan and read it back; see :class:`workbench.deployment.exporters.Exporter`."""
        try:
            quantized.plan.save(out)
        except PlanError as error:
            raise ExportError(str(error)) from error
        if Plan.load(out) != quantized.plan:
            out.unlink(missing_ok=True)
            raise ExportError(f"{out} did not read back as the plan that was written; try another place")
        progress(1.0, f"wrote {out.name}")
        return (out,)
