"""Our column: plans at given bits per weight, what the planner predicts of them, and what they measure.

Everything goes the way that a person's session goes: calibrate, score, search, quantize, evaluate.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from quality_cache import Cache
from quality_cases import Case

from workbench.measurement.evaluate import evaluate
from workbench.models.summary import embeddings
from workbench.planning.budgets import Budgets
from workbench.planning.constraints import Constraints
from workbench.planning.plan import Plan
from workbench.planning.search.search import search
from workbench.planning.totals import plan_totals
from workbench.quantization.quantize import quantize
from workbench.sensitivity.score import score
from workbench.sensitivity.table import Sensitivity

SCHEMES = tuple(f"int{bits}-g{group}-asym" for bits in (2, 3, 4, 5, 6, 8) for group in (16, 32, 64))
ROUNDING = "rtn-weighted"
LEARNED = "learned"
GAINS = {2: 0.40, 3: 0.37, 4: 0.31, 5: 0.30, 6: 0.30, 8: 0.30}
"""Share of the predicted loss of rounding that learning leaves, by bits: measured on uniform plans of 2, 3, 4 and 6
bits in groups of 64 on the small Llama (0.402, 0.366, 0.309, 0.298)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ours:
    """Our planner on one case."""

    case: Case
    cache: Cache

    @cached_property
    def table(self) -> Sensitivity:
        """The predicted loss of rounding every layer to every scheme."""
        return score(
            self.case.model, "predicted_kl", SCHEMES, curvature=self.case.curvature, algorithm=ROUNDING,
            layers=self.case.layers,
        )  # fmt: skip

    @cached_property
    def learned_table(self) -> Sensitivity:
        """The same after learning: a correction by bits, to plan with."""
        gains = np.array([GAINS[int(scheme[3])] for scheme in self.table.schemes])
        return replace(self.table, score=self.table.score * gains)

    def row(self, bits: float, algorithm: str) -> dict[str, Any]:
        """Return the plan's exact bits, the predicted and the measured KL (nats per token) with its interval."""
        case, base = self.case, Plan().assign(self.case.layers, algorithm=algorithm)
        table = self.learned_table if algorithm == LEARNED else self.table
        plan = search(case.model.summary, table, budgets=Budgets(bits_per_weight=bits), base=base,
                      constraints=Constraints(locked=embeddings(case.model.summary.layers)))  # fmt: skip
        key = (case.name, algorithm, f"{bits:.2f}", plan.hash, case.calibration.record.content_hash,
               case.evaluation.record.content_hash)  # fmt: skip
        known = self.cache.get(*key)
        if known is not None:
            earlier: dict[str, Any] = known
            return earlier
        saved = self.cache.path(*key).with_suffix(".checkpoint") if algorithm == LEARNED else None
        result: dict[str, Any] = self.cache.put(self._measured(plan, table, saved), *key)
        return result

    def _measured(self, plan: Plan, table: Sensitivity, saved: Path | None) -> dict[str, Any]:
        case, start = self.case, time.perf_counter()
        sums = plan_totals(case.model.summary, plan, table)
        made = quantize(case.model, plan, curvature=case.curvature, data=case.calibration, checkpoint=saved)
        seconds = time.perf_counter() - start
        result = evaluate(case.model, made.bind(case.model), case.evaluation, batch_size=16)
        return {
            "bits": sums.bits_per_weight, "predicted": sums.predicted, "kl": result["kl"].value,
            "low": result["kl"].low, "high": result["kl"].high, "perplexity": result["perplexity"].value,
            "baseline": result["perplexity"].baseline, "seconds": seconds, "layers": len(case.layers),
            "schemes": dict(Counter(plan.of(name).weights for name in case.layers)),
        }  # fmt: skip

    def rows(self, sizes: tuple[float, ...], algorithm: str) -> Iterator[dict[str, Any]]:
        """Yield a row for each size."""
        for bits in sizes:
            yield {"size": bits, **self.row(bits, algorithm)}
