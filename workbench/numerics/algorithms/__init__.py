"""Rounding algorithms by name.

One file each.  To add one, write the file and put an instance into ``ALGORITHMS``; third parties publish theirs as a
``workbench.algorithms`` entry point.
"""

from __future__ import annotations

from workbench.errors import PlanError
from workbench.numerics.algorithms.algorithm import Algorithm, Context, Need, Rounded
from workbench.numerics.algorithms.gptq import Gptq
from workbench.numerics.algorithms.hqq import Hqq
from workbench.numerics.algorithms.learned_rounding import LearnedRounding
from workbench.numerics.algorithms.rtn import Rtn, RtnWeighted
from workbench.registry import Registry

__all__ = [
    "ALGORITHMS",
    "REGISTRY",
    "Algorithm",
    "Context",
    "Gptq",
    "Hqq",
    "LearnedRounding",
    "Need",
    "Rounded",
    "Rtn",
    "RtnWeighted",
    "algorithm",
]

ALGORITHMS: tuple[Algorithm, ...] = (
    Rtn(),
    Rtn(clip_search=True),
    RtnWeighted(),
    Gptq(),
    Gptq(sequential=True),
    Hqq(),
    LearnedRounding(),
)

REGISTRY: Registry[Algorithm] = Registry(
    ALGORITHMS, "workbench.algorithms", kind="algorithm", error=PlanError, member_type=Algorithm
)


def algorithm(name: str) -> Algorithm:
    """Return the algorithm called ``name`` with its default options; PlanError that names the closest ones."""
    return REGISTRY.get(name.strip().lower())
