"""Exports a readable Python script that replays the plan through the public interface."""

from __future__ import annotations

import ast
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

SCRIPT = Template('''\
#!/usr/bin/env python3
"""Replays a quantization plan: opens the model, quantizes it, checks it against floating point, writes it.

    python $file --out model.safetensors
    python $file --model MODEL --data DATA --calibrate DATA
"""

import argparse

import workbench as wb

PLAN = $name
MODEL = $model
FACTORY = $factory
WEIGHTS = $weights
FINGERPRINT = $fingerprint

# Rewrites of the floating-point model that leave its outputs as they are, in this order; corrections after rounding.
TRANSFORMS = $transforms

# The first rule whose pattern matches a layer decides; layers without a rule stay as the model stores them.
RULES = [
    # pattern, weights, inputs, algorithm, range method, key-value cache
$rules]


def plan():
    """Return the plan: its rules, for the model with the fingerprint above."""
    rules = [
        wb.Rule(
            pattern=pattern,
            assignment=wb.Assignment(
                weights=weights, inputs=inputs, algorithm=algorithm, range_method=range_method, cache=cache
            ),
        )
        for pattern, weights, inputs, algorithm, range_method, cache in RULES
    ]
    return wb.Plan(name=PLAN, fingerprint=FINGERPRINT, rules=tuple(rules), transforms=TRANSFORMS)


def main():
    parser = argparse.ArgumentParser(description=f"Replay the quantization plan {PLAN!r}.".replace("%", "%%"))
    parser.add_argument("--model", default=MODEL, help="the model (default: where it was when this was written)")
    parser.add_argument("--calibrate", metavar="DATA", help=$calibrate_help)
    parser.add_argument("--data", help="evaluate on this data, beside the floating-point model")
    parser.add_argument("--samples", type=int, help="use at most this many samples of each data set")
    parser.add_argument("--out", help="write the quantized model here")
    parser.add_argument("--to", default="safetensors", help="the form to write (default: %(default)s)")
    parser.add_argument("--trust", action="store_true", help="run the model's own Python file")
    options = parser.parse_args()

    model = wb.open(options.model, factory=FACTORY, weights=WEIGHTS, trust=options.trust)
    if model.summary.fingerprint != FINGERPRINT:
        parser.error(f"{options.model} has the fingerprint {model.summary.fingerprint}, the plan is for {FINGERPRINT}")

    session = wb.start(model)
    if options.calibrate:
        session = wb.calibrate(model, options.calibrate, samples=options.samples, session=session)

    quantized = wb.quantize(model, plan(), session=session)
    print(f"quantized {len(quantized.tensors)} tensors of {model.summary.name} by the plan {PLAN}")

    if options.data:
        evaluation = wb.evaluate(session, plan(), model=model, data=options.data, samples=options.samples)
        print(f"{evaluation.bits_per_weight:.3f} bits per weight, {evaluation.nbytes} bytes")
        for metric in evaluation.metrics.values():
            interval = f"[{metric.low:.6g}, {metric.high:.6g}]"
            print(f"{metric.name}: {metric.value:.6g} {metric.unit} {interval}, floating point {metric.baseline:.6g}")

    if options.out:
        for path in wb.apply(model, plan(), options.to, options.out, session=session):
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
''')


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonScript:
    """One file that needs this package and nothing else: the rules inline, the model's fingerprint checked."""

    name: ClassVar = "script"
    title: ClassVar = "Python script"
    description: ClassVar = "a Python script that replays the plan: quantize, evaluate, write"
    suffix: ClassVar = ".py"
    needs_model: ClassVar = False

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write the script and read its rules back; see :class:`workbench.deployment.exporters.contract.Exporter`."""
        progress(0.0, f"writing {out.name}")
        text = script(quantized.plan, quantized.summary, out.name)
        with replacing(out, ExportError, "the script") as temporary:
            temporary.write_bytes(text.encode())
            _prove(temporary.read_text(encoding="utf-8"), quantized.plan, quantized.summary)
        progress(1.0, f"wrote {out.name}")
        return (out,)


def script(plan: Plan, summary: ModelSummary, file: str) -> str:
    """Return the text of the script, which is to be called ``file``."""
    static = [scheme for rule in plan.rules if (scheme := rule.assignment.inputs) and not _dynamic(scheme)]
    corrections = any(name in CORRECTIONS for name in plan.transforms)
    needed = f"calibrate on this data, which the plan's {'static input schemes' if static else 'corrections'} need"
    calibrate_help = needed if static or corrections else "calibrate on this data first, for algorithms that need it"
    source = summary.source
    return SCRIPT.substitute(
        file=file if file.isascii() and file.replace(".", "").replace("_", "").isalnum() else "replay.py",
        name=ascii(plan.name),
        model=ascii(source.path),
        factory=ascii(source.factory),
        weights=ascii(source.weights),
        fingerprint=ascii(summary.fingerprint),
        transforms=ascii(plan.transforms),
        rules="".join(f"    {ascii(row)},\n" for row in _rows(plan)),
        calibrate_help=ascii(calibrate_help),
    )


def _dynamic(scheme: str) -> bool:
    return isinstance(parse_scheme(scheme).granularity, PerToken)


def _rows(plan: Plan) -> list[tuple[Any, ...]]:
    given = [(rule.pattern, rule.assignment) for rule in plan.rules]
    return [(pattern, a.weights, a.inputs, a.algorithm, a.range_method, a.cache) for pattern, a in given]


def _prove(text: str, plan: Plan, summary: ModelSummary) -> None:
    """Raise ExportError unless the constants in the script are the plan's."""
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    written = (constants["PLAN"], constants["FINGERPRINT"], constants["TRANSFORMS"], constants["RULES"])
    if written != (plan.name, summary.fingerprint, plan.transforms, _rows(plan)):
        raise ExportError("the script did not read back as the plan that was written; please report")
