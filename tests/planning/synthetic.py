"""Small made-up models and tables for the tests of the planner."""

from __future__ import annotations

import numpy as np

from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.sensitivity.table import Sensitivity

SCHEMES = ("int2-g32-asym", "int3-g32-asym", "int4-g32-asym", "int6-g32-asym", "int8-channel")


def linear(name: str, rows: int = 8, columns: int = 64, **changes: object) -> Layer:
    """Return a linear layer."""
    facts: dict[str, object] = {
        "name": name, "kind": LayerKind.LINEAR, "parameter": f"{name}.weight", "shape": (rows, columns),
        "dtype": "float32", "axes": (0, 1),
    }  # fmt: skip
    return Layer(**{**facts, **changes})  # type: ignore[arg-type]


def summary_of(*layers: Layer) -> ModelSummary:
    """Return a model of these layers."""
    return ModelSummary(
        name="made-up", source=ModelSource(kind="none", path="nowhere"), fingerprint="sha256:0",
        output=OutputKind.TOKEN_LOGITS, layers=layers,
    )  # fmt: skip


def decoder(blocks: int, seed: int = 0) -> ModelSummary:
    """Return the facts of a decoder with tied head and ``blocks`` blocks of layers of several widths."""
    rng = np.random.default_rng(seed)
    layers = [linear("model.embed_tokens", 50, 64, kind=LayerKind.EMBEDDING)]
    for block in range(blocks):
        for name in ("self_attn.q_proj", "self_attn.o_proj", "mlp.up_proj", "mlp.down_proj"):
            rows, columns = int(rng.integers(4, 40)), int(rng.integers(1, 5)) * 32
            layers.append(linear(f"model.layers.{block}.{name}", rows, columns))
    layers.append(linear("lm_head", 50, 64, tied_to="model.embed_tokens"))
    return summary_of(*layers)


def table_of(summary: ModelSummary, schemes: tuple[str, ...] = SCHEMES, seed: int = 0) -> Sensitivity:
    """Return a random table: fewer bits lose more, layers differ by orders of magnitude."""
    rng = np.random.default_rng(seed)
    names = tuple(layer.name for layer in summary.stored)
    steps = np.sort(rng.lognormal(0, 2, (len(names), len(schemes))), axis=1)[:, ::-1]
    score = 0.01 * rng.lognormal(0, 2, (len(names), 1)) * steps
    return Sensitivity(
        metric="predicted_kl", unit="nats", layers=names, schemes=schemes, score=score, samples=1, seed=seed
    )
