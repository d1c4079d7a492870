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

from workbench.console import search_options
from workbench.console.terminal import parse_size
from workbench.errors import DataError, WorkbenchError
from workbench.planning.sensitivity import METRICS
from workbench.progress import Progress

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


# ---- arguments -------------------------------------------------------------------------------------------------------


def _model(entry: argparse.ArgumentParser, required: bool = True) -> None:
    entry.add_argument(
        "model", metavar="MODEL", nargs=None if required else "?",
        help="a Hugging Face folder, a torch.export .pt2 file, a .safetensors file or folder, or a Python file",
    )  # fmt: skip
    entry.add_argument("--factory", metavar="NAME", help="the function of a Python file that builds it (default build)")
    entry.add_argument("--weights", metavar="FILE", help="the state dict for a Python file (.safetensors, .pt, .pth)")
    _trust(entry)


def _trust(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("--trust", action="store_true", help="allow the Python file to run (only your own files)")


def _session(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", metavar="S.qwb", help="a session file")
    _trust(entry)


def _sampling(entry: argparse.ArgumentParser, data: str = "") -> None:
    if data:
        entry.add_argument("--data", metavar="DATA", help=data)
    entry.add_argument("--samples", type=_positive, metavar="N", help="how many samples (default: all)")
    entry.add_argument("--batch-size", type=_positive, default=8, metavar="N", help="samples in a batch (default 8)")
    entry.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every random choice (default 0)")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _bits(text: str) -> float:
    try:
        bits = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bits") from None
    if not 0 < bits <= 64:
        raise argparse.ArgumentTypeError(f"{text} is no number of bits between 0 and 64")
    return bits


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _shape(text: str) -> tuple[int, int]:
    rows, _, columns = text.lower().partition("x")
    try:
        return _positive(rows), _positive(columns)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; expected for example 4096x4096") from None


def _search_arguments(entry: argparse.ArgumentParser) -> None:
    _session(entry)
    budget = entry.add_mutually_exclusive_group()
    budget.add_argument("--bits-per-weight", type=_bits, metavar="B", help="mean bits of the quantizable weights")
    budget.add_argument("--size", type=_size, metavar="SIZE", help="bytes of all tensors, such as 120MB or 1.5GiB")
    budget.add_argument("--uniform", metavar="SCHEME", help="one scheme everywhere, such as int4-g32-asym")
    entry.add_argument("--metric", choices=METRICS, help="what to minimise (default: the best table in the session)")
    entry.add_argument("--schemes", type=_names, metavar="A,B,...", help="allow only these schemes")
    entry.add_argument(
        "--transforms", type=_names, metavar="A,B,...",
        help="rewrite the model first: fold-norms, equalize, awq, smoothquant, rotation-heads, rotation; or correct it "
        "after rounding: bias-correction, norm-reestimation (default: as the session's plan)",
    )  # fmt: skip
    search_options.add_search_options(entry)
    entry.add_argument("--out", metavar="PLAN.json", help="write the plan here")


def _score_arguments(entry: argparse.ArgumentParser) -> None:
    _session(entry)
    entry.add_argument("--metric", choices=METRICS, default="predicted_kl", help="default predicted_kl")
    entry.add_argument("--schemes", type=_names, metavar="A,B,...", help="score these schemes (default: a dozen)")
    entry.add_argument("--algorithm", default="rtn-clip", metavar="NAME", help="how to round (default rtn-clip)")
    _sampling(entry)
    entry.add_argument("--out", metavar="S2.qwb", help="write the result here instead of back into S.qwb")


def _calibrate_arguments(entry: argparse.ArgumentParser) -> None:
    _model(entry)
    _sampling(entry, "a text file, an image folder, an array file or a bundled set (demo:language-model)")
    entry.add_argument("--out", metavar="S.qwb", required=True, help="write the session here")


def _evaluate_arguments(entry: argparse.ArgumentParser) -> None:
    _session(entry)
    entry.add_argument("--plan", metavar="PLAN.json", help="the plan (default: the session's current plan)")
    _sampling(entry, "evaluation data (default: the set that belongs to the calibration data, disjoint from it)")
    entry.add_argument("--no-save", action="store_true", help="do not add the evaluation to the session")


def _apply_arguments(entry: argparse.ArgumentParser) -> None:
    _model(entry)
    entry.add_argument("--plan", metavar="PLAN.json", required=True, help="the plan")
    entry.add_argument("--session", metavar="S.qwb", help="where calibrated ranges come from, if the plan needs them")
    _target(entry)


def _export_arguments(entry: argparse.ArgumentParser) -> None:
    _session(entry)
    entry.add_argument("--plan", metavar="PLAN.json", help="the plan (default: the session's current plan)")
    _target(entry)


def _train_arguments(entry: argparse.ArgumentParser) -> None:
    _session(entry)
    entry.add_argument("--plan", metavar="PLAN.json", help="the plan (default: the session's current plan)")
    entry.add_argument("--data", metavar="DATA", help="what to train on (default: the calibration data)")
    entry.add_argument("--steps", type=_positive, default=1000, metavar="N", help="batches to train on (default 1000)")
    entry.add_argument("--learning-rate", type=float, default=0.01, metavar="R", help="in steps of the grid (0.01)")
    entry.add_argument(
        "--loss", choices=("kl", "task"), default="kl", help="kl to the original model (default), or task"
    )
    entry.add_argument("--samples", type=_positive, metavar="N", help="how many samples (default: all)")
    entry.add_argument(
        "--batch-size", type=_positive, metavar="N", help="samples in a batch (default 4 texts, 64 images)"
    )
    entry.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every random choice (default 0)")
    entry.add_argument("--checkpoint", metavar="FILE", help="save the run here, and go on from it")
    _target(entry)


def _target(entry: argparse.ArgumentParser) -> None:
    from workbench.deployment import EXPORTERS

    kinds = "; ".join(f"{target.name}: {target.description}" for target in EXPORTERS)
    entry.add_argument("--to", metavar="KIND", required=True, help=kinds)
    entry.add_argument("--out", metavar="PATH", required=True, help="the file or folder to write")


def _bench_arguments(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", nargs="?", metavar="S.qwb", help="time the layers of this session's plan")
    entry.add_argument("--shape", type=_shape, default=(4096, 4096), metavar="OxI", help="outputs x inputs")
    entry.add_argument("--schemes", type=_names, default=("int8-channel", "int4-g32-asym"), metavar="A,B,...")
    entry.add_argument("--batch", type=_positive, default=1, metavar="N", help="rows of the input (default 1)")
    entry.add_argument("--repeats", type=_positive, default=30, metavar="N", help="timed repeats (default 30)")


def _demo_arguments(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("--headless", action="store_true", help="run the whole job without a display")
    entry.add_argument("--out", metavar="DIR", default="demo-output", help="where --headless writes (demo-output)")


def _gui_arguments(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("path", nargs="?", metavar="MODEL|S.qwb", help="a model or a session to open")
    entry.add_argument("--factory", metavar="NAME", help="the function of a Python file that builds it")
    entry.add_argument("--weights", metavar="FILE", help="the state dict for a Python file")
    _trust(entry)


# ---- what runs -------------------------------------------------------------------------------------------------------


def _open(options: argparse.Namespace) -> Any:
    from workbench.runtime import tasks

    return tasks.open(options.model, factory=options.factory, weights=options.weights, trust=options.trust)


def _load(path: str) -> Any:
    from workbench.storage.session import Session

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
    from workbench.runtime import tasks

    session = tasks.calibrate(
        _open(options), options.data, samples=options.samples, batch_size=options.batch_size, seed=options.seed,
        progress=progress,
    )  # fmt: skip
    session.save(options.out)
    return reports.calibrate(session, options.out)


def _sensitivity(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.runtime import tasks

    session = tasks.sensitivity(
        _load(options.session), options.metric, schemes=options.schemes, samples=options.samples,
        batch_size=options.batch_size, seed=options.seed, algorithm=options.algorithm, trust=options.trust,
        progress=progress,
    )  # fmt: skip
    session.save(options.out or options.session)
    return reports.sensitivity(session.sensitivities[options.metric])


def _plan(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.models.summary import quantizable
    from workbench.planning.plan import Plan
    from workbench.planning.transforms.names import check_names
    from workbench.runtime import tasks

    search_options.check(options)
    session = _load(options.session)
    if options.uniform:
        plan = Plan.uniform(quantizable(session.model.layers), options.uniform)
        plan = replace(plan, model=session.model.name, fingerprint=session.model.fingerprint)
        session = tasks.complete_table(session, plan, options.metric, trust=options.trust, progress=progress)
    else:
        plan = search_options.find(session, options, progress)
    if options.transforms is not None:
        check_names(options.transforms)
        plan = replace(plan, transforms=tuple(options.transforms))
    replace(session, plan=plan).save(options.session)
    if options.out:
        plan.save(options.out)
    return reports.plan(session, plan, options.metric)


def _evaluate(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.runtime import tasks

    session = _load(options.session)
    plan = _plan_of(options, session)
    evaluation = tasks.evaluate(
        session, plan, data=options.data, samples=options.samples, batch_size=options.batch_size, seed=options.seed,
        trust=options.trust, progress=progress,
    )  # fmt: skip
    if not options.no_save:
        replace(session, evaluations=(*session.evaluations, evaluation)).save(options.session)
    return reports.evaluate(evaluation)


def _plan_of(options: argparse.Namespace, session: Any) -> Any:
    from workbench.planning.plan import Plan

    return Plan.load(options.plan) if options.plan else session.plan


def _apply(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.planning.plan import Plan
    from workbench.runtime import tasks

    model, plan = _open(options), Plan.load(options.plan)
    session = _load(options.session) if options.session else None
    return reports.written(tasks.apply(model, plan, options.to, options.out, session=session, progress=progress))


def _train(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.runtime import training

    session = _load(options.session)
    paths = training.train_and_export(
        session, options.to, options.out, plan=_plan_of(options, session), data=options.data, steps=options.steps,
        learning_rate=options.learning_rate, loss=options.loss, samples=options.samples, batch_size=options.batch_size,
        seed=options.seed, checkpoint=options.checkpoint, trust=options.trust, progress=progress,
    )  # fmt: skip
    return reports.written(paths)


def _export(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.runtime import tasks

    session = _load(options.session)
    plan = _plan_of(options, session)
    return reports.written(
        tasks.export(session, options.to, options.out, plan=plan, trust=options.trust, progress=progress)
    )


def _bench(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports
    from workbench.runtime import tasks

    if options.session:
        timings = tasks.time_kernels(
            _load(options.session), batch=options.batch, repeats=options.repeats, progress=progress
        )
        if not timings:
            raise DataError("the session's plan quantizes no layer, so there is nothing to time; make a plan first")
    else:
        timings = tasks.time_shapes(
            options.shape, options.schemes, batch=options.batch, repeats=options.repeats, progress=progress
        )
    return reports.bench(timings)


def _info(options: argparse.Namespace, progress: Progress) -> Result:
    from workbench.console import reports

    path = Path(options.session)
    if not path.exists():
        raise WorkbenchError(f"there is no file {path}; give the path of a session (.qwb)")
    return reports.info(_load(options.session), path)


def _as_text(name: str) -> Callable[[Result], str]:
    def text(result: Result) -> str:
        from workbench.console import reports

        return str(getattr(reports, f"{name}_text")(result))

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
    _command("gui", "open the window (also without a command)", "gui path/to/model", _gui_arguments, _gui),
    _command("demo", "the bundled model, in the window or headless", "demo --headless --out demo-output",
             _demo_arguments, _demo),
    _command("inspect", "list the layers of a model", "inspect path/to/model --json", _model, _inspect),
    _command("calibrate", "collect statistics, ranges and curvature",
             "calibrate path/to/model --data text.txt --out S.qwb", _calibrate_arguments, _calibrate),
    _command("sensitivity", "score every layer in every scheme", "sensitivity S.qwb --metric predicted_kl",
             _score_arguments, _sensitivity),
    _command("plan", "find the best plan for a budget", "plan S.qwb --bits-per-weight 4.5 --out plan.json",
             _search_arguments, _plan),
    _command("evaluate", "measure a plan against the floating-point model", "evaluate S.qwb --plan plan.json",
             _evaluate_arguments, _evaluate),
    _command("apply", "quantize a model by a plan and write it",
             "apply path/to/model --plan plan.json --to safetensors --out quantized.safetensors",
             _apply_arguments, _apply, "written"),
    _command("train", "train new weights on a plan's number formats and write them",
             "train S.qwb --plan plan.json --steps 1000 --to safetensors --out trained.safetensors",
             _train_arguments, _train, "written"),
    _command("export", "write a session's plan or quantized model", "export S.qwb --to script --out replay.py",
             _export_arguments, _export, "written"),
    _command("bench", "time the kernels of this machine", "bench --shape 4096x4096 --batch 1",
             _bench_arguments, _bench),
    _command("info", "say what a session holds", "info S.qwb", _session, _info),
)  # fmt: skip
