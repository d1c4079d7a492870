"""Saves and exports on a disk that is full at the first write, then at the second, and so on until it is large enough.

Run with the shim preloaded: ``python -m tests.faults.full_disk SHIM FOLDER files|KIND``.  Prints a line of JSON for
each writer.
"""

from __future__ import annotations

import ctypes
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.session.sessions import full_session
from workbench.deployment.endings import ENDINGS
from workbench.deployment.exporters import exporter
from workbench.errors import WorkbenchError
from workbench.insight.problem_report import write_report
from workbench.models.sources import open_model
from workbench.numerics.curvature import Curvature
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.session.shared_file import SharedFile


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def tried(shim: ctypes.CDLL, write: Callable[[Path], object], out: Path) -> dict[str, object]:
    """Write over what ``write`` wrote before, with less and less room; returns what happened."""
    write(out)
    before, number, problems = contents(out.parent), 0, list[str]()
    while True:
        shim.fault_after(number)
        try:
            write(out)
            whole = True
        except WorkbenchError as error:
            whole = False
            if "\n" in str(error) or "full" not in str(error):
                problems.append(f"{number}: {error}")
        except BaseException as error:
            whole = False
            problems.append(f"{number}: {type(error).__name__}: {error}")
        calls = shim.fault_calls()
        shim.fault_after(-1)
        if whole:
            if calls > number:
                problems.append(f"{number}: it said that all went well")
            break
        if contents(out.parent) != before:
            problems.append(f"{number}: {set(contents(out.parent).items()) ^ set(before.items())}"[:300])
        number += 1
    return {"writes": number, "problems": problems}


RUNTIMES = {"huggingface": "int8-channel", "compressed-tensors": "int8-channel", "gptq": "int8-g32", "mlx": "int8-g32",
            "torchao": "int8-channel", "gguf": "q8_0", "onnx": "int4-g32", "onnx-genai": "int4-g32",
            "recipe": "int4-g32", "tensor-types": "q8_0", "imatrix": "q8_0"}  # fmt: skip
"""Exporters that write a language model, and a scheme that each holds."""


def _exports_language_model(kind: str) -> Callable[[Path], object]:
    """Return what exports a tiny Llama."""
    from tests.deployment.exporters.llamas import folder_of

    llama = folder_of("llama", Path(tempfile.mkdtemp()), hidden_size=32, intermediate_size=32, num_hidden_layers=1)
    model = open_model(llama)
    plan = Plan().assign(["model.layers.*.mlp.*"], weights=RUNTIMES[kind], algorithm="rtn")
    curvature = {
        layer.name: Curvature(rows=np.ones(layer.matrix[0]), columns=np.ones(layer.matrix[1]), full=None, count=8)
        for layer in model.summary.stored
    }
    result = replace(quantize(model, plan), curvature=curvature)
    settings = ["external=true"] if kind == "onnx" else []  # two files
    return lambda out: exporter(kind, settings).export(result, model, out, silent)


def main() -> None:
    """Try every writer."""
    warnings.simplefilter("ignore")
    shim, folder = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2])
    session, model = full_session(), open_model("demo:digits-classifier")
    names = [layer.name for layer in model.summary.stored]
    result = quantize(model, Plan(model=model.summary.name).assign(names, weights="int8-channel", algorithm="rtn"))

    def exports(kind: str) -> Callable[[Path], object]:
        return lambda out: exporter(kind).export(result, model, out, silent)

    def join(out: Path) -> None:
        """As a command does: lock, read again, join, write."""
        if not out.exists():
            session.save(out)
        SharedFile.open(out).save(lambda current: current)

    writers: dict[str, tuple[str, Callable[[Path], object]]] = {
        "session": ("s.qwb", session.save), "a command's session": ("s.qwb", join),
        "a plan": ("p.json", session.plan.save),
        "report": ("r.zip", lambda out: write_report({"a": "b" * 100_000}, out)),
    }  # fmt: skip
    for kind in ("plan", "script", "safetensors", "state-dict"):
        writers[kind] = (f"out{ENDINGS[kind]}", exports(kind))
    if sys.argv[3] in RUNTIMES:
        kind = sys.argv[3]
        writers = {kind: (f"out{ENDINGS.get(kind, '')}", _exports_language_model(kind))}
    for name, (file, write) in writers.items():
        place = folder / name.replace(" ", "-")
        place.mkdir()
        print(json.dumps({"writer": name, **tried(shim, write, place / file)}), flush=True)


if __name__ == "__main__":
    main()
