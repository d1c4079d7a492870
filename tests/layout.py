"""The layout of the code in figures: lines, files per folder, import circles, upward imports, long functions.

    python -m tests.layout [--json]

``tests/test_layout.py`` holds the limits.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = {"workbench": "workbench", "kernels": "workbench_kernels"}
"""Folders with code, and the names they are imported by."""

ROOMS = (
    "console", "gui", "steps", "engine", "insight", "session", "deployment", "quantization", "planning", "sensitivity",
    "measurement", "models", "numerics",
)  # fmt: skip
"""The rooms of ``workbench`` from the top down: each imports only what stands after it."""

FACES = ("__init__", "__main__", "program", "cli")
"""Files of ``workbench`` itself that stand above all rooms; the other files there stand below all of them."""

GUI_ROOMS = ("", "commands", "report", "panels", "tables", "plots", "shell", "context")
"""The rooms of the window from the top down; the empty name is ``workbench/gui`` itself."""

LONG = 40
"""A function of more lines, signature and docstring included, counts as long."""

BEFORE: Mapping[str, int] = {
    "lines of workbench": 48_799, "files in the fullest folder": 63, "import circles": 10, "upward imports": 3,
    "functions over 40 lines": 21,
}  # fmt: skip
"""The same figures of the flat layout (commit ca065ea), by the same rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A Python file: its dotted name, and the modules of ours that it imports anywhere, type checking included."""

    name: str
    path: Path
    imports: frozenset[str]

    @property
    def room(self) -> str:
        """The folder below ``workbench`` or ``kernels``; empty for files beside the rooms."""
        return self.name.split(".")[1] if self.path.parent not in (ROOT / "workbench", ROOT / "kernels") else ""


def modules(root: Path = ROOT) -> dict[str, Module]:
    """Return every module by its dotted name."""
    paths: dict[str, Path] = {}
    for folder, package in PACKAGES.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root / folder).with_suffix("").parts
            paths[".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))] = path
    return {
        name: Module(name=name, path=path, imports=frozenset(_imports(name, path, paths)))
        for name, path in paths.items()
    }  # fmt: skip


def _imports(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, name, path)
            targets = {f"{base}.{alias.name}" for alias in node.names}
            yield from targets & known.keys()
            if targets - known.keys() and base in known and base != name:
                yield base


def _base(node: ast.ImportFrom, name: str, path: Path) -> str:
    """Return the absolute name of what a ``from`` statement imports from."""
    if not node.level:
        return node.module or ""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    parts = package[: len(package) - node.level + 1]
    return ".".join((*parts, *filter(None, (node.module,))))


def circles(tree: Mapping[str, Module]) -> list[tuple[str, ...]]:
    """Return the groups of modules that import each other (strongly connected components; Tarjan, 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[tuple[str, ...]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for target in sorted(tree[name].imports):
            if target not in order:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], order[target])
        if lowest[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                groups.append(tuple(sorted(group)))

    sys.setrecursionlimit(10_000)
    for name in tree:
        if name not in order:
            visit(name)
    return groups


def upward(tree: Mapping[str, Module]) -> list[str]:
    """Return every import that points up the list of rooms, or from the kernels into the application."""
    return [
        f"{module.name} imports {target}"
        for module in tree.values()
        for target in sorted(module.imports)
        if _points_up(module.name, target)
    ]


def _points_up(source: str, target: str) -> bool:
    if source.startswith("workbench_kernels"):
        return target.split(".")[0] == "workbench"
    if target.startswith("workbench_kernels"):
        return False
    return _height(target) > _height(source)


def _height(name: str) -> tuple[int, int]:
    """Return how high a module of ``workbench`` stands; greater is higher."""
    parts = name.split(".")[1:]
    if not parts or parts[0] in FACES:
        return (len(ROOMS) + 1, 0)
    if parts[0] not in ROOMS:
        return (0, 0)
    inner = 0
    if parts[0] == "gui":
        room = parts[1] if len(parts) > 1 and parts[1] in GUI_ROOMS else ""
        inner = len(GUI_ROOMS) - GUI_ROOMS.index(room)
    return (len(ROOMS) - ROOMS.index(parts[0]), inner)


def long_functions(root: Path = ROOT) -> list[tuple[int, str]]:
    """Return ``(lines, place)`` of every function of ``workbench`` and ``kernels`` over LONG lines, longest first."""
    rows = []
    for folder in PACKAGES:
        for path in sorted((root / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                    lines = node.end_lineno - node.lineno + 1
                    if lines > LONG:
                        rows.append((lines, f"{path.relative_to(root)}:{node.lineno} {node.name}"))
    return sorted(rows, reverse=True)


def files_by_folder(root: Path = ROOT) -> dict[str, int]:
    """Return how many Python files each folder with code holds, ``__init__.py`` not counted; fullest first."""
    folders: dict[str, int] = {}
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            folder = path.parent.relative_to(root).as_posix()
            folders[folder] = folders.get(folder, 0) + (path.name != "__init__.py")
    return dict(sorted(folders.items(), key=lambda item: (-item[1], item[0])))


def lines_by_room(tree: Mapping[str, Module]) -> dict[str, int]:
    """Return the lines of each room of ``workbench``, from the top down, and of the kernels."""
    rooms = dict.fromkeys(("workbench", *ROOMS, "kernels"), 0)
    for module in tree.values():
        lines = len(module.path.read_text(encoding="utf-8").splitlines())
        room = "kernels" if module.name.startswith("workbench_kernels") else module.room or "workbench"
        rooms[room] = rooms.get(room, 0) + lines
    return rooms


GOALS: Mapping[str, int] = {
    "lines of workbench": 44_000, "files in the fullest folder": 22, "import circles": 0, "upward imports": 0,
    "functions over 40 lines": 20,
}  # fmt: skip
"""What each figure should be at most."""


def figures() -> dict[str, int]:
    """Return the figures that BEFORE has, of the tree as it is."""
    tree = modules()
    rooms = lines_by_room(tree)
    return {
        "lines of workbench": sum(rooms.values()) - rooms["kernels"],
        "files in the fullest folder": max(files_by_folder().values()),
        "import circles": len(circles(tree)),
        "upward imports": len(upward(tree)),
        "functions over 40 lines": len(long_functions()),
    }


def main() -> None:
    """Print everything, or one JSON object with ``--json``."""
    tree = modules()
    now = figures()
    if "--json" in sys.argv:
        print(json.dumps({"before": dict(BEFORE), "goal": dict(GOALS), "now": now, "lines": lines_by_room(tree)}))
        return
    print(f"{'':30s}{'before':>9s}{'now':>9s}{'goal':>9s}")
    for name, value in now.items():
        print(f"{name:30s}{BEFORE[name]:9,d}{value:9,d}{GOALS[name]:9,d}{'' if value <= GOALS[name] else '  missed'}")
    print("\nlines by room")
    for room, lines in lines_by_room(tree).items():
        print(f"  {room:28s}{lines:9,d}")
    print("\nfiles by folder")
    for folder, count in files_by_folder().items():
        print(f"  {folder:50s}{count:4d}")
    for title, rows in (
        ("import circles", [" ".join(group) for group in circles(tree)]),
        ("upward imports", upward(tree)),
        ("functions over 40 lines", [f"{lines:3d} {place}" for lines, place in long_functions()]),
    ):
        print(f"\n{title}: {len(rows)}")
        for row in rows:
            print(f"  {row}")


if __name__ == "__main__":
    main()
