"""The window's words in the user's language: catalogues of Qt Linguist in ``resources/translations``.

Whatever shows a text translates it there (:mod:`workbench.gui.shell.widgets`, tables, forms, dialogs); names pass as
they are.  Sentences that the rooms below put together, which speak English to every face, are found by their pattern:
in the catalogue ``{}`` stands for a name, ``{n}`` for a number, ``{w}`` for words that are translated in their turn,
``{o}`` for such words with "or" between them.
Without a catalogue all is English.  ``python -m workbench.gui.shell.words`` compiles the catalogues.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator
from PySide6.QtGui import QKeySequence

CONTEXT = "workbench"
PLACE = re.compile(r"\{([a-z]*)(:[^}]*)?\}")
"""A place in a text of the catalogue."""

FLAG = re.compile(r" ?\(--([a-z-]++) ?([^()]*+)\)")
KEYS = re.compile(r"\bCtrl\+[A-Za-z0-9+]*[A-Za-z0-9]")
FIELDS = {
    "all-experts": "All tokens through all experts", "cluster": "Cluster", "column": "Column", "device": "Device",
    "dtype": "Numbers", "factory": "Function", "inputs": "Inputs", "memory": "Memory", "set": "Options",
    "weights": "Weights", "window": "Window",
}  # fmt: skip
"""What the fields of forms are called that are flags on the command line, where messages name these."""

VALUED = frozenset({"column", "set"})
"""Flags whose value is a text that is typed into the field as well."""

UNSAID = frozenset({"metric", "repair", "session", "trust"})
"""Flags for which the window has no field: it asks, or the advice before them is all."""

LETTERS = 4
"""Fixed letters that a pattern needs whose places take anything: fewer fit texts that are none of it."""

STRONG = 10
"""Fixed letters from which on a pattern, or a text of one word, is taken for ours within what another program said."""

FOREIGN = re.compile(r"(?!['\"“(\[])[^/\\]*\b[a-z]{2,} [a-z]{2,}\b[^/\\]*")
"""What no entry fits and is no name, path or quotation either: words of another program."""

TEXT = r"(?:(?!; | · |\n).)+?"
NUMBER = r"[+−-]?\d[\d.,]*(?:e[+−-]?\d+)?"
WORD = re.compile(r"(?<![^\W_])[^\W\d_]{2,}(?![^\W_])")
DEEPEST, MOST = 8, 60
"""Texts within texts that are translated, and parts of one: the names in a message can look like any number of both."""

JOINTS = ("\n", "; ", " · ", ". ", ": ", ", ")
"""What stands between sentences, in the order in which a text is taken apart."""


Said = tuple[str, bool]
"""A text in the language of the catalogue, and whether another program speaks in it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text with places: its fixed parts, the kinds of its places, its translation."""

    fixed: tuple[str, ...]
    kinds: tuple[str, ...]
    translation: str

    def spoken(self, text: str, depth: int = 0, strict: bool = False) -> Said | None:
        """Return the translation of a text of this pattern, None for any other."""
        if max(self.fixed, key=len) not in text or (strict and not self.is_strong):
            return None
        match = _expression(self.fixed, self.kinds).fullmatch(text)
        if match is None:
            return None
        said = [_said(*each, depth + 1, strict) for each in zip(self.kinds, match.groups(), strict=True)]
        parts = iter(said)
        return PLACE.sub(lambda _: next(parts)[0], self.translation), any(foreign for _, foreign in said)

    @property
    def is_strong(self) -> bool:
        """Whether a text of this pattern is hardly another program's."""
        return {*self.kinds} == {"n"} or sum(map(str.isalpha, "".join(self.fixed))) >= STRONG

    @property
    def words(self) -> list[str]:
        """Whole words that every text of this pattern has."""
        return WORD.findall("0".join(self.fixed))


@cache
def _expression(fixed: tuple[str, ...], kinds: tuple[str, ...]) -> re.Pattern[str]:
    """Return the regular expression of a pattern, made when a text first may fit.

    What stands between two places that take anything is looked for once, from the left, and not again where the rest
    does not fit (an atomic group): the time grows with the length of a text, whatever the names in it repeat.
    """
    result, groups = re.escape(fixed[0]), 0
    for kind, part in zip(kinds, fixed[1:], strict=True):
        if kind == "n":
            result += f"({NUMBER})"
        else:
            result, groups = f"{result}{')' * bool(groups)}(?>({TEXT})", groups + 1
        result += re.escape(part)
    return re.compile(result + r"\Z" + ")" * bool(groups))


def _said(kind: str, part: str, depth: int, strict: bool) -> Said:
    """Return what stands at a place of a pattern in the language of the catalogue."""
    if kind == "o":
        parts = [_spoken(each, depth, strict) for each in part.split(" or ")]
        return f" {_spoken('or')[0]} ".join(said for said, _ in parts), any(foreign for _, foreign in parts)
    return _spoken(part, depth, strict) if kind == "w" else (part, False)


_patterns: dict[str, list[tuple[int, Pattern]]] = {}
"""The patterns by the rarest word that their texts have (empty: by none), each with its place in the order."""

_silent = False


@contextmanager
def in_english() -> Iterator[None]:
    """Translate nothing within the context: for files that others read."""
    global _silent
    before, _silent = _silent, True
    try:
        yield
    finally:
        _silent = before


def tr(text: str) -> str:
    """Return a text in the user's language, and with the names of fields where it has flags of the command line."""
    spoken = whole(text) if text and _patterns and not _silent else text
    if "Ctrl+" in spoken and not _silent:
        spoken = KEYS.sub(lambda keys: QKeySequence(keys[0]).toString(QKeySequence.SequenceFormat.NativeText), spoken)
    return FLAG.sub(_field, spoken) if "(--" in spoken else spoken


def _field(flag: re.Match[str]) -> str:
    if flag[1] in UNSAID:
        return ""
    if flag[1] not in FIELDS:
        return flag[0]
    name = FIELDS[flag[1]]
    field = tr(f"field “{name}” of Export" if flag[1] == "set" else f"field “{name}”")
    return f" ({field}: {flag[2]})" if flag[1] in VALUED and flag[2] else f" ({field})"


def whole(text: str) -> str:
    """Return a text in the language of the catalogue.

    Where another program speaks in it (after a colon), what fits short patterns by chance stays as well, so that
    nothing is said half in one language and half in another.
    """
    said, foreign = _spoken(text)
    return _spoken(text, strict=True)[0] if foreign and ": " in text else said


@lru_cache(maxsize=8192)
def _spoken(text: str, depth: int = 0, strict: bool = False) -> Said:
    """Return a text, perhaps of several parts, in the language of the catalogue; what no pattern fits stays."""
    said, strange = "", False
    for _ in range(MOST if depth <= DEEPEST else 0):
        known = _of_catalogue(text, depth, strict)
        parts = [(joint, *text.split(joint, 1)) for joint in JOINTS if joint in text]
        if known is not None:
            return said + known[0], strange or known[1]
        if not parts:
            return said + text, strange or FOREIGN.fullmatch(text) is not None
        rests = [part for part in parts if _of_catalogue(part[2], depth, strict)]  # several sentences in one entry
        joint, first, text = max(rests, key=lambda part: len(part[2])) if rests else parts[0]
        before, foreign = _spoken(first, depth + 1, strict)
        said, strange = said + before + joint, strange or foreign
    return said + text, strange


@lru_cache(maxsize=8192)
def _of_catalogue(text: str, depth: int = 0, strict: bool = False) -> Said | None:
    """Return the translation of a text that the catalogue has as a whole."""
    result = QCoreApplication.translate(CONTEXT, text)
    if result != text:
        return None if strict and len(text) < STRONG and " " not in text else (result, False)
    near = sorted(entry for word in {"", *WORD.findall(text)} for entry in _patterns.get(word, ()))
    return next((said for _, pattern in near if (said := pattern.spoken(text, depth, strict)) is not None), None)


def install(app: QCoreApplication, language: str = "") -> None:
    """Speak ``language`` (``de``), by default the system's, where there is a catalogue; Qt's own words as well."""
    name = language or QLocale.system().name()
    catalogue, short = QTranslator(app), name.partition("_")[0]
    if not catalogue.load(str(folder() / f"{short}.qm")):
        return
    app.installTranslator(catalogue)
    _patterns.update(patterns(messages(folder() / f"{short}.ts")))
    _spoken.cache_clear()
    _of_catalogue.cache_clear()
    words_of_qt = QTranslator(app)
    if words_of_qt.load(f"qtbase_{name}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(words_of_qt)


def messages(catalogue: Path) -> dict[str, str]:
    """Return the texts of a catalogue (``.ts``) and their translations."""
    from xml.etree import ElementTree  # only where a language is spoken

    result = ElementTree.parse(catalogue).iter("message")
    return {message.findtext("source", ""): message.findtext("translation", "") for message in result}


def patterns(catalogue: dict[str, str]) -> dict[str, list[tuple[int, Pattern]]]:
    """Return the patterns of a catalogue by a word of theirs, those with the most fixed letters first."""
    found = []
    for source, translation in catalogue.items():
        fixed, kinds = PLACE.split(source)[::3], tuple("n" if form else kind for kind, form in PLACE.findall(source))
        letters = sum(map(str.isalpha, "".join(fixed)))
        if kinds and translation and letters >= (LETTERS if not any(kinds) else 1):
            found.append((-letters, -len(kinds), source, Pattern(tuple(fixed), kinds, translation)))
    ordered = [pattern for *_, pattern in sorted(found, key=lambda entry: entry[:3])]
    common = Counter(word for pattern in ordered for word in set(pattern.words))
    result = defaultdict[str, list[tuple[int, Pattern]]](list)
    for place, pattern in enumerate(ordered):
        result[min(pattern.words, key=lambda word: common[word], default="")].append((place, pattern))
    return result


def folder() -> Path:
    """Return the folder of the catalogues."""
    return Path(str(files("workbench_resources"))) / "translations"


if __name__ == "__main__":
    for source in folder().glob("*.ts"):
        subprocess.run(["pyside6-lrelease", str(source), "-qm", str(source.with_suffix(".qm"))], check=True)
