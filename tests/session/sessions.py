"""Sessions for the tests: everything filled, every awkward value, made from a seed."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from workbench.measurement.evaluation import Changed, Evaluation, Metric, Timing
from workbench.models.data.record import DataRecord
from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.numerics.curvature import Curvature
from workbench.numerics.ranges import Range
from workbench.numerics.statistics.layer_statistics import BINS, LayerStatistics
from workbench.numerics.statistics.outliers import TokenOutliers
from workbench.planning.plan import Assignment, Plan, Rule
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.sensitivity.error_budget import BudgetPair, ErrorBudget, NoiseGains
from workbench.sensitivity.table import Sensitivity
from workbench.session.budget import Budget, BudgetUnit
from workbench.session.results import StepResult
from workbench.session.session import TAPS, Environment, Session

ODD_NAMES = ("модель/слой.0", "a\0b", "100 % ␀ 層", "..", "re:.*[x]", "\udcff broken", "a b\tc\n")


def environment() -> Environment:
    return Environment(workbench="0.1.0", python="3.11.0", numpy="2.0.0", torch="2.8.0", device="cpu", threads=2)


def layer(name: str, rows: int, columns: int, **changes: Any) -> Layer:
    facts: dict[str, Any] = {
        "kind": LayerKind.LINEAR,
        "parameter": f"{name}.weight",
        "dtype": "float32",
        "axes": (0, 1),
    }
    return Layer(name=name, shape=(rows, columns), **(facts | changes))


def summary(layers: tuple[Layer, ...]) -> ModelSummary:
    return ModelSummary(
        name="ein Modell",
        source=ModelSource(kind="python_module", path="models/\udce4.py", factory="build", weights=None),
        fingerprint="sha256:" + "0" * 64,
        output=OutputKind.TOKEN_LOGITS,
        layers=layers,
        others=(
            StoredTensor(name="norm.weight", shape=(8,), dtype="bfloat16"),
            StoredTensor(name="x", shape=(), dtype="int64"),
        ),
        non_finite=(layers[0].name,),
    )


def statistics(random: np.random.Generator, channels: int) -> LayerStatistics:
    counts = np.zeros(BINS, np.int64)
    counts[900:1100] = random.integers(0, 1000, 200)
    channel = random.standard_normal((3, channels)).astype(np.float32)
    return LayerStatistics(
        count=int(counts.sum()), non_finite=3, minimum=-1.25, maximum=float(random.standard_normal()), total=1 / 3,
        total_squares=1e-320, exponent=-100, counts=counts,
        channel_absmax=channel[0], channel_minimum=channel[1], channel_maximum=channel[2],
    )  # fmt: skip


def metric(random: np.random.Generator, name: str) -> Metric:
    values = random.standard_normal(5)
    values[2] = np.nan
    return Metric(
        name=name, unit="nat", value=float("nan"), baseline=-0.0, low=float("-inf"), high=1e300, samples=5,
        higher_is_better=False, per_sample=values, weights=np.arange(5.0),
        baseline_per_sample=None if name == "kl" else values[::-1].copy(),
    )  # fmt: skip


def full_session(seed: int = 0) -> Session:
    """Return a session with every field filled, odd names, NaN with a payload, subnormals and infinities."""
    random = np.random.default_rng(seed)
    sizes = [(4, 6), (3, 5), (8, 2), (2, 2), (1, 1), (5, 3), (2, 9)]
    layers = tuple(layer(name, *size) for name, size in zip(ODD_NAMES, sizes, strict=True))
    changed: dict[str, Any] = {"tied_to": layers[0].name, "shares_with": ("..", "a\0b"), "block": "block/0", "macs": 12}
    layers = (*layers[:-1], dataclasses.replace(layers[-1], **changed))
    score = random.standard_normal((7, 2))
    score.view(np.uint64)[0, 0] = 0x7FF8_0000_DEAD_BEEF
    score[1, 1], score[2, 0] = np.inf, -0.0
    table = Sensitivity(
        metric="predicted_kl", unit="nats", layers=ODD_NAMES, schemes=("int4-g32-asym", "int8-channel"), score=score,
        samples=16, seed=7, data_hash="sha256:1", error=np.abs(score[:, 0]), uncorrected=score[:, ::-1].copy(),
        complete=False,
    )  # fmt: skip
    plan = Plan(
        rules=(
            Rule(
                pattern=ODD_NAMES[0],
                assignment=Assignment(weights="int4-g32-asym", inputs="int8-token", cache="int4-token"),
            ),
            Rule(pattern="re:.*", assignment=Assignment(weights="keep", algorithm="rtn", range_method="mse")),
        ),
        name="Größe / 4.5", model="ein Modell", fingerprint="sha256:" + "0" * 64,
    )  # fmt: skip
    one_range = Range(low=-1.5, high=0.1, method="mse", clipped=1e-7)
    return Session(
        model=summary(layers),
        environment=environment(),
        plan=plan,
        calibration=DataRecord(name="t", path="t.txt", split="calibration", samples=8, seed=1, content_hash="sha256:2"),
        evaluation=DataRecord(name="e", path="e.txt", split="evaluation", samples=9, seed=2, content_hash="sha256:5"),
        statistics={(each.name, tap): statistics(random, each.matrix[0]) for each in layers for tap in TAPS},
        ranges={(ODD_NAMES[1], "input", "mse"): one_range, (ODD_NAMES[1], "input", "min-max"): one_range},
        active_ranges={(ODD_NAMES[1], "input"): dataclasses.replace(one_range, method="manual")},
        curvature={
            layer.name: curvature(random, *layer.matrix, full=index % 2 == 0) for index, layer in enumerate(layers)
        },
        outliers={
            (ODD_NAMES[0], "input"): outliers(random, 16, ("a\0b", "層", "\udcff") + ("",) * 13),
            (ODD_NAMES[1], "input"): outliers(random, 3, ()), (ODD_NAMES[1], "output"): outliers(random, 0, ()),
        },
        sensitivities={"predicted_kl": table, "a/b": dataclasses.replace(table, metric="a/b")},
        plans={"z/1": plan, "a": Plan(), "": dataclasses.replace(plan, fingerprint=None)},
        locked=frozenset(ODD_NAMES[:2]), target="gguf", budget=Budget(amount=6.25, unit=BudgetUnit.MEGABYTES),
        evaluations=(evaluation(random, 0.25), evaluation(random, None)),
        timings=(timing(random, 3), timing(random, 4)),
        error_budget=budget(np.random.default_rng(seed)),
        audit=audit(np.random.default_rng(seed)),
        results={
            "a/step": StepResult(
                facts={"text": "a\0b", "count": 3, "share": 0.25, "whole": True},
                columns={"layer/name": ODD_NAMES[:3], "value": np.array([1.5, -0.0, np.inf]), "rows": np.arange(3)},
            ),
            "empty": StepResult(),
        },
        notes=("a note\nof two lines", ""),
    )  # fmt: skip


def outliers(random: np.random.Generator, count: int, text: tuple[str, ...]) -> TokenOutliers:
    columns = {name: random.integers(-1, 99, count) for name in ("channel", "sample", "position", "width", "token")}
    value = -np.sort(-random.random(count)).astype(np.float32)
    return TokenOutliers(counts=random.integers(0, 99, 512), value=value, text=text, **columns)


def curvature(random: np.random.Generator, rows: int, columns: int, *, full: bool) -> Curvature:
    matrix = random.standard_normal((columns, columns)).astype(np.float32) if full else None
    return Curvature(rows=random.random(rows), columns=random.random(columns), full=matrix, count=64)


def evaluation(random: np.random.Generator, predicted: float | None) -> Evaluation:
    return Evaluation(
        plan_name="p", plan_hash="sha256:3", data_name="d", data_hash="sha256:4", bits_per_weight=4.5, nbytes=123,
        predicted_kl=predicted, metrics={name: metric(random, name) for name in ("kl", "top/1")},
        changed=() if predicted is None else (changed(3, 7), changed(0, -1)), notes=() if predicted else ("a", "b\nc"),
    )  # fmt: skip


def changed(sample: int, position: int) -> Changed:
    return Changed(
        sample=sample, position=position, kl=0.125, flipped=position < 0, context="a\0b\n", baseline="層",
        quantized="", actual=" x",
    )  # fmt: skip


def budget(random: np.random.Generator) -> BudgetPair:
    layers, blocks = ODD_NAMES[:3], ("block/0", "output")
    gain, share = random.random((3, 2)), random.random((3, 2))
    predicted = ErrorBudget(blocks=blocks, noise=share.sum(axis=0), layers=layers, share=share)
    return BudgetPair(
        plan_name="p", plan_hash="sha256:3", measured=ErrorBudget(blocks=blocks, noise=random.random(2)),
        gains=NoiseGains(layers=layers, blocks=blocks, gain=gain, samples=8, seed=1), predicted=predicted,
    )  # fmt: skip


def audit(random: np.random.Generator) -> PlanAudit:
    predicted, alone, joined = random.random((3, 4))
    predicted[1] = np.nan
    result = Audit(
        layers=ODD_NAMES[:4], predicted=predicted, alone=alone, joined=joined, whole=0.1 + 0.2, samples=16,
        notes=("batch 3 was left out", "層"), predicted_interaction=-0.1,
    )  # fmt: skip
    return PlanAudit(plan_name="p/層", plan_hash="sha256:3", rounded_inputs=2, cached=1, audit=result)


def timing(random: np.random.Generator, repeats: int) -> Timing:
    return Timing(
        layer="a", scheme="int8-channel", kernel="torch int8", baseline_kernel="torch fp32", shape=(4, 6), batch=1,
        device="cpu", note="", samples=random.random(repeats), baseline_samples=random.random(repeats + 1),
    )  # fmt: skip


@cache
def full_file() -> bytes:
    """Return the file of a full session, which takes a second to write."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.qwb"
        full_session().save(path)
        return path.read_bytes()


def small_session() -> Session:
    """Return a session of a model and a plan alone, saved in half the time of a full one."""
    layers = (layer("first", 8, 8), layer("second", 8, 8))
    return Session(model=summary(layers), environment=environment(), plan=Plan().assign(["first"], weights="int4-g32"))


def large_session(layers: int, channels: int = 256) -> Session:
    """Return a session of many layers, with statistics of every tap, curvature and a table of ten schemes."""
    random = np.random.default_rng(1)
    names = tuple(f"model.layers.{index // 10}.part.{index % 10}" for index in range(layers))
    items = [statistics(random, channels) for _ in range(50)]
    return Session(
        model=summary(tuple(layer(name, channels, channels) for name in names)),
        environment=environment(),
        plan=Plan().assign(names, weights="int4-g32-asym"),
        statistics={(name, tap): items[index % 50] for index, name in enumerate(names) for tap in TAPS},
        ranges={
            (name, "input", method): Range(low=-1.0, high=1.0, method=method, clipped=0.0)
            for name in names for method in ("min-max", "mse")
        },
        curvature={name: curvature(random, channels, channels, full=False) for name in names},
        sensitivities={
            "predicted_kl": Sensitivity(
                metric="predicted_kl", unit="nats", layers=names, schemes=tuple("abcdefghij"),
                score=random.random((layers, 10)), samples=1, seed=0,
            )
        },
    )  # fmt: skip


def identical(left: Any, right: Any) -> bool:
    """Tell whether two values are the same: types, keys, and every bit of every number and array."""
    if isinstance(left, np.ndarray):
        same = left.dtype == right.dtype and left.shape == right.shape
        return bool(same and left.tobytes() == right.tobytes())
    if type(left) is not type(right):
        return False
    if dataclasses.is_dataclass(left):
        return all(identical(getattr(left, f.name), getattr(right, f.name)) for f in dataclasses.fields(left))
    if isinstance(left, Mapping):
        return left.keys() == right.keys() and all(identical(left[key], right[key]) for key in left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(identical(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, float):
        return bool(np.float64(left).tobytes() == np.float64(right).tobytes())
    return bool(left == right)
