"""The commands as one table: name, help, arguments, and what runs.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.console import arguments, checks, search_options
from workbench.console.channels import CHANNELS
from workbench.console.check import CHECK
from workbench.console.command import Command, Flags, Run
from workbench.console.report import Report
from workbench.errors import DataError, WorkbenchError
from workbench.progress import Progress, part_of


def _open(options: argparse.Namespace) -> Any:
    from workbench.steps.files.open_model import open

    return open(options.model, factory=options.factory, weights=options.weights, trust=options.trust)


def _load(path: str) -> Any:
    from workbench.session.session import Session

    return Session.load(path)


def _gui(options: argparse.Namespace, progress: Progress) -> int:
    from workbench.console.launch import open_window

    return open_window(options.path, factory=options.factory, weights=options.weights, trust=options.trust)


def _demo(options: argparse.Namespace, progress: Progress) -> Report | int:
    from workbench.console import demo, launch

    if options.headless:
        return demo.run(Path(options.out), progress)
    return launch.open_window(demo.MODEL)


def _inspect(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.models import inspected

    return inspected(_open(options).summary)


def _calibrate(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.models import calibrated
    from workbench.steps.calibrate import calibrate

    session = calibrate(
        _open(options), options.data, samples=options.samples, batch_size=options.batch_size, seed=options.seed,
        progress=progress,
    )  # fmt: skip
    session.save(options.out)
    return calibrated(session, options.out)


def _sensitivity(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.interruption import keeping
    from workbench.console.reports.tables import scored
    from workbench.steps.score import score

    session = _load(options.session)
    with keeping(session, options.metric, options.out or options.session, progress) as watched:
        session = score(
            session, options.metric, schemes=options.schemes, samples=options.samples,
            batch_size=options.batch_size, seed=options.seed, algorithm=options.algorithm, trust=options.trust,
            progress=watched,
        )  # fmt: skip
    session.save(options.out or options.session)
    return scored(session.sensitivities[options.metric], session.model, session.notes)


def _plan(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.plans import planned
    from workbench.models.summary import quantizable
    from workbench.planning.plan import Plan, with_cache
    from workbench.planning.transform_names import check_names
    from workbench.steps.score import complete_table

    search_options.check(options)
    session = _load(options.session)
    if options.uniform:
        plan = Plan.uniform(quantizable(session.model.layers), options.uniform)
        plan = replace(plan, model=session.model.name, fingerprint=session.model.fingerprint)
        if options.cache:
            plan = with_cache(plan, session.model.layers, options.cache)
        session = complete_table(session, plan, options.metric, trust=options.trust, progress=progress)
    else:
        plan = search_options.find(session, options, progress)
    if options.transforms is not None:
        check_names(options.transforms)
        plan = replace(plan, transforms=tuple(options.transforms))
    replace(session, plan=plan).save(options.session)
    if options.out:
        plan.save(options.out)
    return planned(session, plan, options.metric, corrected=options.corrected)


def _evaluate(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.evaluations import evaluated
    from workbench.steps.evaluate import evaluate, with_evaluation

    session = _load(options.session)
    plan = _plan_of(options, session)
    evaluation = evaluate(
        session, plan, data=options.data, samples=options.samples, batch_size=options.batch_size, seed=options.seed,
        metric=options.metric_file, trust=options.trust, progress=progress,
    )  # fmt: skip
    report = evaluated(evaluation, session.evaluations, options.worst)
    if not options.no_save:
        replace(session, evaluations=with_evaluation(session.evaluations, evaluation)).save(options.session)
    return report


def _plan_of(options: argparse.Namespace, session: Any) -> Any:
    from workbench.planning.plan import Plan

    return Plan.load(options.plan) if options.plan else session.plan


def _apply(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.models import written
    from workbench.console.reports.plans import left_to_the_runtime
    from workbench.deployment.exporters import exporter
    from workbench.planning.plan import Plan
    from workbench.steps.quantize import quantize

    model, plan = _open(options), Plan.load(options.plan)
    session = _load(options.session) if options.session else None
    quantized = quantize(model, plan, session=session, progress=part_of(progress, 0.0, 0.7))
    paths = exporter(options.to).export(quantized, model, Path(options.out), part_of(progress, 0.7, 1.0))
    return written(paths, (*quantized.notes, *left_to_the_runtime(quantized.summary, plan)))


def _train(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.models import written
    from workbench.console.reports.plans import left_to_the_runtime
    from workbench.steps.train import TRAIN, TrainOptions

    session = _load(options.session)
    plan = _plan_of(options, session)
    chosen = TrainOptions(
        kind=options.to, out=options.out, data=options.data or "", steps=options.steps,
        learning_rate=options.learning_rate, loss=options.loss, samples=options.samples, batch_size=options.batch_size,
        seed=options.seed, checkpoint=options.checkpoint,
    )  # fmt: skip
    paths = TRAIN(replace(session, plan=plan), chosen, trust=options.trust, progress=progress)
    return written(tuple(map(Path, paths)), left_to_the_runtime(session.model, plan))


def _export(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.models import written
    from workbench.console.reports.plans import left_to_the_runtime
    from workbench.steps.files.export import export

    session = _load(options.session)
    plan = _plan_of(options, session)
    paths = export(session, options.to, options.out, plan=plan, trust=options.trust, progress=progress)
    return written(paths, left_to_the_runtime(session.model, plan))


def _report(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.models import written
    from workbench.gui.report_file import write_from_file

    return written((write_from_file(Path(options.session), Path(options.out)),))


def _bench(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.timings import timed
    from workbench.insight.estimates import predicted
    from workbench.steps.timing import kernels as runtime

    timings: list[Any] = []
    session = _load(options.session) if options.session else None
    if options.target:
        predicted(options.target, (), session)  # an unknown name is an error before anything is timed
    for number, batch in enumerate(options.batch):
        part = part_of(progress, number / len(options.batch), (number + 1) / len(options.batch))
        if session is not None:
            timings += runtime.time_kernels(session, batch=batch, repeats=options.repeats, progress=part)
        else:
            timings += runtime.time_shapes(
                options.shape, options.schemes, batch=batch, repeats=options.repeats, progress=part
            )
    if not timings:
        raise DataError("the session's plan quantizes no layer, so there is nothing to time; make a plan first")
    if session is not None and not options.no_save:
        replace(session, timings=runtime.with_timings(session.timings, timings)).save(options.session)
    estimates = predicted(options.target, timings, session) if options.target else None
    return timed(timings, estimates, ncu=options.ncu)


def _info(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.models import summarized

    path = Path(options.session)
    if not path.exists():
        raise WorkbenchError(f"there is no file {path}; give the path of a session (.qwb)")
    return summarized(_load(options.session), path)


def _explain(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.plans import explained
    from workbench.steps.explain import EXPLAIN, ExplainOptions

    session = _load(options.session)
    chosen = ExplainOptions(
        layer=options.layer, metric=options.metric, schemes=tuple(options.schemes or ()), target=options.target
    )
    return explained(EXPLAIN(replace(session, plan=_plan_of(options, session)), chosen))


def _front(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.plans import listed
    from workbench.steps.front import efficient_plans

    session = _load(options.session)
    front = efficient_plans(session, metric=options.metric, schemes=options.schemes, target=options.target)
    return listed(front, session.require_table(options.metric), options.points)


def _ranges(options: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.tables import ranges
    from workbench.session.calibrated_ranges import set_by_hand

    session = _load(options.session)
    if options.low is not None or options.high is not None:
        session = set_by_hand(session, options.layer, options.low, options.high)
        session.save(options.session)
    return ranges(session, options.layer, options.tap)


def _command(name: str, help: str, example: str, add_flags: Flags, run: Run) -> Command:
    return Command(name=name, help=help, example=example, add_flags=add_flags, run=run)


COMMANDS = (
    _command("gui", "open the window (also without a command)", "gui path/to/model", arguments.gui, _gui),
    _command("demo", "the bundled model, in the window or headless", "demo --headless --out demo-output",
             arguments.demo, _demo),
    _command("inspect", "list the layers of a model", "inspect path/to/model --json", arguments.model, _inspect),
    _command("calibrate", "collect statistics, ranges and curvature",
             "calibrate path/to/model --data text.txt --out S.qwb", arguments.calibrate, _calibrate),
    _command("sensitivity", "score every layer in every scheme", "sensitivity S.qwb --metric predicted_kl",
             arguments.sensitivity, _sensitivity),
    _command("plan", "find the best plan for a budget", "plan S.qwb --bits-per-weight 4.5 --out plan.json",
             arguments.plan, _plan),
    _command("explain", "say why a plan's layers have their schemes", "explain S.qwb --layer '*.mlp.*'",
             arguments.explain, _explain),
    _command("front", "list the best plan of every size", "front S.qwb --points 12", arguments.front, _front),
    _command("ranges", "list the calibrated ranges, or set one by hand", "ranges S.qwb --layer '*.down_proj'",
             arguments.ranges, _ranges),
    _command("evaluate", "measure a plan against the floating-point model", "evaluate S.qwb --plan plan.json",
             arguments.evaluate, _evaluate),
    _command("audit", "check whether a plan's losses add up", "audit S.qwb --plan plan.json --samples 16",
             arguments.audit, checks.audit),
    _command("quality", "judge whether the calibration data are enough", "quality S.qwb", arguments.quality,
             checks.quality),
    _command("refine", "measure the losses that decide closely", "refine S.qwb --bits-per-weight 4.5",
             arguments.refine, checks.refine),
    _command("error-budget", "signal to noise along the depth of the network", "error-budget S.qwb --plan plan.json",
             arguments.error_budget, checks.error_budget),
    _command("outliers", "list the tokens that carry massive values", "outliers S.qwb --most 20", arguments.outliers,
             checks.outliers),
    _command("compare", "compare two sessions layer by layer", "compare A.qwb B.qwb", arguments.compare,
             checks.compare),
    _command("apply", "quantize a model by a plan and write it",
             "apply path/to/model --plan plan.json --to safetensors --out quantized.safetensors",
             arguments.apply, _apply),
    _command("train", "train new weights on a plan's number formats and write them",
             "train S.qwb --plan plan.json --steps 1000 --to safetensors --out trained.safetensors",
             arguments.train, _train),
    _command("export", "write a session's plan or quantized model", "export S.qwb --to script --out replay.py",
             arguments.export, _export),
    _command("report", "write a session's printable report", "report S.qwb report.html", arguments.report, _report),
    _command("bench", "time the kernels of this machine", "bench --shape 4096x4096 --batch 1",
             arguments.bench, _bench),
    CHECK,
    CHANNELS,
    _command("info", "say what a session holds", "info S.qwb", arguments.session, _info),
)  # fmt: skip
