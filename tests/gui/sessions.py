"""Sessions made of numbers, without a model: quick to make, of any size, and as degenerate as a test wants."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from workbench.measurement.evaluation import Evaluation, Metric, Timing
from workbench.models.data.record import DataRecord
from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.numerics.formats import parse_scheme, standard_schemes
from workbench.numerics.ranges import METHODS
from workbench.numerics.statistics.layer_statistics import BINS, LayerStatistics, histogram_exponent
from workbench.planning.plan import Assignment, Plan, Rule
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Environment, Session

MLP, ALL = "model.layers.*.mlp.*", "re:model\\.layers\\..*"
"""Patterns of the two rules of :func:`ruled`."""

PARTS = {
    "self_attn.q_proj": (256, 256), "self_attn.k_proj": (64, 256), "self_attn.v_proj": (64, 256),
    "self_attn.o_proj": (256, 256), "mlp.gate_proj": (768, 256), "mlp.up_proj": (768, 256), "mlp.down_proj": (256, 768),
}  # fmt: skip


def summary(blocks: int = 4, *, name: str = "tiny-llama", prefix: str = "model.layers") -> ModelSummary:
    """Return a decoder's facts: an embedding, ``blocks`` of seven layers, a tied head, norms that are kept."""
    layers = [_layer("model.embed_tokens", (2048, 256), LayerKind.EMBEDDING, "")]
    for block in range(blocks):
        for part, shape in PARTS.items():
            layers.append(_layer(f"{prefix}.{block}.{part}", shape, LayerKind.LINEAR, f"{prefix}.{block}"))
    layers.append(_layer("lm_head", (2048, 256), LayerKind.LINEAR, "", tied_to="model.embed_tokens"))
    others = tuple(
        StoredTensor(name=f"{prefix}.{block}.{norm}.weight", shape=(256,), dtype="float32")
        for block in range(blocks)
        for norm in ("input_layernorm", "post_attention_layernorm")
    )
    source = ModelSource(kind="huggingface", path=f"/nowhere/{name}")
    return ModelSummary(
        name=name, source=source, fingerprint="sha256:" + "0" * 64, output=OutputKind.TOKEN_LOGITS,
        layers=tuple(layers), others=others,
    )  # fmt: skip


def _layer(name: str, shape: tuple[int, int], kind: LayerKind, block: str, tied_to: str | None = None) -> Layer:
    return Layer(
        name=name, kind=kind, parameter=f"{name}.weight", shape=shape, dtype="float32", axes=(0, 1), block=block,
        macs=shape[0] * shape[1], tied_to=tied_to,
    )  # fmt: skip


def statistics(rng: np.random.Generator, scale: float, count: int = 20_000, channels: int = 64) -> LayerStatistics:
    """Return the statistics of heavy-tailed random numbers."""
    values = (rng.standard_t(5, count) * scale).astype(np.float32).astype(np.float64)
    exponent = histogram_exponent(float(np.abs(values).max()))
    edge = 2.0**exponent
    counts = np.histogram(values, bins=BINS, range=(-edge, edge))[0].astype(np.int64)
    rows = values[: count // channels * channels].reshape(-1, channels)
    return LayerStatistics(
        count=count, non_finite=0, minimum=float(values.min()), maximum=float(values.max()), total=float(values.sum()),
        total_squares=float((values**2).sum()), exponent=exponent, counts=counts,
        channel_absmax=np.abs(rows).max(axis=0).astype(np.float32), channel_minimum=rows.min(axis=0).astype(np.float32),
        channel_maximum=rows.max(axis=0).astype(np.float32),
    )  # fmt: skip


def table(model: ModelSummary, metric: str = "predicted_kl", seed: int = 0) -> Sensitivity:
    """Return scores that fall by a factor of four for each bit, other for every layer."""
    rng = np.random.default_rng(seed)
    names = tuple(scheme.name for scheme in standard_schemes())
    bits = np.array([parse_scheme(name).bits((256, 256)) / 65536 for name in names])
    stored = tuple(layer.name for layer in model.stored)
    base = 10 ** rng.uniform(-2.5, 0.3, len(stored))
    score = base[:, None] * 4.0 ** -(bits[None] - 2) * rng.uniform(0.7, 1.4, (len(stored), bits.size))
    return Sensitivity(
        metric=metric, unit="nats" if metric.endswith("kl") else "relative squared error", layers=stored, schemes=names,
        score=score, samples=64, seed=0,
    )  # fmt: skip


def opened(model: ModelSummary | None = None, *, with_weights: bool = True, seed: int = 0) -> Session:
    """Return what opening a model yields: facts and the statistics of weights."""
    model = model or summary()
    rng = np.random.default_rng(seed)
    held = {}
    if with_weights:
        held = {(layer.name, "weight"): statistics(rng, 0.03 + 0.05 * rng.random()) for layer in model.stored}
    environment = Environment(
        workbench="0.1.0", python="3.11", numpy="2", torch="2.8", device="cpu: a processor, 2 threads", threads=2
    )
    plan = Plan(name="everything kept", model=model.name, fingerprint=model.fingerprint)
    return Session(model=model, environment=environment, plan=plan, statistics=held)


@cache
def full(blocks: int = 4, prefix: str = "model.layers") -> Session:
    """Return a session in which every panel has something to show; made once, because nothing can change it."""
    session = opened(summary(blocks, prefix=prefix))
    rng = np.random.default_rng(1)
    scheme = parse_scheme("int8-tensor-asym")
    held, ranges, active = dict(session.statistics), {}, {}
    for layer in session.model.layers[1:]:
        for tap, scale in (("input", 1.0), ("output", 2.0)):
            result = held[layer.name, tap] = statistics(rng, scale)
            for method in METHODS[:-1]:  # the last needs gradients
                ranges[layer.name, tap, method.name] = method.range(result, scheme)
            active[layer.name, tap] = ranges[layer.name, tap, METHODS[0].name]
    names = [layer.name for layer in session.model.layers[1:-1]]
    plan = session.plan.assign(names[::2], weights="int4-g32-asym").assign(names[1::2], weights="int3-g32-asym")
    plan = plan.assign(names[::5], weights="int8-channel")
    record = DataRecord(
        name="text", path="demo:language-model", split="calibration", samples=64, seed=0, content_hash="sha256:1"
    )
    return replace(
        session, plan=plan, calibration=record, statistics=held, ranges=ranges, active_ranges=active,
        sensitivities={"predicted_kl": table(session.model), "weight_error": table(session.model, "weight_error", 3)},
        evaluations=tuple(evaluation(bits, loss) for bits, loss in ((3.5, 0.81), (4.25, 0.12), (5.5, 0.031))),
        timings=tuple(timing(name, rng) for name in names[:8]),
    )  # fmt: skip


def evaluation(bits: float, kl: float) -> Evaluation:
    """Return an evaluation of a plan of ``bits`` per weight."""

    def metric(name: str, unit: str, value: float, baseline: float, higher: bool) -> Metric:
        spread = abs(value) * 0.08 + 1e-4
        return Metric(
            name=name, unit=unit, value=value, baseline=baseline, low=value - spread, high=value + spread, samples=128,
            higher_is_better=higher, per_sample=np.full(128, value),
        )  # fmt: skip

    metrics = (
        metric("kl", "nats", kl, 0.0, False),
        metric("top1_agreement", "share", 1 - kl / 3, 1.0, True),
        metric("perplexity", "per token", 14.2 * float(np.exp(kl)), 14.2, False),
    )
    return Evaluation(
        plan_name=f"{bits} bits", plan_hash=f"sha256:{bits}", data_name="text", data_hash="sha256:2",
        bits_per_weight=bits, nbytes=int(bits * 400_000), predicted_kl=kl * 0.93,
        metrics={item.name: item for item in metrics},
    )  # fmt: skip


def timing(layer: str, rng: np.random.Generator) -> Timing:
    """Return a timing of a layer."""
    return Timing(
        layer=layer, scheme="int8-channel", kernel="torch dynamic int8 linear", baseline_kernel="torch fp32 linear",
        shape=(256, 256), batch=1, device="cpu: a processor, 2 threads", note="nearby: int8 per tensor",
        samples=rng.normal(60, 4, 30), baseline_samples=rng.normal(90, 6, 30),
    )  # fmt: skip


def ruled() -> Session:
    """Return a session of two blocks whose plan has two rules: the products of the feed-forward parts, then all."""
    session = full(2)
    rules = tuple(
        Rule(pattern=pattern, assignment=Assignment(weights=scheme))
        for pattern, scheme in ((MLP, "int4-g32-asym"), (ALL, "int8-channel"))
    )
    return replace(session, plan=replace(session.plan, rules=rules))
