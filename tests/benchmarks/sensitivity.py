"""What a table of measured losses costs beside the naive loop, on a Llama of twelve blocks: a table and a line of JSON.

    python tests/benchmarks/sensitivity.py [--blocks N] [--width N] [--samples N] [--repeats N]

The naive loop runs the whole model for every cell; both take the same weights and the same divergence.  The model has
random weights: time does not depend on them.  Both run by turns in one process; least times.
"""

from __future__ import annotations

import argparse
import json
import os
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import torch
from torch import nn

from workbench.measurement.divergence import sample_divergence
from workbench.models.data.batches import Data, units_of
from workbench.models.data.inputs import InputSpec
from workbench.models.data.record import DataRecord
from workbench.models.execution.network import Body, NetworkModel
from workbench.models.sources.layers import find_layers
from workbench.models.summary import ModelSource, ModelSummary, OutputKind, quantizable
from workbench.numerics.rounding.round_weight import round_weight
from workbench.sensitivity.score import score

SCHEMES = ("int3-g32-asym", "int4-g32-asym", "int8-channel")


class Tokens:
    """Random token ids."""

    def __init__(self, samples: int, length: int, vocabulary: int) -> None:
        self.ids = torch.randint(vocabulary, (samples, length), generator=torch.Generator().manual_seed(0))
        self.record = DataRecord(name="random", path="", split="all", samples=samples, seed=0, content_hash="")

    def __len__(self) -> int:
        return len(self.ids)

    def batches(self, batch_size: int):  # type: ignore[no-untyped-def]
        for part in torch.split(self.ids, batch_size):
            yield {"input_ids": part}


def llama(blocks: int, width: int) -> NetworkModel:
    """Return a Llama with random weights and a vocabulary of 512."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    network: nn.Module = LlamaForCausalLM(LlamaConfig(
        hidden_size=width, intermediate_size=width * 8 // 3 // 16 * 16, num_hidden_layers=blocks, vocab_size=512,
        num_attention_heads=8, num_key_value_heads=4, tie_word_embeddings=True,
    ))  # fmt: skip
    network.eval()
    result = find_layers(network, lambda name, tensor: "float32")
    summary = ModelSummary(
        name=f"llama-{blocks}", source=ModelSource(kind="none", path=""), fingerprint="", layers=result.layers,
        output=OutputKind.TOKEN_LOGITS, others=tuple(result.others),
    )  # fmt: skip
    body = Body(network=network, hooks=result.hooks, call=lambda f, b: f(b["input_ids"], use_cache=False).logits)
    return NetworkModel(summary, body, InputSpec())


def naive(model: NetworkModel, names: list[str], data: Data, batch_size: int) -> np.ndarray:
    """Return the table, one whole run for each cell and batch."""
    table = np.zeros((len(names), len(SCHEMES)))
    with torch.no_grad():
        references = [model.run(batch) for batch in data.batches(batch_size)]
        for row, name in enumerate(names):
            for column, scheme in enumerate(SCHEMES):
                rounded = round_weight(name, model.weight(name).float(), scheme, "rtn-clip").values
                view = model.with_weights({name: rounded})
                units = 0
                for reference, batch in zip(references, data.batches(batch_size), strict=True):
                    units += units_of(batch, model.summary)
                    result = sample_divergence(reference, view.run(batch), batch, OutputKind.TOKEN_LOGITS)
                    table[row, column] += float(result.sum())
                table[row, column] /= units
    return table


def main() -> None:
    """Read the command line, measure by turns, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    model, data = llama(options.blocks, options.width), Tokens(options.samples, 128, 512)
    names = [layer.name for layer in quantizable(model.summary.layers)]
    times: dict[str, list[float]] = {"naive": [], "resumed": []}
    for _ in range(options.repeats):
        start = time.perf_counter()
        expected = naive(model, names, data, 4)
        middle = time.perf_counter()
        table = score(model, "measured_kl", SCHEMES, dataset=data, batch_size=4, layers=names)
        times["naive"].append(middle - start)
        times["resumed"].append(time.perf_counter() - middle)
    difference = float(np.abs(table.score - expected).max())
    ratio = min(times["resumed"]) / min(times["naive"])
    print(f"{len(names)} layers x {len(SCHEMES)} schemes: naive {min(times['naive']):.1f} s, resumed "
          f"{min(times['resumed']):.1f} s, ratio {ratio:.2f}, largest difference {difference:.1e} nats")  # fmt: skip
    print(json.dumps({"ratio": ratio, "difference": difference, **{key: min(value) for key, value in times.items()}}))


if __name__ == "__main__":
    main()
