"""Exports a readable Python script that replays the plan through the public interface."""

from __future__ import annotations

import ast
import importlib.resources
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, ClassVar

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.numerics.formats import parse_scheme
from workbench.numerics.granularity import PerToken
from workbench.planning.plan import Plan
from workbench.planning.transform_names import CORRECTIONS
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.models.summary import ModelSummary
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonScript:
    """One file that needs this package and nothing else: the rules inline, the model's fingerprint checked."""

    name: ClassVar = "script"
    title: ClassVar = "Python script"
    description: ClassVar = "a Python script that replays the plan: quantize, evaluate, write"
    needs_model: ClassVar = False

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write the script and read its rules back; see :class:`workbench.deployment.exporters.Exporter`."""
        text = script(quantized.plan, quantized.summary, out.name)
        with replacing(out, ExportError, "the script") as temporary:
            temporary.write_bytes(text.encode())
            _prove(temporary.read_text(encoding="utf-8"), quantized.plan, quantized.summary)
        progress(1.0, f"wrote {out.name}")
        return (out,)


def script(plan: Plan, summary: ModelSummary, file: str) -> str:
    """Return the text of the script, which is to be called ``file``."""
    inputs = [parse_scheme(rule.assignment.inputs) for rule in plan.rules if rule.assignment.inputs]
    static = any(not isinstance(scheme.granularity, PerToken) for scheme in inputs)
    corrections = any(name in CORRECTIONS for name in plan.transforms)
    needed = f"calibrate on this data, which the plan's {'static input schemes' if static else 'corrections'} need"
    calibrate_help = needed if static or corrections else "calibrate on this data first, for algorithms that need it"
    source = summary.source
    template = importlib.resources.files("workbench_resources").joinpath("replay_script.txt").read_text("utf-8")
    constants = {
        "name": plan.name, "model": source.path, "factory": source.factory, "weights": source.weights,
        "plan_model": plan.model, "fingerprint": summary.fingerprint, "transforms": plan.transforms,
        "calibrate_help": calibrate_help,
    }  # fmt: skip
    return Template(template).substitute(
        {key: ascii(value) for key, value in constants.items()},
        file=file if file.isascii() and file.replace(".", "").replace("_", "").isalnum() else "replay.py",
        rules="".join(f"    {ascii(row)},\n" for row in _rows(plan)),
    )


def _rows(plan: Plan) -> list[tuple[Any, ...]]:
    rules = [(rule.pattern, rule.assignment) for rule in plan.rules]
    return [(pattern, a.weights, a.inputs, a.algorithm, a.range_method, a.cache) for pattern, a in rules]


def _prove(text: str, plan: Plan, summary: ModelSummary) -> None:
    """Raise ExportError unless the constants in the script are the plan's."""
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    written = [constants[name] for name in ("PLAN", "PLAN_MODEL", "FINGERPRINT", "TRANSFORMS", "RULES")]
    if written != [plan.name, plan.model, summary.fingerprint, plan.transforms, _rows(plan)]:
        raise ExportError("the script did not read back as the plan that was written; please report")
