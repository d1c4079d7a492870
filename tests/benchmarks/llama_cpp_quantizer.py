"""Plans against llama.cpp's own quantizer at equal bytes, every file measured in llama.cpp.

``python tests/benchmarks/llama_cpp_quantizer.py MODEL CALIBRATION.txt EVALUATION.txt --python PEERS_PYTHON``

``PEERS_PYTHON`` is an interpreter that has ``llama-cpp-python`` (its build takes ten minutes, so it is not installed
here).  Three columns at each size, all with the importance of the same calibration text: llama.cpp's mix; llama.cpp's
quantizer with the types of an allocation by importance-weighted error alone, as its ``--target-bpw`` allocates; and
the plan of least predicted loss in the types that the three share, rounded by ``rtn-weighted`` and by ``gptq``.  To
reach: 0.75 of the mix's KL and 0.85 of the allocation's.

llama.cpp rounds the inputs of every quantized weight to 8 bits, which no rounding of weights takes away: ``weights`` is
the KL of the same file's weights in our own evaluation, which rounds no inputs, and ``inputs`` what rounding the inputs
as its types have it costs there beside the original weights.  Where that is most of the KL, the ratios come near 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, dequantize
from scipy.optimize import Bounds, LinearConstraint, milp

import workbench
from workbench.deployment.gguf_file import content_of
from workbench.deployment.proof.rounding import as_in_llama_cpp
from workbench.models.data.inputs import fast_tokenizer
from workbench.models.model import Model
from workbench.planning.plan import Plan, resolve
from workbench.session.session import Session
from workbench.steps.files.first_session import as_stored

MIXES = {"Q2_K": 10, "Q3_K_M": 12, "Q4_K_S": 14, "Q4_K_M": 15, "IQ4_XS": 30, "Q5_K_M": 17}
NARROW = ("q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1", "q8_0")
WIDE = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k")
FILE_TYPES = {"q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 10, "q3_k": 11, "q4_k": 14, "q5_k": 16,
              "q6_k": 18, "iq4_nl": 25}  # fmt: skip
"""``llama_ftype`` of a file that is (with ``pure``) of one type."""
PEER = Path(__file__).parent / "quality_peers" / "run_llama_cpp.py"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What is compared on: the model, its session, windows of held-out text, a folder for files."""

    model: Model
    session: Session
    windows: Path
    folder: Path
    python: str
    names: Mapping[str, str]
    algorithms: Sequence[str]

    def peer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return llama.cpp's answer."""
        completed = subprocess.run([self.python, PEER], input=json.dumps(request), capture_output=True, text=True)
        if completed.returncode:
            raise SystemExit(completed.stderr.strip()[-2000:])
        answer: dict[str, Any] = json.loads(completed.stdout.strip().splitlines()[-1])
        return answer

    def ours(self, plan: Plan, name: str) -> Path:
        """Export a plan."""
        out = self.folder / f"{name}.gguf"
        workbench.export(self.session, "gguf", out, plan=plan, model=self.model)
        return out

    def theirs(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        """Have llama.cpp write files from the floating-point one, with the calibration's importance matrix."""
        source, matrix = str(self.folder / "fp.gguf"), self.folder / "imatrix.npz"
        if not matrix.exists():
            importance: dict[str, Any] = {
                self.names[name]: curvature.columns.astype(np.float32)
                for name, curvature in self.session.curvature.items()
                if name in self.names and not self.names[name].startswith("token_embd")
            }
            np.savez(matrix, **importance)
        self.peer({"imatrix": str(matrix), "quantize": [{**job, "source": source} for job in jobs]})


def tensor_bytes(path: Path) -> int:
    """Return the bytes of a file's tensors."""
    return sum(int(tensor.n_bytes) for tensor in GGUFReader(path).tensors)


def our_kl(bench: Bench, model: Model) -> float:
    """Return KL(floating point || model) in nats per token in our own evaluation of the windows."""
    losses = []
    for window in np.load(bench.windows):
        tokens = {"input_ids": torch.from_numpy(window[None].astype(np.int64))}
        with torch.inference_mode():
            expected, observed = (each.run(tokens)[0].double().log_softmax(-1) for each in (bench.model, model))
        losses.append(float((expected.exp() * (expected - observed)).sum(-1).mean()))
    return float(np.mean(losses))


def apart(bench: Bench, file: Path) -> dict[str, float]:
    """Return what a file's weights cost in our evaluation, and what its rounding of inputs alone costs there."""
    model = workbench.open(file)
    stored = workbench.quantize(model, as_stored(model, Plan()))
    assigned = resolve(as_in_llama_cpp(stored).plan, model.summary.layers)
    plan = Plan()
    for name, each in assigned.items():
        plan = plan.assign([name], inputs=each.inputs) if each.inputs else plan
    inputs = workbench.quantize(bench.model, plan).bind(bench.model)
    return {"weights": our_kl(bench, model), "inputs": our_kl(bench, inputs)}


def errors_of(bench: Bench) -> dict[tuple[str, str], tuple[float, int]]:
    """Return the importance-weighted squared error and the bytes of every tensor in every type, by llama.cpp."""
    files = {scheme: bench.folder / f"pure-{scheme}.gguf" for scheme in FILE_TYPES}
    bench.theirs([{"out": str(files[scheme]), "type": kind, "pure": True} for scheme, kind in FILE_TYPES.items()])
    reference = {tensor.name: tensor for tensor in GGUFReader(bench.folder / "fp.gguf").tensors}
    matrix, table = dict(np.load(bench.folder / "imatrix.npz")), {}
    for scheme, file in files.items():
        for tensor in GGUFReader(file).tensors:
            original = reference[tensor.name]
            if tensor.tensor_type == original.tensor_type or tensor.tensor_type != GGMLQuantizationType[scheme.upper()]:
                continue  # a norm, or a width that this type does not divide
            error = dequantize(tensor.data, tensor.tensor_type) - dequantize(original.data, original.tensor_type)
            weight = matrix.get(tensor.name, np.ones(error.shape[-1], np.float32))
            table[tensor.name, scheme] = float((error**2 @ weight).sum(dtype=np.float64)), int(tensor.n_bytes)
        file.unlink()
    return table


def allocation(table: Mapping[tuple[str, str], tuple[float, int]], nbytes: int) -> dict[str, str]:
    """Return the type of each tensor with the least sum of errors within ``nbytes``: an exact knapsack."""
    cells = list(table)
    tensors = sorted({name for name, _ in cells})
    choice = np.array([[float(name == tensor) for name, _ in cells] for tensor in tensors])
    cost = np.array([table[cell][0] for cell in cells])
    solved = milp(
        cost / cost.max(), integrality=np.ones(len(cells)), bounds=Bounds(0, 1), options={"mip_rel_gap": 1e-4},
        constraints=[LinearConstraint(choice, 1, 1),
                     LinearConstraint(np.array([table[cell][1] for cell in cells])[None], 0, nbytes)],
    )  # fmt: skip
    return {name: scheme for (name, scheme), taken in zip(cells, solved.x, strict=True) if taken > 0.5}


def rows_at(bench: Bench, mix: str, table: Mapping[tuple[str, str], tuple[float, int]]) -> dict[str, Path]:
    """Write the files of one size; ``table`` of llama.cpp's errors."""
    file = bench.folder / f"{mix}.gguf"
    bench.theirs([{"out": str(file), "type": MIXES[mix]}])
    size = tensor_bytes(file)
    fixed = tensor_bytes(bench.folder / "fp.gguf") - sum(
        int(tensor.n_bytes) for tensor in GGUFReader(bench.folder / "fp.gguf").tensors
        if any(name == tensor.name for name, _ in table)
    )  # fmt: skip
    types = allocation(table, size - fixed)
    allocated = bench.folder / f"{mix}-allocation.gguf"
    kinds = {name: int(GGMLQuantizationType[scheme.upper()]) for name, scheme in types.items()}
    bench.theirs([{"out": str(allocated), "type": 7, "types": kinds}])
    files = {"mix": file, "allocation": allocated}
    shipped = sum(layer.nbytes for layer in bench.model.summary.others)
    base = workbench.search(
        bench.session, size=size - fixed + shipped, target="gguf", schemes=(*NARROW, *WIDE),
    )  # fmt: skip
    for algorithm in bench.algorithms:
        quantized = [layer.name for layer in bench.model.summary.stored if base.of(layer.name).weights != "keep"]
        plan = base.assign(quantized, algorithm=algorithm)
        files[f"ours, {algorithm}"] = bench.ours(plan, f"{mix}-{algorithm}")
    return files


def main() -> None:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("model", "calibration", "evaluation"):
        parser.add_argument(name)
    parser.add_argument("--python", required=True, help="an interpreter that has llama-cpp-python")
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--evaluation-samples", type=int, default=8)
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--session", type=Path, help="the scored session: read where it exists, else written")
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--algorithms", default="rtn-weighted,gptq")
    options = parser.parse_args()
    model = workbench.open(options.model)
    tokenizer = fast_tokenizer(model.inputs.tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        ids = tokenizer.encode(Path(options.evaluation).read_text(encoding="utf-8"), add_special_tokens=False).ids
        windows = np.array(ids[: options.window * options.evaluation_samples], np.int32).reshape(-1, options.window)
        np.save(Path(folder) / "windows.npy", windows)
        session = scored(model, options)
        tensors = {each.source: each.name for each in content_of(workbench.quantize(model, Plan()), model).tensors}
        named = {layer.name: tensors[layer.parameter] for layer in model.summary.stored if layer.parameter in tensors}
        bench = Bench(model=model, session=session, windows=Path(folder) / "windows.npy", folder=Path(folder),
                      python=options.python, names=named, algorithms=options.algorithms.split(","))  # fmt: skip
        bench.ours(Plan(name="floating point"), "fp")
        compare(bench, options.mixes.split(","))


def scored(model: Model, asked: argparse.Namespace) -> Session:
    """Return the session with predicted losses of the shared types, computed once for many runs of this benchmark."""
    if asked.session is not None and asked.session.exists():
        return Session.load(asked.session)
    session = workbench.calibrate(model, asked.calibration, samples=asked.samples, window=asked.window)
    print("calibrated", flush=True)
    session = workbench.score(session, model=model, schemes=(*NARROW, *WIDE), algorithm="rtn-weighted")
    print("scored", flush=True)
    if asked.session is not None:
        session.save(asked.session)
    return session


def compare(bench: Bench, mixes: Sequence[str]) -> None:
    """Write, measure and print every row."""
    table, rows = errors_of(bench), []
    columns = {"kl": "9.5f", "error": "8.5f", "weights": "9.5f", "inputs": "9.5f", "agreement": "10.3f",
               "of_mix": "7.2f", "of_allocation": "13.2f"}  # fmt: skip
    titles = " ".join(f"{title:>{form.partition('.')[0]}}" for title, form in columns.items())
    print(f"{'mix':8} {'plan':20} {'MB':>8} {titles}")
    for mix in mixes:
        files = rows_at(bench, mix, table)
        measured = bench.peer({
            "measure": [str(path) for path in files.values()], "reference": str(bench.folder / "fp.gguf"),
            "windows": str(bench.windows), "threads": 2,
        })  # fmt: skip
        results = {name: measured[str(path)] for name, path in files.items()}
        for name, path in files.items():
            row = {"size": mix, "plan": name, "bytes": tensor_bytes(path), **results[name], **apart(bench, path)}
            row |= {f"of_{peer}": row["kl"] / results[peer]["kl"] for peer in ("mix", "allocation")}
            rows.append(row)
            figures = " ".join(format(row[title], form) for title, form in columns.items())
            print(f"{mix:8} {name:20} {row['bytes'] / 1e6:8.2f} {figures}", flush=True)
            path.unlink()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
