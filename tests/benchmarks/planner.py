"""How fast the planner is, against the limits: a table and one line of JSON.

    python tests/benchmarks/planner.py [--repeats N]

Made-up models of 300 and 5,000 layers of several widths under 24 schemes, losses that fall with the bits over several
orders of magnitude.  Every figure is the median of the repeats, the worst repeat is beside it.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.planning.budgets import Budgets
from workbench.planning.explain import explain
from workbench.planning.hardware import Hardware, estimate, hardware
from workbench.planning.plan import Plan, resolve
from workbench.planning.search.search import Front, pareto, search
from workbench.planning.totals import plan_totals
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Environment, Session
from workbench.session.workspace import Workspace

WIDTHS = (2, 3, 4, 5, 6, 8)
SCHEMES = tuple(f"int{bits}-g{group}{end}" for bits in WIDTHS for group in (32, 64) for end in ("", "-asym"))
PARTS = ("self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement: seconds of every repeat, and the limit (None: for information)."""

    what: str
    seconds: tuple[float, ...]
    limit: float | None

    @property
    def median(self) -> float:
        """The median of the repeats."""
        return float(np.median(self.seconds))

    @property
    def met(self) -> bool:
        """Whether the median keeps the limit."""
        return self.limit is None or self.median < self.limit


def model_of(count: int, seed: int = 0) -> ModelSummary:
    """Return the facts of a model of ``count`` linear layers."""
    rng = np.random.default_rng(seed)
    widths = rng.integers(2, 33, (count, 2)) * 128
    layers = tuple(
        Layer(
            name=f"model.layers.{n // len(PARTS)}.{PARTS[n % len(PARTS)]}", kind=LayerKind.LINEAR,
            parameter=f"{n}.weight", shape=(int(rows), int(columns)), dtype="float16", axes=(0, 1),
        )
        for n, (rows, columns) in enumerate(widths)
    )  # fmt: skip
    return ModelSummary(
        name=f"{count} layers", source=ModelSource(kind="none", path=""), fingerprint="sha256:0",
        output=OutputKind.TOKEN_LOGITS, layers=layers,
    )  # fmt: skip


def table_of(summary: ModelSummary, seed: int = 0) -> Sensitivity:
    """Return losses of ``4 ** -bits``, scattered by scheme, over layers that differ by orders of magnitude."""
    rng = np.random.default_rng(seed)
    bits = np.array([float(scheme[3]) for scheme in SCHEMES])
    scatter = rng.lognormal(0, 0.3, (len(summary.layers), len(SCHEMES)))
    score = rng.lognormal(0, 2, (len(summary.layers), 1)) * 4.0**-bits * scatter
    return Sensitivity(
        metric="predicted_kl", unit="nats", layers=tuple(layer.name for layer in summary.layers), schemes=SCHEMES,
        score=score, samples=1, seed=seed,
    )  # fmt: skip


def timed(what: str, limit: float | None, work: Callable[[], Any], repeats: int) -> Row:
    """Run ``work`` once to warm up, then ``repeats`` times."""
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return Row(what=what, seconds=tuple(seconds), limit=limit)


def _assigned(session: Session, name: str, scheme: str) -> Session:
    return replace(session, plan=session.plan.assign([name], weights=scheme))


def edits(summary: ModelSummary, table: Sensitivity, plan: Plan, what: str, repeats: int) -> Row:
    """Time edits of single layers through the workspace, and check the totals that they give."""
    environment = Environment(workbench="", python="", numpy="", torch="", device="", threads=1)
    workspace = Workspace()
    workspace.open(
        Session(model=summary, environment=environment, plan=plan, sensitivities={"predicted_kl": table}), None
    )
    seconds = []
    for number in range(repeats * 10):
        name, scheme = summary.layers[number * 37 % len(summary.layers)].name, SCHEMES[number % len(SCHEMES)]
        start = time.perf_counter()
        workspace.edit("edit", functools.partial(_assigned, name=name, scheme=scheme))
        seconds.append(time.perf_counter() - start)
    state = workspace.state
    assert state.session is not None and state.totals == plan_totals(summary, state.session.plan, table)
    return Row(what=what, seconds=tuple(seconds), limit=2e-3)


def rows_of(repeats: int) -> list[Row]:
    """Measure everything."""
    small, large = model_of(300), model_of(5000)
    few, many = table_of(small), table_of(large)
    fronts: list[Front] = []
    rows = [
        timed("front, 300 x 24", 0.1, lambda: pareto(small, few, Plan()), repeats),
        timed("front, 5,000 x 24", 2.0, lambda: fronts.append(pareto(large, many, Plan())), repeats),
    ]
    for bits in (3.2, 4.25, 6.1):
        exact = timed(
            f"exact plan, 300 x 24, {bits} bits", 1.0,
            functools.partial(search, small, few, budgets=Budgets(bits_per_weight=bits), base=Plan()), repeats,
        )  # fmt: skip
        rows.append(exact)
    loss = Budgets(loss=1.0)
    least = timed(
        "smallest plan within a loss, 300 x 24", 1.0,
        lambda: search(small, few, budgets=loss, minimise="nbytes", base=Plan()), repeats,
    )  # fmt: skip
    exact = timed(
        "exact plan, 5,000 x 24, 4.25 bits", None,
        lambda: search(large, many, budgets=Budgets(bits_per_weight=4.25), base=Plan()), max(repeats // 3, 1),
    )  # fmt: skip
    rows += [least, _two_budgets(small, few, repeats), exact]
    front = fronts[-1]
    middle = front.plan(len(front) // 2)
    by_name = Plan().assign([layer.name for layer in large.layers], weights="int4-g64")
    rows.append(edits(large, many, middle, f"edit of 1 layer of 5,000, plan of {len(middle.rules)} rules", repeats))
    rows.append(edits(large, many, by_name, "edit of 1 layer of 5,000, a rule for each", repeats))
    assignments = resolve(middle, large.layers)
    rows.append(timed("explain one of 5,000 layers", None,
                      lambda: explain(front, assignments, large.layers[17].name), repeats))  # fmt: skip
    return rows


@dataclass(frozen=True)
class EstimatedTimes:
    """Roofline times in place of measured ones, so that every machine solves the same problem."""

    chip: Hardware
    batch: int

    def of(self, layer: Layer, weights: str, inputs: str | None) -> float:
        """Return the estimated microseconds, NaN where the hardware cannot run that."""
        result = estimate(layer, weights, inputs, self.chip, batch=self.batch)
        return math.nan if result is None else result.microseconds


def _two_budgets(summary: ModelSummary, table: Sensitivity, repeats: int) -> Row:
    """Time a search within bytes and (estimated) microseconds."""
    times = EstimatedTimes(hardware("nvidia-9.0"), batch=256)
    fast = search(summary, table, budgets=Budgets(loss=1e9), minimise="microseconds",
                  base=Plan(), times=times)  # fmt: skip
    assignments = resolve(fast, summary.layers)
    least = math.fsum(times.of(layer, assignments[layer.name].weights, None) for layer in summary.layers)
    budgets = Budgets(bits_per_weight=5.0, microseconds=least * 1.05)
    return timed(
        "exact plan, bits and microseconds, 300 x 24", None,
        lambda: search(summary, table, budgets=budgets, base=Plan(), times=times), max(repeats // 3, 1),
    )  # fmt: skip


def main() -> None:
    """Print the table and the line of JSON; exit code 1 if a limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    rows = rows_of(options.repeats)
    print(f"{'what':<55}{'median':>12}{'worst':>12}{'limit':>10}")
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit * 1e3:.0f} ms"
        mark = "" if row.met else "  MISSED"
        print(f"{row.what:<55}{row.median * 1e3:>9.2f} ms{max(row.seconds) * 1e3:>9.2f} ms{limit:>10}{mark}")
    print(json.dumps({
        "benchmark": "planner", "cores": os.cpu_count(), "load": os.getloadavg()[0],
        "milliseconds": {row.what: round(row.median * 1e3, 3) for row in rows},
        "limits": {row.what: row.limit * 1e3 for row in rows if row.limit is not None},
        "met": all(row.met for row in rows),
    }))  # fmt: skip
    raise SystemExit(not all(row.met for row in rows))


if __name__ == "__main__":
    main()
