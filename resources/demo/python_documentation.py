"""The documentation that ships with Python, as plain text: data of the demo language model.

Docstrings of the standard library and the topics of the language reference, read from the running interpreter.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
SKIPPED = ("/site-packages/", "/test/", "/idlelib/idle_test/", "/lib2to3/tests/", "/encodings/", "/pydoc_data/")
PERSONAL = re.compile(r"\S+(@|\sat\s)\S+\.[a-z]{2,4}\b|/(tmp|home|root|work|users)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One module's docstrings or one topic of the language reference."""

    name: str
    text: str


def docstrings(source: str) -> Iterator[str]:
    """The docstrings of a module, in source order."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def raw_documents() -> Iterator[Document]:
    """Every topic of the language reference, then every module of the standard library, by name."""
    for name in sorted(topics):
        yield Document(name=f"topic:{name}", text=topics[name])
    for path in sorted(LIBRARY.rglob("*.py")):
        name = path.relative_to(LIBRARY).as_posix()
        if not any(part in f"/{name}" for part in SKIPPED):
            try:
                yield Document(name=name, text="\n\n".join(docstrings(path.read_text(encoding="utf-8"))))
            except (SyntaxError, UnicodeDecodeError):
                continue  # templates that are not modules


def documents() -> list[Document]:
    """Documents without repeated paragraphs, e-mail addresses and folders of one machine; nearly empty ones go."""
    seen: set[str] = set()
    whole: list[Document] = []
    for document in raw_documents():
        paragraphs: list[str] = []
        for paragraph in re.split(r"\n\s*\n", document.text):
            key = " ".join(paragraph.split()).lower()
            if key and key not in seen and not PERSONAL.search(paragraph):
                seen.add(key)
                paragraphs.append(paragraph.rstrip().expandtabs())
        text = "\n\n".join(paragraphs).strip("\n")
        if len(text) >= 200:
            whole.append(Document(name=document.name, text=text))
    return whole


def split(documents: list[Document], held_out: int) -> tuple[list[Document], list[Document], list[Document]]:
    """Train, calibration, evaluation: whole documents in the order of the hash of their name.

    Calibration and evaluation stop once they hold `held_out` characters; longer documents than a fifth of that train.
    """
    train: list[Document] = []
    calibration: list[Document] = []
    evaluation: list[Document] = []
    for document in sorted(documents, key=lambda d: hashlib.sha256(d.name.encode()).digest()):
        short = len(document.text) <= held_out // 5
        wanting = [part for part in (evaluation, calibration) if sum(len(d.text) for d in part) < held_out]
        (wanting[0] if short and wanting else train).append(document)
    return train, calibration, evaluation


def joined(part: list[Document], end: str = "\n\n\n") -> str:
    """Documents one after the other."""
    return end.join(document.text for document in part) + "\n"


def licence() -> str:
    """The licence of Python and of the software it incorporates."""
    return (LIBRARY / "LICENSE.txt").read_text(encoding="utf-8")
