"""A language model with its cache of keys and values as inputs and outputs, as ONNX Runtime GenAI runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.deployment.onnx.capture import Graph, captured, remembered
from workbench.errors import ExportError
from workbench.models.execution.network import NetworkModel
from workbench.models.model import Model
from workbench.models.summary import OutputKind

TYPES = frozenset({
    "chatglm", "ernie4_5", "gemma", "gemma2", "gemma3_text", "gptoss", "granite", "internlm2", "llama",
    "mistral", "nemotron", "olmo", "phi", "phi3", "phimoe", "qwen2", "qwen3", "smollm3",
})  # fmt: skip
"""The decoders that ONNX Runtime GenAI 0.18 knows, by its library's names; its gpt2 takes one cache for both."""

PAST, PRESENT = "past_key_values.%d.%s", "present.%d.%s"


def capture_decoder(model: Model) -> tuple[Graph, dict[str, Any]]:
    """Return the graph of a transformers decoder with a cache, and what ``genai_config.json`` says of it.

    Raises ExportError for other networks, and for those that keep more than keys and values.
    """
    config = _config(model)
    _type(config)
    assert isinstance(model, NetworkModel)
    shapes = _cache_shapes(model)
    free, samples, tokens, past = torch.export.Dim.DYNAMIC, 2, 3, 4
    batch: dict[str, Any] = {
        "input_ids": torch.arange(samples * tokens).reshape(samples, tokens) % config.vocab_size,
        "attention_mask": torch.ones(samples, past + tokens, dtype=torch.int64),
        "position_ids": torch.arange(past, past + tokens).repeat(samples, 1),
        "past": [tuple(torch.randn(samples, heads, past, size) for heads, size in pair) for pair in shapes],
    }  # fmt: skip
    axes = {0: free, 1: free}
    dynamic: dict[str, Any] = {name: axes for name in batch if name != "past"}
    dynamic["past"] = [({0: free, 2: free}, {0: free, 2: free}) for _ in shapes]

    def forward(network: Any, batch: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer, (keys, values) in enumerate(batch["past"]):
            cache.update(keys, values, layer)
        answer = network(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], position_ids=batch["position_ids"],
            past_key_values=cache, use_cache=True,
        )  # fmt: skip
        pairs = ((layer.keys, layer.values) for layer in answer.past_key_values.layers)
        return (answer.logits, *(each for pair in pairs for each in pair))

    names = list(_names(PAST, len(shapes)))
    graph = remembered(model, lambda: captured(
        model, forward, batch, ["logits", *_names(PRESENT, len(shapes))], shapes=dynamic,
        names=["input_ids", "attention_mask", "position_ids", *names],
    ), "decoder")  # fmt: skip
    return graph, _settings(model, config, shapes)


def _names(pattern: str, layers: int) -> Iterator[str]:
    for layer in range(layers):
        yield from (pattern % (layer, part) for part in ("key", "value"))


def _config(model: Model) -> Any:
    network = model.body.network if isinstance(model, NetworkModel) else None
    config = getattr(network, "config", None)
    if config is None or model.summary.output is not OutputKind.TOKEN_LOGITS or config.is_encoder_decoder:
        raise ExportError(
            f"{model.summary.name} is not a language model of transformers; only those have a KV cache; "
            "export it to onnx"
        )
    return config.get_text_config()


def _type(config: Any) -> str:
    """Return ONNX Runtime GenAI's name of an architecture; ExportError for one that it does not know."""
    name = str(config.model_type).replace("gpt_oss", "gptoss")
    if name not in TYPES:
        raise ExportError(
            f"ONNX Runtime GenAI does not know the architecture {config.model_type}; it knows "
            f"{', '.join(sorted(TYPES))}: export it to onnx"
        )
    return name


def _cache_shapes(model: NetworkModel) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return heads and features of every layer's keys and values, from a pass that fills a cache."""
    with torch.no_grad():
        answer = model.body.network(input_ids=torch.zeros(1, 2, dtype=torch.int64), use_cache=True)
    layers = getattr(answer.past_key_values, "layers", None)
    if not layers or any(getattr(layer, "keys", None) is None for layer in layers):
        raise ExportError(f"{model.summary.name} keeps more than keys and values between tokens; export it to onnx")
    return [tuple((part.shape[1], part.shape[3]) for part in (layer.keys, layer.values)) for layer in layers]  # type: ignore[misc]


def _settings(model: Model, config: Any, shapes: list[tuple[tuple[int, int], tuple[int, int]]]) -> dict[str, Any]:
    """Return ``genai_config.json`` of ONNX Runtime GenAI: names of inputs and outputs, sizes, tokens, greedy search."""
    length = model.inputs.positions or 2048
    ends = config.eos_token_id if config.eos_token_id is not None else 0
    first = ends[0] if isinstance(ends, list) else ends
    return {
        "model": {
            "bos_token_id": config.bos_token_id if config.bos_token_id is not None else first, "eos_token_id": ends,
            "pad_token_id": config.pad_token_id if config.pad_token_id is not None else first,
            "context_length": length, "vocab_size": config.vocab_size, "type": _type(config),
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []}, "filename": "model.onnx",
                "head_size": shapes[0][0][1], "hidden_size": config.hidden_size,
                "num_attention_heads": config.num_attention_heads, "num_hidden_layers": len(shapes),
                "num_key_value_heads": shapes[0][0][0],
                "inputs": {
                    **{name: name for name in ("input_ids", "attention_mask", "position_ids")},
                    **{f"past_{part}_names": PAST.replace("%s", part) for part in ("key", "value")},
                },
                "outputs": {
                    "logits": "logits",
                    **{f"present_{part}_names": PRESENT.replace("%s", part) for part in ("key", "value")},
                },
            },
        },
        "search": {"do_sample": False, "max_length": length, "min_length": 0, "num_beams": 1,
                   "past_present_share_buffer": False, "temperature": 1.0, "top_k": 1, "top_p": 1.0,
                   "repetition_penalty": 1.0, "num_return_sequences": 1, "length_penalty": 1.0,
                   "early_stopping": True, "diversity_penalty": 0.0, "no_repeat_ngram_size": 0},
    }  # fmt: skip
