"""The process that runs a checkpoint in transformers: a request (JSON) on standard input, arrays and figures to a file.

It imports nothing of the workbench.  The weights are those that compressed-tensors decompresses, or that torchao
computes with, in float32.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np


def main() -> None:
    """Carry out one request: ``file``, ``out``, ``samples``, ``positions``, ``threads``, ``memory``, ``embeddings``."""
    request = json.load(sys.stdin)
    os.environ["HF_HUB_OFFLINE"] = "1"  # settings of an untrusted folder went along
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
    import torch
    import transformers

    torch.set_num_threads(request["threads"])
    logging: Any = transformers.utils.logging
    logging.set_verbosity_error()
    network = load(request["file"])
    ids = torch.tensor(request["samples"])
    figures: dict[str, Any] = {"runtime": _versions(network), "tokens": _tokens(request)}
    began = time.perf_counter()
    with torch.no_grad():
        pooling = request["embeddings"]
        values = _embeddings(network, ids, pooling) if pooling else _log_probabilities(network, ids, request)
    figures["prompt_tokens_per_second"] = ids.numel() / (time.perf_counter() - began)
    if not request["embeddings"] and network.can_generate():
        figures["generated_tokens_per_second"] = _generation(network, ids[:1, : ids.shape[1] // 2])
    figures["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    np.save(request["out"] + ".npy", values)
    with open(request["out"] + ".json", "w", encoding="utf-8") as file:
        json.dump(figures, file)
    os._exit(0)


def load(folder: str) -> Any:
    """Return the network with its weights decompressed, in float32."""
    import torch
    import transformers

    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    method = config.get("quantization_config", {}).get("quant_method")
    cls = getattr(transformers, config["architectures"][0])
    # else config.json may name code of the Hub
    plain: dict[str, Any] = {"attn_implementation": None, "experts_implementation": None}
    plain |= {"dtype": torch.float32, "local_files_only": True, "trust_remote_code": False}
    adapted = {"compressed-tensors": _packed_let_in, "torchao": _in_float32}
    with adapted.get(method, contextlib.nullcontext)():
        network = cls.from_pretrained(folder, **plain)
    compressor = getattr(getattr(network, "hf_quantizer", None), "compressor", None)
    if compressor is not None:
        compressor.decompress_model(network)
    if method == "torchao":
        return network.eval()
    if rotations := config.get("quantization_config", {}).get("transform_config"):  # transformers leaves them out
        from compressed_tensors.transform import TransformConfig, apply_transform_config

        apply_transform_config(network, TransformConfig.model_validate(rotations))
    return torch.nn.Module.float(network).eval()  # its own method refuses quantized networks


@contextlib.contextmanager
def _packed_let_in() -> Iterator[None]:
    """Have compressed-tensors expect packed zero points; on the meta device, 0.20 expects them as they were before.

    transformers then refuses every asymmetric checkpoint, those of llm-compressor too; vLLM does not.  Nor does it
    load packed tables and layers whose weights it initializes once more: these have none.
    """
    import torch
    import transformers
    from compressed_tensors.compressors.pack_quantized.base import PackedQuantizationCompressor as Packed

    plain, initialize = Packed.compress.__func__, transformers.PreTrainedModel._initialize_weights

    def compress(cls: Any, state: Any, scheme: Any) -> Any:
        packed, zeros = plain(cls, state, scheme), state.get("weight_zero_point")
        if state["weight"].is_meta and zeros is not None and scheme.weights.strategy in ("group", "channel"):
            words = -(-zeros.shape[0] * scheme.weights.num_bits // 32)
            if not scheme.weights.symmetric:
                packed["weight_zero_point"] = torch.empty((words, zeros.shape[1]), dtype=torch.int32, device="meta")
        return packed

    def but_packed(self: Any, module: Any, *rest: Any) -> None:
        with contextlib.suppress(AttributeError):
            initialize(self, module, *rest)

    Packed.compress = classmethod(compress)
    transformers.PreTrainedModel._initialize_weights = but_packed  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Packed.compress = classmethod(plain)
        transformers.PreTrainedModel._initialize_weights = initialize  # type: ignore[method-assign]


@contextlib.contextmanager
def _in_float32() -> Iterator[None]:
    """Have torchao compute with its weights in float32: files say the dtype of the original."""
    import re

    from transformers.quantizers import quantizer_torchao

    Quantizer: Any = quantizer_torchao.TorchAoHfQuantizer
    plain, stated = Quantizer.set_metadata, r'("dtype": {"_type": "torch.dtype", "_data": )"b?float16"'

    def set_metadata(self: Any, files: list[str]) -> None:
        plain(self, files)
        self.metadata = {name: re.sub(stated, r'\1"float32"', text) for name, text in self.metadata.items()}

    Quantizer.set_metadata = set_metadata
    try:
        yield
    finally:
        Quantizer.set_metadata = plain


def _log_probabilities(network: Any, ids: Any, request: Any) -> np.ndarray:
    """Return float32 ``[samples, positions, classes]``, or ``[samples, classes]`` where no positions are asked for."""
    import torch

    out, uncached = [], {"use_cache": False} if network.can_generate() else {}
    for sample in ids:
        logits = network(input_ids=sample[None], **uncached).logits[0]
        logits = logits[request["positions"]] if request["positions"] else logits
        out.append(torch.log_softmax(logits.float(), -1).numpy())
    return np.stack(out)


def _embeddings(network: Any, ids: Any, pooling: str) -> np.ndarray:
    """Return float32 ``[samples, features]``, of each sample's tokens the mean, the first or the last one; a head of
    words, which the checkpoint's class may have, is left out."""
    states = (network.base_model(input_ids=sample[None])[0][0].float() for sample in ids)
    place = {"first": 0, "last": -1}.get(pooling)
    return np.stack([(each.mean(0) if place is None else each[place]).numpy() for each in states])


def _generation(network: Any, prompt: Any) -> float:
    began = time.perf_counter()
    network.generate(prompt, max_new_tokens=16, min_new_tokens=16, do_sample=False, pad_token_id=0)
    return float(16 / (time.perf_counter() - began))


def _tokens(request: Any) -> list[int]:
    import transformers

    if not request["text"]:
        return []
    loader = transformers.AutoTokenizer
    tokenizer = loader.from_pretrained(request["file"], local_files_only=True, trust_remote_code=False)
    return list(tokenizer.encode(request["text"], add_special_tokens=False))


def _versions(network: Any) -> str:
    import importlib.metadata

    import transformers

    own, quantizer = f"transformers {transformers.__version__}", getattr(network, "hf_quantizer", None)
    if quantizer is None:  # the plan quantizes nothing
        return own
    method = str(getattr(quantizer.quantization_config.quant_method, "value", ""))
    return f"{own}, {method} {importlib.metadata.version(method)}"


if __name__ == "__main__":
    main()
