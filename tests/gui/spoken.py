"""Every text of the window that a catalogue can translate, read from the sources and from the tables of the steps.

``python -m tests.gui.spoken`` prints what the German catalogue lacks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from workbench.deployment.exporters import REGISTRY as EXPORTERS
from workbench.gui.commands.actions import ACTIONS, MENUS
from workbench.gui.commands.placement import MEANINGS
from workbench.gui.commands.stages import STAGES
from workbench.gui.commands.tour import STOPS
from workbench.gui.panels import PANELS
from workbench.gui.panels.plan.transforms import TITLES as TRANSFORMS
from workbench.gui.shell import words
from workbench.gui.shell.step_keys import BUTTONS
from workbench.insight.arrangement import Order
from workbench.insight.deployments import FORMS
from workbench.insight.roles import ROLES
from workbench.measurement.metrics import METRICS as EVALUATED
from workbench.measurement.units import HALF_SQUARED_DISTANCE
from workbench.sensitivity.metrics import METRICS, metric_phrase
from workbench.session.budget import BudgetUnit
from workbench.steps import STEPS
from workbench.steps.checks.runtime import RUNTIME, runtimes
from workbench.steps.options import option_fields
from workbench.steps.session_data import KINDS

ROOT = Path(words.__file__).parents[1]

SHOWN: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "tr": ((0,), ()), "label": ((0,), ("text", "name", "tip")), "fitted": ((0,), ("text", "name")),
    "button": ((0, 2), ("text", "tip", "name")), "switch": ((1, 3), ("text", "tip")),
    "combo": ((0, 3), ("name", "tip")), "tabs": ((0,), ()), "named": ((1, 2), ("name", "tip")),
    "choice": ((1,), ("text", "tip")),
    "Column": ((0,), ("tip",)), "QCheckBox": ((0,), ()), "_menu_button": ((0, 1), ()),
    "Field": ((0,), ("tip", "unit")), "Number": ((0,), ("tip", "unit")), "RecordsView": ((0,), ()),
    "say_empty": ((0,), ()), "choose": ((0,), ()), "file_dialog": ((1,), ()),
    "ask": ((1, 2), ()), "ask_path": ((1,), ()), "ask_save_path": ((1,), ()), "FormDialog": ((1, 2, 4), ()),
    "show_error": ((1,), ()), "say": ((0, 1), ()), "report": ((0,), ()), ".label": ((1,), ()),
    "setText": ((0,), ()), "setToolTip": ((0,), ()), "Popup": ((2,), ()),
    "add_points": ((), ("name",)), "add_line": ((), ("name",)),
    "_large": ((0, 1), ()), "_button": ((0,), ()), "_figure": ((0,), ()),
    "_save": ((1, 3), ()), "requires": ((1,), ()), "_say_missing": ((1,), ()),
}  # fmt: skip
"""What shows texts: the places and the names of the arguments that are texts."""

LISTS = {"tabs": 1, "combo": 1, "offer": 1}
"""Makers of widgets with several texts, and the place of their list."""

REPORTS = ("progress", "report", "tick", "says", "numbered_batches")
"""How functions call what they report their progress to."""

Calls = Iterator[tuple[str, ast.Call]]


def of_sources() -> tuple[set[str], list[str]]:
    """Return the texts that are literal in the window's sources, and the patterns of those that are put together."""
    texts, made = set[str](), list[str]()
    for file in sorted(ROOT.rglob("*.py")):
        if "report" in file.relative_to(ROOT).parts:
            continue  # the report is in English
        tree = ast.parse(file.read_text(encoding="utf-8"))
        known = dict(_constants(tree))
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        texts |= {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and _has_key(each.value)}
        texts |= {text for made_in in classes for text in (*_axes(made_in), *_titles(made_in))}
        for name, call in _calls(tree):
            for node in _arguments(name, call):
                _collect(node, known, texts, made)
    return texts, made


def _has_key(value: object) -> bool:
    """Return whether a constant is a text with a key of its own, wherever it is shown."""
    return isinstance(value, str) and re.search(r"&[A-Za-z](?!\w*;)", value) is not None and "<" not in value


def of_jobs() -> set[str]:
    """Return the patterns of what jobs are called and of what they say that they do."""
    texts, made = set[str](), list[str]()
    for file in sorted(ROOT.parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            spoken_here: list[ast.expr] = []
            if isinstance(node, ast.Call):
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                told = [each.value for each in node.keywords if each.arg == "text" and _reports(node)]
                spoken_here = node.args if name in REPORTS else told
            elif isinstance(node, ast.keyword) and node.arg == "heading" and isinstance(node.value, ast.Lambda):
                spoken_here = [node.value.body]
            for expression in spoken_here:
                _collect(expression, {}, texts, made)
    return {text for text in {*texts, *made} if sum(map(str.isalpha, text)) > 3}


def _reports(call: ast.Call) -> bool:
    """Return whether a call is given what it reports its progress with."""
    return any(isinstance(each.value, ast.Name) and each.value.id in REPORTS for each in call.keywords)


def of_tables() -> set[str]:
    """Return the texts of menus, panels, stages, roles, steps with a form, options, metrics, exporters and the tour."""
    texts = {*MENUS, KINDS, *(text for action in ACTIONS for text in (action.text, action.tip))}
    texts |= {each.title for each in (*PANELS, *STAGES)} | {title for _, title in BUTTONS.values()}
    texts |= {text for each in ROLES for text in (each.title, each.text)} | {form.title for form in FORMS}
    texts |= {text for metric in METRICS for text in (metric.title, metric.meaning, metric.formula)}
    texts |= {*map(str, Order), *BudgetUnit}
    texts |= {metric_phrase(metric.name, unit) for metric in METRICS for unit in (metric.unit, HALF_SQUARED_DISTANCE)}
    texts |= {text for metric in EVALUATED for text in (metric.title, metric.unit, metric.meaning)}
    texts |= {text for each in EXPORTERS for text in (each.title, each.description)} | {*MEANINGS.values()}
    texts |= {text for stop in STOPS for text in (stop.title, stop.text)}
    texts |= {text for titles in TRANSFORMS.values() for text in titles} | {each.label for each in runtimes()}
    requested = {"calibrate", "sensitivity", "refine", "evaluate", "audit", "train", "time-kernels", "export"}
    for step in (RUNTIME, *(step for step in STEPS if step.name in requested)):
        texts |= {step.title, step.summary}
        infos = [item.info for item in option_fields(step.options) if item.info.form]
        texts |= {text for info in infos for text in (info.label, info.help, info.empty, info.unit)}
    return {str(text) for text in texts} - {""}


def spoken() -> set[str]:
    """Return every text that a catalogue should hold."""
    return {text for text in of_sources()[0] if any(letter.isalpha() for letter in text)} | of_tables()


def catalogue() -> dict[str, str]:
    """Return the German catalogue."""
    messages = ElementTree.parse(words.folder() / "de.ts").iter("message")
    return {message.findtext("source", ""): message.findtext("translation", "") for message in messages}


def _calls(tree: ast.AST) -> Calls:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            name = ".label" if name == "label" and isinstance(function, ast.Attribute) else name
            if name in SHOWN or name in LISTS:
                yield name, node


def _arguments(name: str, call: ast.Call) -> Iterator[ast.expr]:
    places, names = SHOWN.get(name, ((), ()))
    yield from (call.args[place] for place in places if place < len(call.args))
    yield from (keyword.value for keyword in call.keywords if keyword.arg in names)
    rows = call.args[LISTS[name]] if name in LISTS and LISTS[name] < len(call.args) else None
    for entry in rows.elts if isinstance(rows, ast.Tuple | ast.List) else ():
        yield from (entry.elts[:1] if isinstance(entry, ast.Tuple) and name != "tabs" else
                    entry.elts if isinstance(entry, ast.Tuple) else [entry])  # fmt: skip


def _axes(plot: ast.ClassDef) -> Iterator[str]:
    """Yield the name and the labels of the axes that a class of plots has."""
    for node in plot.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            names = getattr(node.targets[0], "elts", [])
            for target, value in zip(names, node.value.elts, strict=False):
                shown = isinstance(target, ast.Name) and target.id in ("name", "left", "bottom")
                if shown and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value


def _titles(dialog: ast.ClassDef) -> Iterator[str]:
    """Yield the title that a class of dialogs gives the one that it extends."""
    if "Popup" in [getattr(base, "id", "") for base in dialog.bases]:
        made = (node for node in ast.walk(dialog) if isinstance(node, ast.Call) and len(node.args) == 3)
        starts = (node for node in made if ast.unparse(node.func) == "super().__init__")
        yield from (each.args[2].value for each in starts if isinstance(each.args[2], ast.Constant))


def _constants(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _collect(node: ast.expr, known: dict[str, ast.expr], texts: set[str], made: list[str]) -> None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        texts.add(node.value)
    elif isinstance(node, ast.Name) and isinstance(known.get(node.id), ast.Constant):
        _collect(known[node.id], known, texts, made)
    elif isinstance(node, ast.IfExp):
        _collect(node.body, known, texts, made)
        _collect(node.orelse, known, texts, made)
    elif isinstance(node, ast.JoinedStr):
        made.append("".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values))


if __name__ == "__main__":
    for text in sorted(spoken() - {source for source, translation in catalogue().items() if translation}):
        print(repr(text))
