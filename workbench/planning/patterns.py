"""The patterns of rules: which layers a name, a shell pattern or a regular expression matches."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from workbench.errors import PlanError

EXPRESSION = "re:"
"""What a pattern that is a regular expression begins with."""

LONGEST, LONGEST_SHELL = 10_000, 1_000
"""Characters of a regular expression and of a shell pattern: plans may be untrusted, and ``fnmatch`` takes time by
the square of the brackets that nothing closes."""

MOST_WILDCARDS, MOST_EXPRESSIONS = 200_000, 2_000_000
"""The most of ``*``, ``?`` and ``[``, and of characters of regular expressions, in all patterns of a plan: to compile
one takes some 14 and 2 microseconds."""


def require_few(patterns: Iterable[str]) -> None:
    """Raise PlanError where patterns, together, take longer than seconds to compile."""
    expressions, wildcards = 0, 0
    for pattern in patterns:
        if pattern.startswith(EXPRESSION):
            expressions += len(pattern)
        else:
            wildcards += sum(map(pattern.count, "*?["))
    if wildcards > MOST_WILDCARDS or expressions > MOST_EXPRESSIONS:
        raise PlanError(
            f"its patterns have {wildcards:,} wildcards and {expressions:,} characters of regular expressions; at most "
            f"{MOST_WILDCARDS:,} and {MOST_EXPRESSIONS:,} are read: give layers by their names"
        )


def is_glob(pattern: str) -> bool:
    """Return whether ``pattern`` can match more than its own spelling."""
    return "*" in pattern or "?" in pattern or "[" in pattern or pattern.startswith(EXPRESSION)


def any_glob(patterns: Iterable[str]) -> bool:
    """Return whether one of ``patterns`` can match more than its own spelling; of thousands in a millisecond."""
    together = "\n".join(patterns)
    return is_glob(together) or f"\n{EXPRESSION}" in together


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that ``pattern`` matches, in their order, in time linear in their length.

    Raises PlanError for an expression that is not valid.
    """
    if not pattern.startswith(EXPRESSION):
        if not is_glob(pattern):
            return [name for name in names if name == pattern]
        matches = _shell(pattern) if len(pattern) <= LONGEST_SHELL else _no_match
        return [name for name in names if name == pattern or matches(name)]
    expression = compiled(pattern)
    return [name for name in names if name == pattern or expression.fullmatch(encodable(name))]


@lru_cache(maxsize=256)
def _shell(pattern: str) -> Callable[[str], object]:
    """Return what matches a shell pattern: asked for each of thousands of names, so looked up once."""
    return re.compile(fnmatch.translate(pattern)).match


def _no_match(name: str) -> None:
    """Match as what is too long for a shell pattern does: names that are spelled so, and no others."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Return the regular expression behind ``re:``; raises PlanError where it is not valid.

    RE2 has no backtracking: no expression takes long or much memory, neither to compile nor to match.  In return it
    has no look-around and no back-references (https://github.com/google/re2/wiki/Syntax).
    """
    import re2

    expression, options = encodable(pattern.removeprefix(EXPRESSION)), re2.Options()
    options.log_errors = False
    if len(expression) > LONGEST:
        raise PlanError(f"the rule {pattern[:40]!r}... is longer than {LONGEST:,} characters; use a pattern with *")
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        hint = "; instead of a look-around, let a later rule take names back" if "(?" in expression else ""
        raise PlanError(f"the rule {pattern!r} is not a valid regular expression: {text}{hint}") from None


def encodable(text: str) -> str:
    """Return ``text`` with what UTF-8 cannot hold (lone surrogates) as question marks."""
    return text.encode("utf-8", "replace").decode()
