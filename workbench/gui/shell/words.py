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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

CONTEXT = "workbench"
PLACE = re.compile(r"\{([a-z]*)(:[^}]*)?\}")
"""A place in a text of the catalogue."""

FLAG = re.compile(r"\(--([a-z-]+)[^()]*\)")
FIELDS = {
    "all-experts": "All tokens through all experts", "column": "Column", "device": "Device", "dtype": "Numbers",
    "inputs": "Inputs", "memory": "Memory", "weights": "Weights", "window": "Window",
}  # fmt: skip
"""What the fields of forms are called that are flags on the command line, where messages name these."""

LETTERS = 4
"""Fixed letters that a pattern needs whose places take anything: fewer fit texts that are none of it."""

TEXT = r"(?:(?!; | · |\n).)+?"
NUMBER = r"[+−-]?\d[\d.,]*(?:e[+−-]?\d+)?"
JOINTS = ("\n", "; ", " · ", ". ", ": ", ", ")
"""What stands between sentences, in the order in which a text is taken apart."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text with places: its regular expression, its longest fixed part, the kinds of its places, its translation."""

    expression: re.Pattern[str]
    fixed: str
    kinds: tuple[str, ...]
    translation: str

    def spoken(self, text: str) -> str | None:
        """Return the translation of a text of this pattern, None for any other."""
        match = self.expression.fullmatch(text) if self.fixed in text else None
        if match is None:
            return None
        parts = iter(_said(kind, part) for kind, part in zip(self.kinds, match.groups(), strict=True))
        return PLACE.sub(lambda _: next(parts), self.translation)


def _said(kind: str, part: str) -> str:
    """Return what stands at a place of a pattern in the language of the catalogue."""
    if kind == "o":
        return f" {tr('or')} ".join(map(tr, part.split(" or ")))
    return tr(part) if kind == "w" else part


_patterns: list[Pattern] = []
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
    spoken = _spoken(text) if text and _patterns and not _silent else text
    return FLAG.sub(_field, spoken) if "(--" in spoken else spoken


def _field(flag: re.Match[str]) -> str:
    return f"({tr(f'field “{FIELDS[flag[1]]}”')})" if flag[1] in FIELDS else flag[0]


@lru_cache(maxsize=8192)
def _spoken(text: str) -> str:
    """Return a text, perhaps of several parts, in the language of the catalogue; what no pattern fits stays."""
    whole = _of_catalogue(text)
    if whole is not None:
        return whole
    parts = [(joint, *text.split(joint, 1)) for joint in JOINTS if joint in text]
    rests = [part for part in parts if _of_catalogue(part[2]) is not None]  # perhaps several sentences in one entry
    if not parts:
        return text
    joint, first, rest = max(rests, key=lambda part: len(part[2])) if rests else parts[0]
    return f"{tr(first)}{joint}{tr(rest)}"


@lru_cache(maxsize=8192)
def _of_catalogue(text: str) -> str | None:
    """Return the translation of a text that the catalogue has as a whole."""
    result = QCoreApplication.translate(CONTEXT, text)
    if result != text:
        return result
    return next((spoken for pattern in _patterns if (spoken := pattern.spoken(text)) is not None), None)


def install(app: QCoreApplication, language: str = "") -> None:
    """Speak ``language`` (``de``), by default the system's, where there is a catalogue; Qt's own words as well."""
    name = language or QLocale.system().name()
    catalogue, short = QTranslator(app), name.partition("_")[0]
    if not catalogue.load(str(folder() / f"{short}.qm")):
        return
    app.installTranslator(catalogue)
    _patterns[:] = patterns(messages(folder() / f"{short}.ts"))
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


def patterns(catalogue: dict[str, str]) -> list[Pattern]:
    """Return the patterns of a catalogue, those with the most fixed letters first."""
    result = []
    for source, translation in catalogue.items():
        fixed, kinds = PLACE.split(source)[::3], tuple("n" if form else kind for kind, form in PLACE.findall(source))
        letters = sum(map(str.isalpha, "".join(fixed)))
        if kinds and translation and letters >= (LETTERS if not any(kinds) else 1):
            groups = [f"({NUMBER if kind == 'n' else TEXT})" for kind in kinds]
            expression = "".join(re.escape(part) + group for part, group in zip(fixed, [*groups, ""], strict=True))
            pattern = Pattern(re.compile(expression), max(fixed, key=len), kinds, translation)
            result.append((-letters, -len(kinds), source, pattern))
    return [pattern for *_, pattern in sorted(result, key=lambda entry: entry[:3])]


def folder() -> Path:
    """Return the folder of the catalogues."""
    return Path(str(files("workbench_resources"))) / "translations"


if __name__ == "__main__":
    for source in folder().glob("*.ts"):
        subprocess.run(["pyside6-lrelease", str(source), "-qm", str(source.with_suffix(".qm"))], check=True)
