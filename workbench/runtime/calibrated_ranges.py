"""From statistics to the ranges of every calibration method, and which of them is in force."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from workbench.errors import RangeError
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.numerics.ranges import REGISTRY, Range
from workbench.numerics.statistics import LayerStatistics
from workbench.planning.plan import Plan, resolve
from workbench.progress import Progress, silent

REFERENCE_SCHEME = "int8-tensor-asym"
"""Methods that depend on the number of levels are run for this scheme; for a layer with another input scheme the window
and the quantizer ask the method again."""

Statistics = Mapping[tuple[str, str], LayerStatistics]


def all_ranges(statistics: Statistics, progress: Progress = silent) -> dict[tuple[str, str, str], Range]:
    """Return the range of every method for every (layer, tap).

    A tensor in which nothing finite was seen has none.  Layers that share an input share the work.
    """
    scheme = parse_scheme(REFERENCE_SCHEME)
    known: dict[bytes, dict[str, Range]] = {}
    found: dict[tuple[str, str, str], Range] = {}
    for number, ((layer, tap), one) in enumerate(statistics.items()):
        progress(number / len(statistics), f"ranges of {layer}")
        key = _content(one)
        if key not in known:
            known[key] = {}
            for method in REGISTRY:
                try:
                    known[key][method.name] = method.range(one, scheme)
                except RangeError:
                    continue
        found.update({(layer, tap, name): chosen for name, chosen in known[key].items()})
    progress(1.0, "ranges found")
    return found


def _content(statistics: LayerStatistics) -> bytes:
    """Return a hash of all that a range depends on."""
    hashed = hashlib.sha256(statistics.counts.tobytes())
    extremes = (statistics.minimum, statistics.maximum, statistics.minimum_total, statistics.maximum_total)
    hashed.update(repr((statistics.exponent, statistics.batches, extremes)).encode())
    return hashed.digest()


def ranges_in_force(
    summary: ModelSummary,
    plan: Plan,
    ranges: Mapping[tuple[str, str, str], Range],
    earlier: Mapping[tuple[str, str], Range],
) -> dict[tuple[str, str], Range]:
    """Return the range of every layer's input: a person's own where ``earlier`` has one, else the plan's method's."""
    chosen = {key: value for key, value in earlier.items() if value.method == "manual"}
    for name, assignment in resolve(plan, summary.layers).items():
        found = ranges.get((name, "input", assignment.range_method))
        if found is not None and (name, "input") not in chosen:
            chosen[name, "input"] = found
    return chosen
