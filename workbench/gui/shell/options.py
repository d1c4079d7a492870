"""What a person is asked before a job starts: one small dataclass for each, drawn by forms.py."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.sensitivity.metrics import BY_NAME, SCORED

SAMPLES = {
    "label": "Samples",
    "minimum": 0,
    "maximum": 1_000_000,
    "none": "all",
    "tip": "How many samples of the data set are used; more take longer and narrow the intervals",
}
BATCH = {"label": "Batch size", "minimum": 1, "maximum": 4096, "tip": "Samples that run through the model at once"}
SEED = {"label": "Seed", "tip": "Same seed, same data, same plan: same numbers"}
DATA = {
    "label": "Data",
    "path": "file",
    "tip": "A text file, a folder of images, .npz, .npy, .pt or .safetensors; empty: the model's bundled data",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """Ranges and curvature from data."""

    data: str = field(default="", metadata=DATA)
    samples: int | None = field(default=None, metadata=SAMPLES)
    batch_size: int = field(default=8, metadata=BATCH)
    seed: int = field(default=0, metadata=SEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """The plan against the floating-point model."""

    data: str = field(default="", metadata=DATA)
    samples: int | None = field(default=None, metadata=SAMPLES)
    batch_size: int = field(default=8, metadata=BATCH)
    seed: int = field(default=0, metadata=SEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOptions:
    """Kernel times."""

    batch: int = field(
        default=1, metadata={"label": "Batch", "minimum": 1, "maximum": 65536, "tip": "Rows of the input"}
    )
    repeats: int = field(default=30, metadata={"label": "Repeats", "minimum": 3, "maximum": 10000, "tip": "Timed runs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """Layer x scheme scores; ``schemes`` is filled in with the choices."""

    metric: str = field(
        default="predicted_kl",
        metadata={
            "label": "Metric",
            "choices": tuple(
                (name, f"{BY_NAME[name].title} ({BY_NAME[name].unit})") for name in SCORED
            ),
            "tip": "What is computed for each layer and scheme; higher is worse, always",
        },
    )
    schemes: tuple[str, ...] = field(
        default=(),
        metadata={"label": "Schemes", "choices": (), "many": True, "tip": "The columns of the table"},
    )
    samples: int | None = field(default=None, metadata=SAMPLES)
    batch_size: int = field(default=8, metadata=BATCH)
    seed: int = field(default=0, metadata=SEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineOptions:
    """Measured losses where the choice of scheme is close."""

    bits_per_weight: float = field(
        default=4.5,
        metadata={
            "label": "Size", "minimum": 0.1, "maximum": 64.0, "unit": "bits per weight",
            "tip": "The size of the plan whose decisions are looked at, in bits per weight",
        },
    )  # fmt: skip
    tolerance: float = field(
        default=0.3,
        metadata={
            "label": "Tolerance", "minimum": 0.01, "maximum": 10.0, "step": 0.1, "decimals": 2,
            "tip": "Relative error of a predicted loss that a decision must withstand not to be measured; "
            "more measures more cells",
        },
    )  # fmt: skip
    samples: int | None = field(default=None, metadata=SAMPLES)
    batch_size: int = field(default=8, metadata=BATCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """Whether a plan's losses add up."""

    data: str = field(default="", metadata=DATA)
    samples: int | None = field(default=None, metadata=SAMPLES)
    batch_size: int = field(default=8, metadata=BATCH)


REFINE_TEXT = (
    "Measures the loss of the cells whose choice the prediction leaves open at this size, the closest decision first. "
    "A cancelled run keeps what it has measured; the same run started again goes on from there. A table measured on "
    "other samples is replaced."
)
AUDIT_TEXT = (
    "Measures the loss of each of the plan's layers quantized alone, of all together, and of all but one: whether the "
    "losses add up, and which layers make each other's worse. Takes two runs over the data for each layer."
)
CALIBRATE_TEXT = (
    "Runs the model on a data set and notes, for every layer, histograms of its inputs and outputs, ranges by every "
    "method, and the curvature that the predicted loss needs."
)
SCORE_TEXT = (
    "Quantizes each layer alone with each scheme and scores the damage. Predicted KL needs a calibration; measured KL "
    "runs the model for every cell and takes much longer. What rounding inputs costs adds to the plan's totals."
)
EVALUATE_TEXT = "Runs the quantized model beside the floating-point model on held-out data."
TIME_TEXT = "Times the kernels that serve the plan's schemes beside the floating-point ones, on this machine."
EXPORT_TEXT = "Writes the plan, or the quantized model, for another program."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What to write and where."""

    kind: str = field(default="plan-json", metadata={"label": "Kind", "choices": (), "tip": "Who shall read it"})
    out: str = field(default="", metadata={"label": "Place", "path": "save", "tip": "The file or folder to write"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Quantization-aware training, and what is written of it."""

    data: str = field(default="", metadata=DATA)
    epochs: float = field(
        default=0.0,
        metadata={
            "label": "Epochs", "minimum": 0.0, "maximum": 10000.0, "step": 1.0, "decimals": 2,
            "tip": "How often all samples are seen; 0: the number of steps below counts",
        },
    )  # fmt: skip
    steps: int = field(
        default=300,
        metadata={"label": "Steps", "minimum": 1, "maximum": 1_000_000, "tip": "How often the weights are changed"},
    )
    learning_rate: float = field(
        default=0.01,
        metadata={
            "label": "Learning rate", "minimum": 1e-5, "maximum": 10.0, "step": 0.005, "decimals": 5,
            "tip": "The most that a weight moves in the first step, in steps of its grid; it falls to 0 with a cosine",
        },
    )  # fmt: skip
    loss: str = field(
        default="kl",
        metadata={
            "label": "Loss", "choices": (("kl", "Divergence from floating point"), ("task", "The task's own")),
            "tip": "What is lowered: KL to the floating-point model in nats, or cross-entropy to the data's labels",
        },
    )  # fmt: skip
    samples: int = field(
        default=64,
        metadata={"label": "Samples", "minimum": 1, "maximum": 1_000_000, "tip": "How many samples are trained on"},
    )
    batch_size: int = field(default=4, metadata=BATCH)
    seed: int = field(default=0, metadata=SEED)
    kind: str = field(default="packed", metadata={"label": "Write as", "choices": (), "tip": "Who shall read it"})
    out: str = field(default="", metadata={"label": "Place", "path": "save", "tip": "The file or folder to write"})


TRAIN_TEXT = (
    "Trains new weights on the grids of the plan's schemes, from the floating-point model, and writes them. The run is "
    "saved every 50 steps and when it is cancelled: Retry goes on from there. The model itself stays as it is."
)


def weight_exporters() -> tuple[tuple[str, str], ...]:
    """Return ``(kind, label)`` of every exporter that writes weights."""
    from workbench.deployment.exporters import REGISTRY

    return tuple((member.name, getattr(member, "title", member.name)) for member in REGISTRY if member.needs_model)


def exporters() -> tuple[tuple[str, str], ...]:
    """Return ``(kind, label)`` of every exporter."""
    from workbench.deployment.exporters import REGISTRY

    return tuple((member.name, getattr(member, "title", member.name)) for member in REGISTRY)
