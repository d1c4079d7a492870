"""Facts of small models and sessions of them, without any network."""

from __future__ import annotations

import numpy as np

from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.planning.plan import Plan
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Environment, Session

SCHEMES = ("int2-g32-asym", "int4-g32-asym", "int8-channel")


def summary(layers: int = 4, cannot_run: str | None = None) -> ModelSummary:
    """An embedding with a tied head, and linear layers between."""
    table = Layer(
        name="embed", kind=LayerKind.EMBEDDING, parameter="embed.weight", shape=(64, 32), dtype="float32", axes=(0, 1)
    )
    linear = [
        Layer(
            name=f"blocks.{n}.proj", kind=LayerKind.LINEAR, parameter=f"blocks.{n}.proj.weight", shape=(32, 32),
            dtype="float32", axes=(0, 1), block=f"blocks.{n}",
        )
        for n in range(layers)
    ]  # fmt: skip
    head = Layer(
        name="head", kind=LayerKind.LINEAR, parameter="head.weight", shape=(64, 32), dtype="float32", axes=(0, 1),
        tied_to="embed",
    )  # fmt: skip
    return ModelSummary(
        name="small", source=ModelSource(kind="safetensors", path="/nowhere/small.safetensors"),
        fingerprint="sha256:" + "0" * 64, output=OutputKind.TOKEN_LOGITS, layers=(table, *linear, head),
        others=(StoredTensor(name="norm", shape=(32,), dtype="float32"),), cannot_run=cannot_run,
    )  # fmt: skip


def table(facts: ModelSummary, metric: str = "predicted_kl", schemes: tuple[str, ...] = SCHEMES) -> Sensitivity:
    """Scores that fall with the bits and rise with the layer."""
    names = tuple(layer.name for layer in facts.layers if layer.name.startswith("blocks"))
    score = np.outer(np.arange(1.0, len(names) + 1), 4.0 ** -np.arange(len(schemes)))
    return Sensitivity(metric=metric, unit="nats", layers=names, schemes=schemes, score=score, samples=4, seed=0)


def session(layers: int = 4, cannot_run: str | None = None) -> Session:
    """A session with a table and an empty plan."""
    facts = summary(layers, cannot_run)
    return Session(
        model=facts, plan=Plan(model=facts.name, fingerprint=facts.fingerprint),
        environment=Environment(workbench="0", python="3", numpy="2", torch="2", device="cpu", threads=1),
        sensitivities={"predicted_kl": table(facts)},
    )  # fmt: skip
