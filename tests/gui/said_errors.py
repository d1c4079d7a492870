"""What the errors of the workbench say that a window can show, read from the sources, and what a catalogue lacks of it.

``python -m tests.gui.said_errors`` prints what the German catalogue lacks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice, product

from tests.gui.spoken import ROOT, catalogue
from workbench import errors
from workbench.gui.shell import words

KINDS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)} | {
    "error", "kind", "_error", "damaged", "NoCounterpartError", "NotPlainError", "Unsafe", "Refused", "FilterError",
}  # fmt: skip
"""How sources call what they raise: by its class, or by the parameter that gives one."""

ELSEWHERE = ("console", "cli.py", "program.py", "__main__.py", "report")
"""What speaks on the command line and in the report, both English."""

PLACE, MOST = "7", 24
"""What stands for a name or number in a message, and the messages that one expression with choices stands for."""

CODE = re.compile(r"pip install |\S*/\w+$")
"""What is the same in every language: what to type, and places in a document."""

JOINTS = re.compile("|".join(map(re.escape, words.JOINTS)))


Known = dict[str, list[ast.expr]]


def of_errors() -> dict[str, str]:
    """Return every message of an error, with a number at its places, and where it is raised."""
    said = {}
    for file in sorted(ROOT.parent.rglob("*.py")):
        place = file.relative_to(ROOT.parent)
        if any(part in ELSEWHERE for part in place.parts):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for call, known in _raised(tree, _assigned(tree.body)):
            said |= {text: f"{place}:{call.lineno}" for text in _texts(call.args[0], known)}
    return {text: where for text, where in said.items() if " " in text}


def unspoken(text: str) -> set[str]:
    """Return the parts of a message that the catalogue in force leaves as they are, without saying the same itself."""
    kept = {*JOINTS.split(text)} & {*JOINTS.split(words.whole(text))}
    return {part for part in kept if re.search(r"[a-z]{2}", part) and not CODE.match(part) and part not in _german()}


@cache
def _german() -> str:
    return "\n".join(words.PLACE.sub(PLACE, translation) for translation in catalogue().values())


def _raised(node: ast.AST, known: Known) -> Iterator[tuple[ast.Call, Known]]:
    """Yield every making of an error, and what its names stand for there."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        inside = [each for each in ast.walk(node) if isinstance(each, ast.stmt)]
        known = known | _assigned(inside)
    if isinstance(node, ast.Call) and node.args and getattr(node.func, "id", getattr(node.func, "attr", "")) in KINDS:
        yield node, known
    for child in ast.iter_child_nodes(node):
        yield from _raised(child, known)


def _assigned(statements: list[ast.stmt]) -> Known:
    """Return the names that statements give a text, and their expressions."""
    result: Known = {}
    for each in statements:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            result.setdefault(each.targets[0].id, []).append(each.value)
    texts = {name: [each for each in values if _holds_text(each)] for name, values in result.items()}
    return {name: values for name, values in texts.items() if values}


def _holds_text(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _holds_text(node.body) or _holds_text(node.orelse)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _texts(node: ast.expr, known: Known, depth: int = 0) -> list[str]:
    """Return what an expression may become in a message."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        values = (_texts(each, known, depth) for each in node.values)
        return ["".join(parts) for parts in islice(product(*values), MOST)]
    if isinstance(node, ast.FormattedValue):
        return _texts(node.value, known, depth)
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, known, depth), *_texts(node.orelse, known, depth)]
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in _texts(value, known, depth) if text]
    if isinstance(node, ast.Name) and node.id in known and depth < 2:
        return [text for value in known[node.id] for text in _texts(value, known, depth + 1)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        both = product(_texts(node.left, known, depth), _texts(node.right, known, depth))
        return ["".join(parts) for parts in islice(both, MOST)]
    if isinstance(node, ast.Call):
        return list(_called(getattr(node.func, "id", ""), node.args))
    return [PLACE]


def _called(name: str, arguments: list[ast.expr]) -> Iterator[str]:
    if name == "nearest":
        yield from ("", f"; the closest are {PLACE}")
    elif name == "plural" and isinstance(arguments[1], ast.Constant):
        yield f"{PLACE} {arguments[1].value}s"
    else:
        yield PLACE


if __name__ == "__main__":
    from PySide6.QtCore import QCoreApplication

    words.install(QCoreApplication([]), "de")
    lacking = {part: where for text, where in of_errors().items() for part in unspoken(text)}
    print(*(f"{where}: {part!r}" for part, where in lacking.items()), sep="\n")
