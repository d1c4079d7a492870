"""Commands that open a model: ``inspect``, ``calibrate``, ``apply``."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.console import step_flags
from workbench.console.command import Command
from workbench.console.report import Report
from workbench.console.reports.models import calibrated, inspected, written
from workbench.console.reports.plans import left_to_the_runtime
from workbench.console.step_flags import add_options, options_of
from workbench.deployment.exporters import exporter
from workbench.models.model import Model
from workbench.planning.plan import Plan
from workbench.progress import Progress, part_of
from workbench.session.session import Session
from workbench.steps.calibrate import CALIBRATE as STEP
from workbench.steps.calibrate import CalibrateOptions, calibrate
from workbench.steps.files.export import ExportOptions
from workbench.steps.files.open_model import OpenModelOptions
from workbench.steps.files.open_model import open as open_model
from workbench.steps.quantize import quantize


def _model(arguments: argparse.Namespace) -> Model:
    options = options_of(OpenModelOptions, arguments)
    return open_model(options.path, factory=options.factory, weights=options.weights, trust=arguments.trust)


def _inspect(arguments: argparse.Namespace, progress: Progress) -> Report:
    return inspected(_model(arguments).summary)


def _calibrate_flags(entry: argparse.ArgumentParser) -> None:
    step_flags.model(entry)
    add_options(entry, CalibrateOptions)
    entry.add_argument("--out", metavar="S.qwb", required=True, help="write the session here (required)")


def _calibrate(arguments: argparse.Namespace, progress: Progress) -> Report:
    options = options_of(CalibrateOptions, arguments)
    session = calibrate(
        _model(arguments), options.data or None, samples=options.samples, batch_size=options.batch_size,
        seed=options.seed, progress=progress,
    )  # fmt: skip
    session.save(arguments.out)
    return calibrated(session, arguments.out)


def _apply_flags(entry: argparse.ArgumentParser) -> None:
    step_flags.model(entry)
    entry.add_argument("--plan", metavar="PLAN.json", required=True, help="the plan (required)")
    entry.add_argument("--session", metavar="S.qwb", help="where calibrated ranges come from, if the plan needs them")
    add_options(entry, ExportOptions)


def _apply(arguments: argparse.Namespace, progress: Progress) -> Report:
    model, plan, options = _model(arguments), Plan.load(arguments.plan), options_of(ExportOptions, arguments)
    session = Session.load(arguments.session) if arguments.session else None
    quantized = quantize(model, plan, session=session, progress=part_of(progress, 0.0, 0.7))
    paths = exporter(options.kind).export(quantized, model, Path(options.out), part_of(progress, 0.7, 1.0))
    return written(paths, (*quantized.notes, *left_to_the_runtime(quantized.summary, plan)))


INSPECT = Command(
    name="inspect", help="Lists the layers of a model.", example="inspect path/to/model --json",
    add_flags=step_flags.model, run=_inspect,
)  # fmt: skip
CALIBRATE = Command(
    name=STEP.name, help=STEP.summary, example="calibrate path/to/model --data text.txt --out S.qwb",
    add_flags=_calibrate_flags, run=_calibrate,
)  # fmt: skip
APPLY = Command(
    name="apply", help="Quantizes a model by a plan and writes it.",
    example="apply path/to/model --plan plan.json --to safetensors --out quantized.safetensors",
    add_flags=_apply_flags, run=_apply,
)  # fmt: skip
