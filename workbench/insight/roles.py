"""What a user came for: each role sets the target, the budget, the metric and the schemes that are scored."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np

from workbench.insight.legality import quick_schemes, refused_cells, target_schemes
from workbench.insight.schemes import reference_bits
from workbench.models.data.files import BUNDLED_TEXT
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.planning.latest import Assignments, Latest
from workbench.planning.plan import KEEP
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """``schemes`` are scored, or all that the target runs; ``bits`` is the budget in bits per weight; ``inputs`` are
    the schemes of inputs that a search gives to a plan that rounds none; ``data`` stand in a form where none came
    with the model and it can read them."""

    name: str
    title: str
    text: str
    target: str = ""
    bits: float = 4.5
    metric: str = "predicted_kl"
    schemes: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    data: str = ""


ROLES = (
    Role(name="llama.cpp", title="A language model for llama.cpp", target="gguf", data=BUNDLED_TEXT,
         text="K-quants and other GGUF blocks, 4.5 bits per weight, exported as one .gguf file"),
    Role(name="vllm", title="A language model for vLLM", target="vllm", data=BUNDLED_TEXT,
         text="Integers, FP8 and NVFP4 as compressed-tensors, 4.5 bits per weight"),
    Role(name="onnx", title="INT8 for ONNX Runtime", target="onnxruntime", bits=8.1, data=BUNDLED_TEXT,
         schemes=("int8-tensor", "int8-channel", "int8-g128"), inputs=("static",),
         text="8-bit weights and inputs in one .onnx file"),
    Role(name="explore", title="Explore", text="Every scheme, no target"),
)  # fmt: skip
"""The last one is what holds before the user chooses."""


def role(name: str) -> Role:
    """Return the role of that name, else the last one."""
    return next((each for each in ROLES if each.name == name), ROLES[-1])


def lacks_schemes(session: Session, metric: str, target: str, assignments: Assignments) -> bool:
    """Return whether a metric's table has no scheme of fewer than 16 bits that a target runs: none to search.

    A scoring that was cancelled leaves layers without any score: they lack all.  So does a plan of schemes that are
    not in the table, as a repair makes one.
    """
    table = session.table(metric)
    if table is not None and (not table.complete and _unscored(table) or unscored_schemes(table, assignments)):
        return True
    return table is not None and scored_for_others(session.model, table, target)


def scored_for_others(model: ModelSummary, table: Sensitivity, target: str) -> bool:
    """Return whether a target runs schemes of fewer than 16 bits and a table has none of them."""
    legal = _legal(model, target) if target else frozenset()
    if not legal or not legal.isdisjoint(table.schemes):
        return False
    small = [reference_bits(name) < 16 for name in table.schemes]
    return bool(refused_cells(model, table, target)[:, small].all())  # the usual schemes are not all that there are


@Latest
def _legal(model: ModelSummary, target: str) -> frozenset[str]:
    return frozenset(name for name in target_schemes(model.layers, target) if reference_bits(name) < 16)


@Latest
def _unscored(table: Sensitivity) -> bool:
    return bool(np.isnan(table.score).all(axis=1).any())


@Latest
def unscored_schemes(table: Sensitivity, assignments: Assignments) -> tuple[str, ...]:
    """Return the quick schemes that a plan gives layers of which a table has other scores, and not these."""
    rated = compress(table.layers, ~np.isnan(table.score).all(axis=1))
    cells = [(name, assignments[name].weights) for name in rated if name in assignments]
    cells = [cell for cell in cells if cell[1] != KEEP]
    lacking = dict.fromkeys(scheme for (_, scheme) in compress(cells, np.isnan(table.gathered(cells)[0])))
    return tuple(name for name in lacking if parse_scheme(name).is_quick)


def schemes_to_score(chosen: Role, session: Session, target: str) -> tuple[str, ...]:
    """Return the schemes to score for a target: the role's if it is its target, else all quick ones that it runs.

    Empty where there is no target: the standard ones.
    """
    if chosen.target == target and chosen.schemes:
        return chosen.schemes
    return quick_schemes(session.model.layers, target) if target else ()
