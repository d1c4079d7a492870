"""Rounding algorithms by name.

One file each.  To add one, write the file and put an instance into ``ALGORITHMS``; third parties publish theirs as a
``workbench.algorithms`` entry point.
"""

from __future__ import annotations

from workbench.errors import PlanError
from workbench.numerics.rounding.algorithm import Algorithm, Context, Need, Rounded
from workbench.numerics.rounding.gptq import Gptq
from workbench.numerics.rounding.hqq import Hqq
from workbench.numerics.rounding.learned_rounding import LearnedRounding
from workbench.numerics.rounding.rtn import Rtn, RtnWeighted
from workbench.registry import Registry

__all__ = [
    "ALGORITHMS", "ALIASES", "REGISTRY", "Algorithm", "Context", "Gptq", "Hqq", "LearnedRounding", "Need", "Rounded",
    "Rtn", "RtnWeighted", "algorithm", "canonical",
]  # fmt: skip

ALGORITHMS: tuple[Algorithm, ...] = (
    Rtn(), Rtn(clip_search=True), RtnWeighted(), Gptq(), Gptq(sequential=True), Hqq(), LearnedRounding(),
)  # fmt: skip

REGISTRY: Registry[Algorithm] = Registry(
    ALGORITHMS, "workbench.algorithms", kind="algorithm", error=PlanError, member_type=Algorithm
)

ALIASES = {"adaround": "learned", "signround": "learned", "gptaq": "gptq-sequential"}
"""Names from papers, and ours: reading a plan or a command line replaces them."""


def canonical(name: str) -> str:
    """Return the name by which plans and tables know the algorithm ``name``; names that nobody knows stay."""
    return ALIASES.get(name.strip().lower(), name)


def algorithm(name: str) -> Algorithm:
    """Return the algorithm called ``name`` with its default options; PlanError that names the closest ones."""
    return REGISTRY.get(canonical(name).strip().lower())
