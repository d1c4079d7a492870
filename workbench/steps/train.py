"""Train: learn new weights on the grids of a plan's schemes, and write them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.atomic import shortened
from workbench.errors import CannotRunError, ExportError
from workbench.models.model import Model
from workbench.models.placement import Placement
from workbench.models.sources import reopen
from workbench.planning.plan import Plan
from workbench.preflight import Estimate
from workbench.progress import Progress, part_of, silent
from workbench.session.calibrated_ranges import ranges_of_plan
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.changed_files import unchanged
from workbench.steps.files.export import KIND, OUT, require_place
from workbench.steps.options import BATCH_SIZE, DATA, SAMPLES, SEED, Choice, OptionInfo, option
from workbench.steps.quantize import require_same
from workbench.steps.requirements import PLAN_CALIBRATED, QUANTIZES, RUNS
from workbench.steps.step import Context, Step, short

if TYPE_CHECKING:
    from workbench.models.data.datasets import Dataset
    from workbench.quantization.quantized_model import QuantizedModel


def weight_kinds() -> tuple[Choice, ...]:
    """Return every form that holds weights."""
    from workbench.deployment.exporters import REGISTRY

    writers = (member for member in REGISTRY if member.needs_model)
    return tuple(Choice(member.name, f"{member.title}: {member.description}") for member in writers)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """On which data, how long, how fast, and what is written of it."""

    data: str = option("", replace(DATA, empty="the calibration data"))
    epochs: float = option(0.0, OptionInfo(
        label="Passes over the data", minimum=0.0, maximum=10000.0, metavar="N",
        help="how often all samples are seen; 0: the number of steps below counts",
    ))  # fmt: skip
    steps: int = option(1000, OptionInfo(
        label="Steps", minimum=1, maximum=1_000_000, metavar="N", help="how often the weights are changed"
    ))  # fmt: skip
    learning_rate: float = option(0.01, OptionInfo(
        label="Learning rate", minimum=1e-5, maximum=10.0, increment=0.005, metavar="R",
        help="the most that a weight moves in the first step, in steps of its grid; it falls to 0 with a cosine",
    ))  # fmt: skip
    loss: Literal["kl", "task"] = option("kl", OptionInfo(
        label="Minimise",
        choices=lambda: (Choice("kl", "Divergence from floating point"), Choice("task", "The task's own")),
        help="what to minimise: KL to the floating-point model in nats, or cross-entropy to the data's labels",
    ))  # fmt: skip
    samples: int | None = option(None, SAMPLES)
    batch_size: int | None = option(None, replace(BATCH_SIZE, empty="4 texts, 64 images"))
    seed: int = option(0, SEED)
    kind: str = field(metadata=replace(KIND, choices=weight_kinds).metadata)
    out: str = field(metadata=OUT.metadata)
    checkpoint: str | None = option(None, OptionInfo(
        label="Checkpoint", path="save", metavar="FILE", form=False, empty="beside the output until it is written",
        help="save the run here every 50 steps, and go on from it",
    ))  # fmt: skip


def train(
    session: Session, plan: Plan | None = None, *, model: Model | None = None, data: str | Path | None = None,
    epochs: float = 0.0, steps: int = 1000, learning_rate: float = 0.01, batch_size: int | None = None,
    loss: Literal["kl", "task"] = "kl", samples: int | None = None, seed: int = 0, checkpoint: str | Path | None = None,
    trust: bool = False, device: str = "auto", progress: Progress = silent,
) -> QuantizedModel:  # fmt: skip
    """Train new weights on the grids of ``plan`` (default: the session's) from the floating-point model, on ``device``.

    ``data`` defaults to the calibration's; ``epochs`` above 0 decides the number of steps.  See
    :func:`workbench.quantization.train.train`; the model's own weights stay.
    Raises MissingResultError without data, DataError, CannotRunError, PlanError and its kin.
    """
    from workbench.quantization.train import train as learn

    plan = plan or session.plan
    require_same(session.model, plan, None)
    if session.model.cannot_run is not None:
        raise CannotRunError(f"{session.model.name} cannot be trained: {session.model.cannot_run}")
    model = model or reopen(session.model, trust=trust, placement=Placement(device))
    dataset = _data(session, model, data, samples, seed)
    with unchanged(model, TRAIN.title):
        return learn(
            model, plan, dataset, steps=_steps(model, dataset, epochs, batch_size) or steps, seed=seed, loss=loss,
            learning_rate=learning_rate, batch_size=batch_size, ranges=ranges_of_plan(session, plan),
            checkpoint=checkpoint, progress=progress,
        )  # fmt: skip


def _data(session: Session, model: Model, data: str | Path | None, samples: int | None, seed: int) -> Dataset:
    """Return the data, by default the calibration's."""
    if not data and session.calibration is not None:
        return session_data.recorded(model, session.calibration, samples=samples)
    return session_data.for_calibration(model, data, samples=samples, seed=seed)


def _steps(model: Model, dataset: Dataset, epochs: float, batch_size: int | None) -> int:
    """Return the steps of so many epochs, 0 for none."""
    from workbench.quantization.learning.loop import LearnOptions

    if not epochs:
        return 0
    return max(round(epochs * len(dataset) / LearnOptions(batch_size=batch_size).samples(model.summary.output)), 1)


def _run(context: Context, options: TrainOptions) -> tuple[str, ...]:
    """Train, write the result and return the paths written; the same step goes on from a cancelled run."""
    from workbench.deployment.exporters import exporter

    chosen = exporter(options.kind)
    if not chosen.needs_model:
        raise ExportError(f"{options.kind} holds no weights, which is what training changes; choose another kind")
    require_place(chosen.name, options.out, context.session.model.source)
    model, training = context.model(), asdict(options)
    del training["kind"], training["out"]
    out = Path(options.out)
    training["checkpoint"] = checkpoint = options.checkpoint or f"{out.parent / shortened(out.name, 230)}.training"
    trained = train(context.session, model=model, progress=part_of(context.progress, 0.0, 0.9), **training)
    written = session_data.shown_inputs(model, context.session)
    paths = chosen.export(trained, written, out, part_of(context.progress, 0.9, 1.0))
    if options.checkpoint is None:
        Path(checkpoint).unlink(missing_ok=True)
    return tuple(str(path) for path in paths)


def _costs(context: Context, options: TrainOptions) -> Estimate | None:
    from workbench.deployment.exporters import exporter, preparing
    from workbench.quantization.learning.loop import LearnOptions
    from workbench.steps.preflight.costs import training

    session, model = context.session, context.model()
    dataset = _data(session, model, options.data, options.samples, options.seed)
    steps = _steps(model, dataset, options.epochs, options.batch_size) or options.steps
    learn = LearnOptions(steps=steps, batch_size=options.batch_size, limit=None, loss=options.loss, seed=options.seed)
    before = preparing(exporter(options.kind), model)
    return training(model, session.plan, dataset, learn, out=options.out, preparing=before)


def _first(session: Session) -> TrainOptions:
    """Start with a run of a minute or so."""
    return TrainOptions(
        kind=weight_kinds()[0].value, out="", data=session_data.last_data(session, session.calibration), steps=300,
        samples=64, batch_size=4,
    )  # fmt: skip


TRAIN: Step[TrainOptions, tuple[str, ...]] = Step(
    runs_model=True, costs=_costs,
    name="train", title="Train", options=TrainOptions, requires=(RUNS, QUANTIZES, PLAN_CALIBRATED), run=_run,
    first=_first,
    missing=lambda session, options: session_data.missing_data(session, options.data, held=True),
    summary="Trains new weights on the grids of the plan's schemes, from the floating-point model, and writes them. "
    "The run is saved now and then, and when it is cancelled: Retry goes on from there. The model itself stays as it "
    "is.",
    heading=lambda options, session: (
        f"Train {'the plan' if session is None else session.plan.name} to {short(options.out)}"
    ),
)  # fmt: skip
