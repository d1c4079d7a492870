"""What our encoders of llama.cpp's types lose beside llama.cpp's own: KL at equal bytes, with the same importance.

    python tests/benchmarks/gguf_encoders.py MODEL TEXT [--types iq4_xs,iq3_s,...] [--layers 4] [--sets 3]
        [--windows 4]

Some layers whose rows blocks of 256 divide are encoded by both, with the mean squares of their inputs as importance;
the rest stays as it is.  One set of layers is one draw: at two bits ratios of sets differ by a tenth, and their
geometric mean is judged.  llama.cpp's encoder is ``ggml_quantize_chunk`` of the wheel ``xllamacpp``; its bytes are
decoded by the package ``gguf``.  Goal: a mean ratio of at most 1.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import gguf
import numpy as np
import torch

import workbench
from workbench.measurement.evaluate import evaluate
from workbench.models.data.batches import Data
from workbench.models.data.datasets import open_dataset
from workbench.models.model import Model
from workbench.quantization.quantize import quantize
from workbench.session.session import Session

TYPES = ("iq4_xs", "iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "iq1_s")
BLOCK = 256


def library() -> ctypes.CDLL:
    """Return llama.cpp's library, with what its quantizer takes."""
    found = importlib.util.find_spec("xllamacpp")
    if found is None or found.origin is None:
        raise SystemExit("xllamacpp is not installed: pip install xllamacpp")
    loaded = ctypes.CDLL(str(next(Path(found.origin).parent.glob("*.so"))))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    loaded.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, number, number, number, pointer]
    loaded.ggml_quantize_chunk.restype = ctypes.c_size_t
    return loaded


def by_llama_cpp(ggml: ctypes.CDLL, name: str, weight: np.ndarray, importance: np.ndarray) -> torch.Tensor:
    """Return a matrix (float32 ``[rows, columns]``) as llama.cpp has it; ``importance`` is float32 ``[columns]``."""
    kind = gguf.GGMLQuantizationType[name.upper()]
    rows, columns = weight.shape
    block, size = gguf.GGML_QUANT_SIZES[kind]
    encoded = np.zeros(rows * columns // block * size, np.uint8)
    ggml.ggml_quantize_init(int(kind))
    places = (each.ctypes.data for each in (weight, encoded))
    written = ggml.ggml_quantize_chunk(int(kind), *places, 0, rows, columns, importance.ctypes.data)
    assert written == encoded.size
    return torch.from_numpy(gguf.dequantize(encoded.reshape(rows, -1), kind).astype(np.float32))


def compared(
    session: Session, model: Model, data: Data, name: str, sets: Sequence[Sequence[str]]
) -> dict[str, list[float]]:
    """Return the KL of each set by both encoders."""
    ggml, matrices, layers = library(), {}, [layer for each in sets for layer in each]
    for layer in layers:
        weight = np.ascontiguousarray(model.weight(layer).float().numpy())
        importance = np.ascontiguousarray(session.curvature[layer].columns.reshape(-1), np.float32)
        matrices[layer] = by_llama_cpp(ggml, name, weight, importance)
    plan = workbench.Plan().assign(layers, weights=name, algorithm="rtn-weighted")
    ours = quantize(model, plan, curvature=session.curvature).bind(model)
    encoded = {"llama.cpp": matrices, "ours": {layer: ours.weight(layer) for layer in layers}}

    def kl(weights: Mapping[str, torch.Tensor]) -> float:
        return evaluate(model, model.with_weights(weights), data, batch_size=2)["kl"].value

    return {
        title: [kl({layer: weights[layer] for layer in each}) for each in sets] for title, weights in encoded.items()
    }


def main() -> None:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--layers", type=int, default=4, help="layers of a set")
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--window", type=int, default=256)
    options = parser.parse_args()
    model = workbench.open(options.model)
    session = workbench.calibrate(model, options.text, samples=2 * options.windows, window=options.window)
    data = open_dataset(options.text, model, samples=options.windows, seed=1, sequence_length=options.window)
    fitting = [layer.name for layer in model.summary.stored if layer.matrix[1] % BLOCK == 0 and not layer.keep]
    step, rows = max(len(fitting) // options.layers, 1), []
    sets = [fitting[first::step][: options.layers] for first in range(min(options.sets, step))]
    print(f"{'type':8} {'llama.cpp':>10} {'ours':>10} {'ratio':>7}  of each set")
    for name in options.types.split(","):
        row = compared(session, model, data, name, sets)
        ratios = np.divide(row["ours"], row["llama.cpp"])
        means = f"{np.mean(row['llama.cpp']):10.5f} {np.mean(row['ours']):10.5f} {np.exp(np.log(ratios).mean()):7.3f}"
        print(f"{name:8} {means}  {' '.join(f'{ratio:.3f}' for ratio in ratios)}", flush=True)
        rows.append({"type": name, **row})
    print(json.dumps({"sets": sets, "rows": rows}))


if __name__ == "__main__":
    main()
