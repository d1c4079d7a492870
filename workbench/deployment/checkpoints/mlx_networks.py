"""Which networks mlx-lm runs, and what its networks compute of a transformers configuration.

Source: ml-explore/mlx-lm 0.32, ``mlx_lm/models``.  Each one here gave the answers of transformers on random weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import ExportError
from workbench.models.gguf.architectures import window_of
from workbench.models.gguf.rotary import head_size, rope_of
from workbench.readable import few


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What mlx-lm computes for a model type, whatever the configuration says.

    ``activations`` and ``ropes`` are transformers' names.  ``tied``: whether the head is the table of embeddings, None
    for either.  ``experts`` is the module around those of a block.  ``sized``: heads may have another width than their
    share of the hidden size.  ``windows``: sliding windows are computed.  ``computed``: the values of members that are
    computed; ``stated``: members that may not be None.
    """

    activations: tuple[str, ...] = ("silu",)
    ropes: tuple[str, ...] = ("default",)
    tied: bool | None = None
    experts: str = ""
    sized: bool = True
    windows: bool = False
    computed: Mapping[str, object] = field(default_factory=dict)
    stated: tuple[str, ...] = ()


SCALED = ("default", "linear", "llama3", "yarn")
GELU = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh")
NO_BIASES = {"attention_bias": False}
CAPS = ("attn_logit_softcapping", "final_logit_softcapping")

NETWORKS: dict[str, Network] = {
    "llama": Network(ropes=SCALED),
    "mistral": Network(ropes=SCALED),
    "qwen2": Network(sized=False, ropes=SCALED),
    "qwen2_moe": Network(
        sized=False,
        tied=False,
        experts="mlp",
        computed={"qkv_bias": True, "norm_topk_prob": False, "decoder_sparse_step": 1, "mlp_only_layers": []},
    ),
    "qwen3": Network(ropes=SCALED, computed=NO_BIASES),
    "qwen3_moe": Network(experts="mlp", computed=NO_BIASES),
    "mixtral": Network(sized=False, experts="block_sparse_moe"),
    "olmoe": Network(experts="mlp", ropes=SCALED, computed={"clip_qkv": None}),
    "gemma": Network(activations=GELU, tied=True, computed=NO_BIASES),
    "gemma2": Network(activations=GELU, tied=True, computed=NO_BIASES, stated=CAPS),
    "gemma3_text": Network(activations=GELU, ropes=SCALED, windows=True, computed=NO_BIASES | dict.fromkeys(CAPS)),
    "phi": Network(sized=False, activations=GELU, tied=False, computed={"qk_layernorm": False}),
    "phi3": Network(sized=False),
    "gptj": Network(sized=False, activations=GELU, tied=False),
    "gpt_neox": Network(sized=False, activations=GELU, tied=False, computed={"attention_bias": True}),
    "starcoder2": Network(sized=False, activations=GELU, computed={"use_bias": True}),
    "olmo2": Network(ropes=SCALED),
    "olmo3": Network(ropes=SCALED, windows=True),
    "cohere": Network(sized=False, tied=True),
    "cohere2": Network(tied=True, windows=True),
    "granite": Network(sized=False, ropes=SCALED),
    "granitemoe": Network(sized=False, ropes=SCALED),
    "smollm3": Network(computed=NO_BIASES),
    "stablelm": Network(sized=False, tied=False),
    "glm4": Network(tied=False),
    "helium": Network(sized=False),
    "ernie4_5": Network(computed={"use_bias": False}),
    "seed_oss": Network(ropes=SCALED),
    "hunyuan_v1_dense": Network(),
    "nemotron": Network(activations=("relu2",), ropes=("default", "linear")),
    "mamba": Network(),
}
"""By transformers' ``model_type``.  A new one is an entry, after a run of a small network of it in mlx-lm."""

PATTERNS = {"gemma3_text": 6, "cohere2": 4}
"""Networks of which every so many blocks see the whole text, unless ``sliding_window_pattern`` says otherwise."""


def require_network(config: Mapping[str, Any]) -> None:
    """Raise ExportError for a transformers configuration of which mlx-lm runs no network, or another one.

    Models that take more than text are left to mlx-vlm.
    """
    kind = str(config.get("model_type"))
    network = NETWORKS.get(kind)
    if "text_config" in config:
        return
    if network is None:
        raise ExportError(
            f"the architecture {kind} cannot be written for mlx-lm yet; supported are {', '.join(NETWORKS)}"
        )
    if other := [f"{member} {value}" for member, value in _not_computed(network, config)]:
        raise ExportError(
            f"mlx-lm's {kind} computes no network with {few(other, 8)}; it cannot be written as an MLX checkpoint"
        )


def _not_computed(network: Network, config: Mapping[str, Any]) -> list[tuple[str, object]]:
    usual: dict[str, tuple[object, ...]] = {member: (value,) for member, value in network.computed.items()}
    usual |= {member: network.activations for member in ("hidden_act", "hidden_activation", "activation_function")}
    if config["model_type"] == "gemma":
        del usual["hidden_act"]  # which transformers does not look at
    if network.tied is not None:
        usual["tie_word_embeddings"] = (network.tied,)
    other = [(member, config[member]) for member, values in usual.items()
             if config.get(member) is not None and config[member] not in values]  # fmt: skip
    other += [(member, None) for member in network.stated if config.get(member) is None]
    if config["model_type"] == "gpt_neox" and config["intermediate_size"] != 4 * config["hidden_size"]:
        other.append(("intermediate_size", config["intermediate_size"]))
    if not network.sized and head_size(config) != int(config["hidden_size"]) // int(config["num_attention_heads"]):
        other.append(("head_dim", head_size(config)))
    kind = rope_of(config).get("rope_type", "default")
    other += [("rotary embeddings of the kind", kind)] if kind not in network.ropes else []
    pattern = pattern_of(config)
    return other + ([("layer_types", config["layer_types"])] if pattern == 0 else [])


def pattern_of(config: Mapping[str, Any]) -> int | None:
    """Return of how many blocks one sees the whole text, 0 where there is no such rule; None for other networks."""
    usual, kinds = PATTERNS.get(config["model_type"]), config.get("layer_types")
    if usual is None or not kinds:
        return None
    whole = [place for place, kind in enumerate(kinds, 1) if kind == "full_attention"]
    every = whole[0] if whole else max(usual, len(kinds) + 1)
    return every if whole == list(range(every, len(kinds) + 1, every)) else 0


def module_of_experts(config: Mapping[str, Any]) -> str:
    """Return what mlx-lm calls the module around a block's experts, empty for networks without."""
    network = NETWORKS.get(str(config.get("model_type")))
    return network.experts if network is not None else ""


def remarks_on(config: Mapping[str, Any]) -> list[str]:
    """Return a sentence where mlx-lm does not compute the network's sliding windows, or was not tried with it."""
    kind, window = str(config.get("model_type")), window_not_computed(config)
    if "text_config" in config:
        return [f"{kind} was not tried in mlx-lm; mlx-vlm loads folders of models that take more than text"]
    if window is None:
        return []
    return [
        f"mlx-lm computes no sliding windows for {kind}: texts of more than {window:,} tokens give other answers there"
    ]


def window_not_computed(config: Mapping[str, Any]) -> int | None:
    """Return the tokens of a sliding window that mlx-lm does not compute, None where there is none."""
    network = NETWORKS.get(str(config.get("model_type")))
    return None if network is None or network.windows else window_of(config)
