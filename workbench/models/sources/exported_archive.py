"""Is a ``.pt2`` archive plain data?  ``torch.export.load`` itself would unpickle and evaluate what it finds.

It loads tensors and constants marked ``use_pickle`` and opaque objects with ``pickle``, falls back to full unpickling
of the sample inputs, evaluates symbolic shapes through sympy and resolves any dotted name below ``torch`` as a node's
target, and turns names into source code.  So all of these are checked here first, and an archive with anything but
plain data is refused.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from workbench.errors import NotAModelError, UnsafeModelError

SAFE_TARGET = re.compile(
    r"torch\.ops\.(aten|higher_order|prim|prims)\.\w+(\.\w+)?|math\.\w+|torch\.sym_\w+|torch\._sym_\w+"
    r"|_operator\.(add|sub|mul|truediv|floordiv|mod|pow|neg|pos|eq|ne|lt|le|gt|ge|and_|or_|xor|getitem)"
)
UNSAFE_TARGET = re.compile(r"torch\.ops\.aten\.from_file\b.*")
MODEL = r"(^|/)models/[^/]+\.json$"
NAME = re.compile(r"[\w.@:<>+*/-]*")
EXPRESSION = re.compile(r"[\w\s+\-*/%(),.<>=!&|~]*")
FUNCTIONS = frozenset({
    "Symbol", "Integer", "Rational", "Float", "Add", "Mul", "Pow", "Mod", "Max", "Min", "Abs", "And", "Or", "Not",
    "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality", "StrictLessThan", "LessThan", "StrictGreaterThan",
    "GreaterThan", "floor", "ceiling", "FloorDiv", "CeilDiv", "CleanDiv", "ModularIndexing", "PythonMod",
    "IntTrueDiv", "FloatTrueDiv", "PowByNatural", "FloatPow", "ToFloat", "TruncToInt", "TruncToFloat", "CeilToInt",
    "FloorToInt", "RoundToInt", "RoundDecimal", "Where", "Piecewise", "ExprCondPair", "Identity", "LShift",
    "RShift", "min", "max", "size",
})  # fmt: skip
"""What an expression over sizes may call; the reader evaluates expressions as Python."""

EXPRESSIONS = ("expr_str", "guards_code")
TREES = ("in_spec", "out_spec")
IMPORTING = ("__enum__", "default_factory", "\\u")
"""What makes the reader of nested containers import a module by name (escapes might hide it)."""

FREE_TEXT = ("metadata", "as_string", "as_strings")
"""Text that the reader never turns into code.  All other strings are names, and names become Python source."""


def require_plain(path: Path) -> int:
    """Return the bytes of all weights if the archive is plain data.

    Raises UnsafeModelError naming what is not, NotAModelError for any other file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if not any(re.search(MODEL, name) for name in names):
                raise NotAModelError(
                    f"{path} is not an exported program of this version of torch; write it with torch.export.save"
                )
            for name in names:
                _check_member(path, archive, name)
            return sum(archive.getinfo(name).file_size for name in names if "/weights/" in name)
    except (zipfile.BadZipFile, OSError, ValueError, KeyError) as error:
        raise NotAModelError(f"{path} is not an exported program or is damaged: {error}") from None


def _check_member(path: Path, archive: zipfile.ZipFile, name: str) -> None:
    if re.search(r"/(weights|constants)/[^/]*config\.json$", name):
        for tensor, entry in json.loads(archive.read(name))["config"].items():
            if entry["use_pickle"] or not str(entry["path_name"]).startswith(("weight_", "tensor_")):
                raise _refused(path, f"the tensor or object {tensor} is pickled")
    elif re.search(r"/(weights|constants)/[^/]*\.pt$", name):
        raise _refused(path, f"{name} is a pickle")
    elif name.endswith(".pt") and (data := archive.read(name)):
        try:
            torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
        except Exception:
            raise _refused(path, "its sample inputs are pickled objects") from None
    elif re.search(MODEL, name):
        for key, value in _strings(json.loads(archive.read(name))):
            if reason := _unsafe(key, value):
                raise _refused(path, reason)


def _unsafe(key: str, value: str) -> str | None:
    """Return what a string of the model could do when it is opened, None for a harmless one."""
    if key == "target":
        safe = SAFE_TARGET.fullmatch(value) and not UNSAFE_TARGET.fullmatch(value)
        return None if safe else f"it calls {value}"
    if key in EXPRESSIONS:
        return None if is_plain_expression(value) else f"it evaluates {value!r}"
    if key in TREES:
        imports = any(mark in value for mark in IMPORTING)
        return "its inputs or outputs are containers that import a module" if imports else None
    return None if NAME.fullmatch(value) else f"it names something {value!r}"


def is_plain_expression(text: str) -> bool:
    """Tell whether an expression over sizes is arithmetic: known functions, numbers, symbols, inputs' sizes."""
    text = re.sub(r"L(\['\w+'\]|\[\d+\])+\.size\(\)\[\d+\]", "size", text)
    text = re.sub(r"Symbol\('\w+'", "Symbol(", text)
    called = re.findall(r"([A-Za-z_][\w.]*|[)\]])\s*\(", text)
    attributes = re.search(r"[A-Za-z_)\]]\s*\.|\.\s*[A-Za-z_]|__", text)
    return bool(EXPRESSION.fullmatch(text)) and attributes is None and set(called) <= FUNCTIONS


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string of a JSON value with the key that it lies under, and every key as a name; no free text."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for entry in value:
            yield from _strings(entry, key)
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield "", name
            if name not in FREE_TEXT:
                yield from _strings(entry, name)


def _refused(path: Path, why: str) -> UnsafeModelError:
    return UnsafeModelError(
        f"{path} is refused: {why}, which can run code when it is opened; export the model again with plain tensors "
        "(torch.export.save), or save its weights as safetensors"
    )
