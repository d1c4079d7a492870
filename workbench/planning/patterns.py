"""The patterns of rules: which layers a name, a shell pattern or a regular expression matches."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from workbench.errors import PlanError

EXPRESSION = "re:"
"""What a pattern that is a regular expression begins with."""

SECONDS = 1.0
"""How long a regular expression may take for all names: some take for ever, and plans come from strangers."""


def is_glob(pattern: str) -> bool:
    """Tell whether ``pattern`` can match more than its own spelling."""
    return "*" in pattern or "?" in pattern or "[" in pattern or pattern.startswith(EXPRESSION)


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that ``pattern`` matches, in their order.

    Raises PlanError for an expression that is not valid or that takes more than SECONDS.
    """
    if not pattern.startswith(EXPRESSION):
        glob = is_glob(pattern)
        return [name for name in names if name == pattern or (glob and fnmatch.fnmatchcase(name, pattern))]
    expression = compiled(pattern)
    end = time.monotonic() + SECONDS
    try:
        return [
            name for name in names
            if name == pattern or expression.fullmatch(name, timeout=max(end - time.monotonic(), 1e-6))
        ]  # fmt: skip
    except TimeoutError:
        raise PlanError(
            f"the rule {pattern!r} takes more than {SECONDS:g} s to match; write the regular expression without "
            "repetitions inside repetitions, or use a pattern with *"
        ) from None


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Return the regular expression behind ``re:``; raises PlanError where it is not valid."""
    import regex

    try:
        return regex.compile(pattern.removeprefix(EXPRESSION))
    except (regex.error, RecursionError, OverflowError) as error:
        raise PlanError(f"the rule {pattern!r} is not a valid regular expression: {error}") from None
