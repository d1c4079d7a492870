"""What ``workbench plan`` asks beyond a size: targets, locks, time, loss, what to minimise, simple strategies."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.planning.plan import Plan
    from workbench.session.session import Session

BUDGETS = ("bits_per_weight", "size", "uniform", "microseconds", "loss")


def add_search_options(entry: argparse.ArgumentParser) -> None:
    """Add the options; one budget at least is needed, which ``find`` checks."""
    from workbench.numerics.ranges import REGISTRY as RANGES
    from workbench.planning.budgets import GOALS
    from workbench.planning.strategies import STRATEGIES

    entry.add_argument("--microseconds", type=_above_zero, metavar="US", help="kernel time of all timed layers")
    entry.add_argument("--loss", type=_above_zero, metavar="L", help="predicted loss, in the unit of the table")
    entry.add_argument("--batch", type=int, default=1, metavar="N", help="input rows that kernels are timed at (1)")
    entry.add_argument("--minimise", choices=GOALS, default="loss", help="what the budgets leave open (default loss)")
    entry.add_argument(
        "--strategy", choices=[member.name for member in STRATEGIES], default="optimal",
        help="a simple rule to compare with, instead of the search (default optimal); it looks at weights only, and a "
        "scheme of --inputs is given to all",
    )  # fmt: skip
    entry.add_argument("--target", metavar="NAME", help="only what this runs: vllm, gguf, nvidia-9.0, vllm@nvidia-9.0")
    entry.add_argument(
        "--inputs", type=_schemes, metavar="A[,B,...]",
        help="activations of the searched layers, such as int8-token; of several the search chooses for each layer one "
        "or none (sensitivity --metric predicted_kl_inputs scores them); none: no layer's",
    )  # fmt: skip
    entry.add_argument(
        "--range-method", choices=RANGES.names(), help="how static ranges of inputs are calibrated (default min-max)"
    )
    entry.add_argument(
        "--cache", metavar="SCHEME",
        help="how keys and values are stored in the cache, such as int8-token (sensitivity --metric predicted_kl_cache "
        "scores it), or none",
    )  # fmt: skip
    entry.add_argument(
        "--lock", action="append", default=[], metavar="PATTERN",
        help="layers that keep what the session's plan gives them; may be repeated",
    )  # fmt: skip
    entry.add_argument(
        "--allow", action="append", default=[], type=_allowed, metavar="PATTERN=A,B",
        help="layers that may take these schemes only (keep among them or not); may be repeated, first match counts",
    )  # fmt: skip
    entry.add_argument(
        "--corrected", action="store_true",
        help="multiply predicted losses by the correction of the session's audit, and say so (workbench audit)",
    )  # fmt: skip
    entry.set_defaults(refuse=entry.error)


def find(session: Session, options: argparse.Namespace, progress: Progress) -> Plan:
    """Search as the options say; a usage error without any budget."""
    from workbench.steps.search import search

    check(options)
    with _output_of_libraries_as_errors():
        return search(
            session, bits_per_weight=options.bits_per_weight, size=options.size, microseconds=options.microseconds,
            loss=options.loss, minimise=options.minimise, strategy=options.strategy, metric=options.metric,
            schemes=options.schemes, target=options.target, lock=options.lock, allow=_merged(options.allow),
            inputs=options.inputs, cache=options.cache, batch=options.batch, corrected=options.corrected,
            range_method=options.range_method, progress=progress,
        )  # fmt: skip


@contextmanager
def _output_of_libraries_as_errors() -> Iterator[None]:
    """Send what compiled code prints to standard error: HiGHS says now and then how it is getting on, and standard
    output belongs to the result."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # no such streams, as under a window
        yield
        return
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def check(options: argparse.Namespace) -> None:
    """End with a usage error if there is no budget, or if ``--uniform`` meets options that it takes no notice of."""
    given = [name for name in BUDGETS if getattr(options, name) is not None]
    if not given and options.strategy == "optimal":
        options.refuse("one of --bits-per-weight, --size, --microseconds, --loss or --uniform is needed")
    limits = options.target or options.lock or options.allow or options.inputs
    others = len(given) > 1 or limits or options.strategy != "optimal"
    if options.uniform and (others or options.minimise != "loss"):
        options.refuse("--uniform searches nothing, so it goes with no budget, target, lock, allow or strategy")


def _allowed(text: str) -> tuple[str, list[str]]:
    pattern, sign, names = text.rpartition("=")
    schemes = [name.strip() for name in names.split(",") if name.strip()]
    if not (sign and pattern and schemes):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no pattern with schemes; write it as in '*.mlp.*=int4-g32-asym,keep'"
        )
    return pattern, schemes


def _schemes(text: str) -> tuple[str, ...]:
    schemes = tuple(name.strip() for name in text.split(",") if name.strip())
    if not schemes:
        raise argparse.ArgumentTypeError(f"{text!r} names no scheme; write it as in int8-token,fp8-e4m3-token")
    return schemes


def _merged(allowed: list[tuple[str, list[str]]]) -> dict[str, list[str]]:
    """Return the schemes of each pattern; those of a pattern that was given twice add up."""
    found: dict[str, list[str]] = {}
    for pattern, schemes in allowed:
        found.setdefault(pattern, []).extend(schemes)
    return found


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return value
