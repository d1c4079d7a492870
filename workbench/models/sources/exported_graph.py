"""The graph of a ``.pt2`` archive, rebuilt from what is known to be harmless.

The reader in torch resolves a node's target as a dotted name, evaluates sizes as Python, imports the classes of
containers, and turns names into the source of a module.  Here every string is checked for what it is used as; text that
is only shown (stack traces, notes) and guards, which are Python, are left out.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

LARGEST = 2**63 - 1
DEPTH, LENGTH = 40, 2000
"""How deep the graph's JSON may nest, and how long an expression over sizes may be."""

OPERATOR = re.compile(r"torch\.ops\.(aten|prims)\.(\w+)\.(\w+)", re.ASCII)
"""An operator with its overload: without one torch looks for the first that takes what comes."""

HIGHER = "cond|while_loop|map_impl|scan|associative_scan|wrap_with_set_grad_enabled|wrap_with_autocast|out_dtype"
TARGET = re.compile(
    rf"torch\.ops\.higher_order\.({HIGHER}|flex_attention|invoke_subgraph)|math\.(ceil|floor|trunc|sqrt|log2)"
    r"|torch\._?sym_[a-z]\w*"
    r"|_operator\.(add|sub|mul|truediv|floordiv|mod|pow|neg|pos|eq|ne|lt|le|gt|ge|and_|or_|xor|getitem)",
    re.ASCII,
)
REFUSED = re.compile(
    r"_?from_file|_?print|_?test_\w+|_*(mkldnn|mkl|cudnn|miopen|mps|cufft|cuda|xpu|vulkan)_\w*|\w*(sparse|nested)\w*|"
    r"_?quantized_\w+|_?fbgemm\w*|_wrapped_\w+|_dyn_quant\w+|\w*affine_quantized|_make_(per|dual)\w+|_?set(_|_data)?|"
    r"_?resize\w*|\w*pin(ned)?_memory|is_pinned|record_stream|\w*_backward\w*|_(add|remove)_batch_dim|_cslt_\w+|_sp\w+|"
    r"_coalesced_?|_indices|_values|_copy_from\w*",
    re.ASCII,
)
"""Operators that no network needs for its answers: they read files, write to the terminal, exchange memory, or take
sizes and places that torch does not check."""

NAME = re.compile(r"[\w.@:<>+*/-]{0,1000}", re.ASCII)
IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,999}|", re.ASCII)
TEXT = ("as_string", "as_strings")
"""Strings that are arguments: the reader quotes them."""

KEPT_METADATA = "nn_module_stack"
MODULE_STACK = re.compile(r"[\w.@:<>+*/,;()\[\]'\" -]*", re.ASCII)
CONTAINERS = (
    None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict",
    "torch.fx.immutable_collections.immutable_list", "torch.fx.immutable_collections.immutable_dict",
)  # fmt: skip
FUNCTIONS = frozenset({
    "Symbol", "Integer", "Rational", "Float", "Add", "Mul", "Pow", "Mod", "Max", "Min", "Abs", "And", "Or", "Not",
    "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality", "StrictLessThan", "LessThan", "StrictGreaterThan",
    "GreaterThan", "floor", "ceiling", "FloorDiv", "CeilDiv", "CleanDiv", "ModularIndexing", "PythonMod",
    "IntTrueDiv", "FloatTrueDiv", "PowByNatural", "FloatPow", "ToFloat", "TruncToInt", "TruncToFloat", "CeilToInt",
    "FloorToInt", "RoundToInt", "RoundDecimal", "Where", "Piecewise", "ExprCondPair", "Identity",
})  # fmt: skip
"""What an expression over sizes may call."""

POWERS = ("Pow", "PowByNatural", "FloatPow")
TEXTS = re.compile(r"\w{1,40}|[0-9.e+-]{1,40}", re.ASCII)
DECIMAL = re.compile(r"-?\d{0,30}\.?\d{0,30}(e[+-]?\d{1,3})?", re.ASCII)
DIGITS = 1000
"""Names and numbers within expressions, and the most digits that a number may be asked for."""

PLAIN_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Load, ast.Add, ast.Sub, ast.Mult, ast.Div,
    ast.FloorDiv, ast.Mod, ast.USub, ast.UAdd, ast.Invert, ast.BitAnd, ast.BitOr, ast.Eq, ast.NotEq, ast.Lt, ast.LtE,
    ast.Gt, ast.GtE, ast.And, ast.Or, ast.Pow, ast.keyword,
)  # fmt: skip


OPERATIONS, SIMPLE = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Call), 24
"""What computes in an expression, and how many of these end in time whatever they are, symbols included."""


class Unsafe(Exception):
    """What could run code or fill the memory; the text completes "is refused: ..."."""


def plain_program(program: Mapping[str, Any]) -> dict[str, Any]:
    """Return a program of JSON with nothing in it that is not checked; raises Unsafe, ValueError or KeyError."""
    members = {key: value for key, value in program.items() if key != "guards_code"}
    plain: dict[str, Any] = _plain(members, "", 0)
    return plain


def _plain(value: Any, key: str, depth: int) -> Any:
    if depth > DEPTH:
        raise Unsafe(f"its graph nests deeper than {DEPTH} levels")
    if isinstance(value, str):
        if reason := _unsafe(key, value):
            raise Unsafe(reason)
        return _plain_tree(value) if key in ("in_spec", "out_spec") else value
    if isinstance(value, list):
        return [_plain(entry, key, depth + 1) for entry in value]
    if isinstance(value, dict):
        rebuilt = {}
        for name, entry in value.items():
            if not NAME.fullmatch(name):
                raise Unsafe(f"it names something {name[:200]!r}")
            rebuilt[name] = _metadata(entry) if name == "metadata" else _plain(entry, name, depth + 1)
        return rebuilt
    if type(value) is int and not -LARGEST - 1 <= value <= LARGEST:
        raise Unsafe(f"it holds a number of {value.bit_length()} bits")
    return value


def _metadata(entry: Mapping[str, Any]) -> dict[str, str]:
    stack = entry.get(KEPT_METADATA)
    if stack is None:
        return {}
    if not isinstance(stack, str) or not MODULE_STACK.fullmatch(stack):
        raise Unsafe(f"it names modules {str(stack)[:200]!r}")
    return {KEPT_METADATA: stack}


def _unsafe(key: str, value: str) -> str | None:
    """Return what a string of the graph could do when it is opened, None for a harmless one."""
    if key in ("target", "as_operator"):
        return None if TARGET.fullmatch(value) or _is_plain_operator(value) else f"it calls {value[:200]!r}"
    if key == "expr_str":
        return None if is_plain_expression(value) else f"it evaluates {value[:200]!r}"
    if key in (*TEXT, "in_spec", "out_spec"):
        return None
    allowed = IDENTIFIER if key in ("name", "as_name", "forward_arg_names") else NAME
    return None if allowed.fullmatch(value) else f"it names something {value[:200]!r}"


def _is_plain_operator(target: str) -> bool:
    """Return whether a target is an operator on tensors that torch dispatches, so none of TorchScript's."""
    import torch

    match = OPERATOR.fullmatch(target)
    if match is None or REFUSED.fullmatch(match[2]):
        return False
    overload = "" if match[3] == "default" else f".{match[3]}"
    has_kernel: bool = torch._C._dispatch_has_kernel(f"{match[1]}::{match[2]}{overload}")
    return has_kernel


def _plain_tree(text: str) -> str:
    """Return the structure of inputs or outputs with containers of Python alone; "" stays as it is.

    Containers of other classes (transformers' outputs, dataclasses) become dictionaries where they have names, else
    lists: a program needs their order, not their class.
    """
    if not text:
        return text
    version, tree = json.loads(text)
    if version != 1:
        raise ValueError(f"its containers have version {version!r:.40}, 1 was expected")
    return json.dumps([1, _container(tree, 0)])


def _container(tree: Mapping[str, Any], depth: int) -> dict[str, Any]:
    kind, context, count = tree["type"], tree["context"], len(tree["children_spec"])
    if depth > DEPTH:
        raise Unsafe(f"its inputs or outputs nest deeper than {DEPTH} levels")
    try:
        keys = json.loads(context) if isinstance(context, str) else context
    except ValueError:  # the name of a class, not in JSON
        keys = str(context)
    if kind not in CONTAINERS and isinstance(keys, list | str | None):
        named = isinstance(keys, list) and len(keys) == count and all(isinstance(each, str) for each in keys)
        kind, keys, context = ("builtins.dict", keys, "") if named else ("builtins.list", None, "")
    if not (keys is None or (isinstance(keys, list) and all(isinstance(each, str | int) for each in keys))):
        raise Unsafe("its inputs or outputs are containers that import a module")
    context = json.dumps(keys) if isinstance(context, str) else None
    children = [_container(child, depth + 1) for child in tree["children_spec"]]
    return {"type": kind, "context": context, "children_spec": children}


def is_involved(program: Any) -> bool:
    """Return whether a checked program has an expression that could take long or fill the memory: what its operations
    become when they are multiplied out grows with each of them."""
    if isinstance(program, Mapping):
        return any(
            sum(isinstance(node, OPERATIONS) for node in ast.walk(ast.parse(entry.strip(), mode="eval"))) > SIMPLE
            if name == "expr_str" and isinstance(entry, str) else is_involved(entry)
            for name, entry in program.items()
        )  # fmt: skip
    return isinstance(program, list) and any(map(is_involved, program))


def is_plain_expression(text: str) -> bool:
    """Return whether an expression over sizes is arithmetic of known functions, small powers, numbers and symbols."""
    if len(text) > LENGTH:
        return False
    try:
        tree = ast.parse(text.strip(), mode="eval")
        nodes = list(ast.walk(tree))
        return all(_is_plain(node) for node in nodes) and sum(map(_is_power, nodes)) <= 4
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in FUNCTIONS or re.fullmatch(r"[A-Za-z]{1,5}\d{1,9}", node.id, re.ASCII) is not None
    if isinstance(node, ast.Constant):
        text = isinstance(node.value, str) and TEXTS.fullmatch(node.value) is not None
        return text or isinstance(node.value, bool | float) or _is_small(node.value, LARGEST)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and _is_plain_call(node.func.id, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _bounded([node.left, node.right])
    return isinstance(node, PLAIN_NODES)


def _is_plain_call(name: str, node: ast.Call) -> bool:
    """Return whether a call of a known function has arguments whose value has few digits; texts are symbols' names and
    decimal numbers."""
    if not all(each.arg and isinstance(each.value, ast.Constant) for each in node.keywords):
        return False
    texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if name == "Float":
        first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else 0
        digits = (*node.args[1:], *(each.value for each in node.keywords))
        decimal = not texts or DECIMAL.fullmatch(str(first)) is not None
        return decimal and all(isinstance(each, ast.Constant) and _is_small(each.value, DIGITS) for each in digits)
    if name == "RoundDecimal":
        return not texts and all(_exponent(each) for each in node.args[1:])
    return (not texts or name == "Symbol") and (name not in POWERS or _bounded(node.args))


def _bounded(operands: list[ast.expr]) -> bool:
    """Return whether a power has a small exponent and no power below it, so that its value has few digits."""
    return len(operands) == 2 and _exponent(operands[1]) and not any(_is_power(node) for node in ast.walk(operands[0]))


def _exponent(node: ast.expr) -> bool:
    """Return whether a number is written out, and small: that of a sum or a product is not."""
    while isinstance(node, ast.UnaryOp) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Integer" and node.args
    ):
        node = node.operand if isinstance(node, ast.UnaryOp) else node.args[0]
    return isinstance(node, ast.Constant) and _is_small(node.value, 8)


def _is_power(node: ast.AST) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in POWERS
    return called or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow))


def _is_small(value: object, bound: int) -> bool:
    return type(value) is int and -bound <= value <= bound
