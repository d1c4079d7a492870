"""The commands as one table: name, help, arguments, what runs, and the text form of the result.

Each ``run`` returns the object that ``--json`` prints; ``text`` makes the readable form of that same object, so the two
never disagree.  Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.console import arguments, search_options
from workbench.errors import DataError, WorkbenchError
from workbench.progress import Progress, part_of

Result = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of the command line."""

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Progress], Result | None]
    text: Callable[[Result], str]
    description: str = ""


def _open(options: argparse.Namespace) -> Any:
    from workbench.steps import tasks

    return tasks.open(options.model, factory=options.factory, weights=options.weights, trust=options.trust)


def _load(path: str) -> Any:
    from workbench.session.session import Session

    return Session.load(path)


def _gui(options: argparse.Namespace, progress: Progress) -> None:
    from workbench.console.launch import open_window

    open_window(options.path, factory=options.factory, weights=options.weights, trust=options.trust)


def _demo(options: argparse.Namespace, progress: Progress) -> Result | None:
    from workbench.console import demo, launch

    if options.headless:
        return demo.run(Path(options.out), progress)
    launch.open_window(demo.MODEL)
    return None


def _inspect(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports

    return reports.inspect(_open(options).summary)


def _calibrate(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.steps import tasks

    session = tasks.calibrate(
        _open(options), options.data, samples=options.samples, batch_size=options.batch_size, seed=options.seed,
        progress=progress,
    )  # fmt: skip
    session.save(options.out)
    return reports.calibrate(session, options.out)


def _sensitivity(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.console.interruption import keeping
    from workbench.steps import tasks

    session = _load(options.session)
    with keeping(session, options.metric, options.out or options.session, progress) as watched:
        session = tasks.score(
            session, options.metric, schemes=options.schemes, samples=options.samples,
            batch_size=options.batch_size, seed=options.seed, algorithm=options.algorithm, trust=options.trust,
            progress=watched,
        )  # fmt: skip
    session.save(options.out or options.session)
    return reports.sensitivity(session.sensitivities[options.metric], session.model, session.notes)


def _plan(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import plan_reports
    from workbench.models.summary import quantizable
    from workbench.planning.plan import Plan, with_cache
    from workbench.planning.transform_names import check_names
    from workbench.steps import tasks

    search_options.check(options)
    session = _load(options.session)
    if options.uniform:
        plan = Plan.uniform(quantizable(session.model.layers), options.uniform)
        plan = replace(plan, model=session.model.name, fingerprint=session.model.fingerprint)
        if options.cache:
            plan = with_cache(plan, session.model.layers, options.cache)
        session = tasks.complete_table(session, plan, options.metric, trust=options.trust, progress=progress)
    else:
        plan = search_options.find(session, options, progress)
    if options.transforms is not None:
        check_names(options.transforms)
        plan = replace(plan, transforms=tuple(options.transforms))
    replace(session, plan=plan).save(options.session)
    if options.out:
        plan.save(options.out)
    return plan_reports.plan(session, plan, options.metric, corrected=options.corrected)


def _evaluate(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import evaluations
    from workbench.steps import tasks
    from workbench.steps.requests import with_evaluation

    session = _load(options.session)
    plan = _plan_of(options, session)
    evaluation = tasks.evaluate(
        session, plan, data=options.data, samples=options.samples, batch_size=options.batch_size, seed=options.seed,
        metric=options.metric_file, trust=options.trust, progress=progress,
    )  # fmt: skip
    found = evaluations.evaluated(evaluation, session.evaluations, options.worst)
    if not options.no_save:
        replace(session, evaluations=with_evaluation(session.evaluations, evaluation)).save(options.session)
    return found


def _plan_of(options: argparse.Namespace, session: Any) -> Any:
    from workbench.planning.plan import Plan

    return Plan.load(options.plan) if options.plan else session.plan


def _apply(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import plan_reports, reports
    from workbench.deployment.exporters import exporter
    from workbench.planning.plan import Plan
    from workbench.steps import tasks

    model, plan = _open(options), Plan.load(options.plan)
    session = _load(options.session) if options.session else None
    quantized = tasks.quantize(model, plan, session=session, progress=part_of(progress, 0.0, 0.7))
    paths = exporter(options.to).export(quantized, model, Path(options.out), part_of(progress, 0.7, 1.0))
    return reports.written(paths, (*quantized.notes, *plan_reports.left_to_the_runtime(quantized.summary, plan)))


def _train(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import plan_reports, reports
    from workbench.steps import training

    session = _load(options.session)
    plan = _plan_of(options, session)
    paths = training.train_and_export(
        session, options.to, options.out, plan=plan, data=options.data, steps=options.steps,
        learning_rate=options.learning_rate, loss=options.loss, samples=options.samples, batch_size=options.batch_size,
        seed=options.seed, checkpoint=options.checkpoint, trust=options.trust, progress=progress,
    )  # fmt: skip
    return reports.written(paths, plan_reports.left_to_the_runtime(session.model, plan))


def _export(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import plan_reports, reports
    from workbench.steps import tasks

    session = _load(options.session)
    plan = _plan_of(options, session)
    paths = tasks.export(session, options.to, options.out, plan=plan, trust=options.trust, progress=progress)
    return reports.written(paths, plan_reports.left_to_the_runtime(session.model, plan))


def _report(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.gui.report.report import write_from_file

    return reports.written((write_from_file(Path(options.session), Path(options.out)),))


def _bench(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.insight.estimates import predicted
    from workbench.steps import timings as runtime

    timings: list[Any] = []
    session = _load(options.session) if options.session else None
    if options.target:
        predicted(options.target, (), session)  # an unknown name is told before anything is timed
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
    told = predicted(options.target, timings, session) if options.target else None
    return reports.bench(timings, told, ncu=options.ncu)


def _info(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports

    path = Path(options.session)
    if not path.exists():
        raise WorkbenchError(f"there is no file {path}; give the path of a session (.qwb)")
    return reports.info(_load(options.session), path)


def _check(name: str) -> Callable[[argparse.Namespace, Progress], Result]:
    def run(options: argparse.Namespace, progress: Progress) -> Result:
        from workbench.console import checks

        found: Result = getattr(checks, name)(options, progress)
        return found

    return run


def _explained(name: str) -> Callable[[argparse.Namespace, Progress], Result]:
    def run(options: argparse.Namespace, progress: Progress) -> Result:
        from workbench.console import explanations

        found: Result = getattr(explanations, name)(options)
        return found

    return run


def _ranges(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import ranges

    return ranges.ranges(options)


def _as_text(name: str) -> Callable[[Result], str]:
    def text(result: Result) -> str:
        from workbench.console import (
            check_reports,
            evaluations,
            explanations,
            outlier_reports,
            plan_reports,
            ranges,
            reports,
        )

        modules = (reports, plan_reports, check_reports, evaluations, explanations, outlier_reports, ranges)
        return str(next(getattr(m, f"{name}_text") for m in modules if hasattr(m, f"{name}_text"))(result))

    return text


def _command(
    name: str,
    help: str,
    example: str,
    arguments: Callable[[argparse.ArgumentParser], None],
    run: Callable[[argparse.Namespace, Progress], Result | None],
    report: str = "",
) -> Command:
    return Command(
        name=name, help=help, example=f"workbench {example}", arguments=arguments, run=run,
        text=_as_text(report or name),
    )  # fmt: skip


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
             arguments.explain, _explained("explain")),
    _command("front", "list the best plan of every size", "front S.qwb --points 12", arguments.front,
             _explained("front")),
    _command("ranges", "list the calibrated ranges, or set one by hand", "ranges S.qwb --layer '*.down_proj'",
             arguments.ranges, _ranges),
    _command("evaluate", "measure a plan against the floating-point model", "evaluate S.qwb --plan plan.json",
             arguments.evaluate, _evaluate, "evaluated"),
    _command("audit", "check whether a plan's losses add up", "audit S.qwb --plan plan.json --samples 16",
             arguments.audit, _check("audit")),
    _command("quality", "judge whether the calibration data are enough", "quality S.qwb", arguments.quality,
             _check("quality")),
    _command("refine", "measure the losses that decide closely", "refine S.qwb --bits-per-weight 4.5",
             arguments.refine, _check("refine")),
    _command("error-budget", "signal to noise along the depth of the network", "error-budget S.qwb --plan plan.json",
             arguments.error_budget, _check("error_budget"), "error_budget"),
    _command("outliers", "list the tokens that carry massive values", "outliers S.qwb --most 20", arguments.outliers,
             _check("outliers")),
    _command("compare", "compare two sessions layer by layer", "compare A.qwb B.qwb", arguments.compare,
             _check("compare")),
    _command("apply", "quantize a model by a plan and write it",
             "apply path/to/model --plan plan.json --to safetensors --out quantized.safetensors",
             arguments.apply, _apply, "written"),
    _command("train", "train new weights on a plan's number formats and write them",
             "train S.qwb --plan plan.json --steps 1000 --to safetensors --out trained.safetensors",
             arguments.train, _train, "written"),
    _command("export", "write a session's plan or quantized model", "export S.qwb --to script --out replay.py",
             arguments.export, _export, "written"),
    _command("report", "write a session's printable report", "report S.qwb report.html", arguments.report, _report,
             "written"),
    _command("bench", "time the kernels of this machine", "bench --shape 4096x4096 --batch 1",
             arguments.bench, _bench),
    _command("info", "say what a session holds", "info S.qwb", arguments.session, _info),
)  # fmt: skip
