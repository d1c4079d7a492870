"""Which networks llama.cpp knows: a network's configuration as GGUF metadata, and back.

An entry is data: the keys of its metadata beside the members of the transformers configuration, and where llama.cpp
stores tensors otherwise than transformers does.  Keys: ggml-org/ggml, docs/gguf.md; what each architecture reads:
ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/llama-model.cpp``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import WorkbenchError
from workbench.models.gguf.rotary import head_size, not_computed, rope_of, rotary_metadata, rotary_of, sliding_rope
from workbench.readable import few

COMMON = {
    "block_count": "num_hidden_layers", "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
    "vocab_size": "vocab_size",
}  # fmt: skip
GROUPED = COMMON | {"attention.head_count_kv": "num_key_value_heads"}
RMS = {"attention.layer_norm_rms_epsilon": "rms_norm_eps"}
SCALED = ("default", "linear", "yarn")
HEADS = {"attention.key_length": "head_dim", "attention.value_length": "head_dim"}
PLAIN_RMS = GROUPED | RMS | HEADS
GEMMA = PLAIN_RMS | {"attention.sliding_window": "sliding_window", "final_logit_softcapping": "final_logit_softcapping",
                     "attn_logit_softcapping": "attn_logit_softcapping"}  # fmt: skip
EXPERTS = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
           "expert_feed_forward_length": "moe_intermediate_size"}  # fmt: skip
SIGMOID_EXPERTS = EXPERTS | {
    "expert_count": "n_routed_experts", "expert_shared_count": "n_shared_experts",
    "expert_weights_norm": "norm_topk_prob", "expert_weights_scale": "routed_scaling_factor",
    "leading_dense_block_count": "first_k_dense_replace",
}  # fmt: skip
SHARED = {"expert_shared_feed_forward_length": "shared_expert_intermediate_size"}
EVERYWHERE = {"decoder_sparse_step": 1, "mlp_only_layers": []}
NO_BIASES = {"attention_bias": False}
PERIOD = "attention.sliding_window_pattern"
SCALED_HEADS = {"gemma2": 46, "gemma3": 62}
"""Those that state the size of heads by which attention is divided, and the blocks of their networks of 27 billion."""

PERIODS = {"gemma2": 2, "gemma3": 6, "olmo2": 4, "cohere2": 4, "exaone4": 4}
"""After how many blocks one sees all tokens, in those whose files do not say it."""

EXAONE_WITH_WINDOWS = 64
"""The blocks of the one network of EXAONE 4 in which llama.cpp computes windows."""

TWO_ROPES = ("gemma3_text", "modernbert", "olmo3")
GPT2 = {
    "block_count": "n_layer", "context_length": "n_positions", "embedding_length": "n_embd",
    "feed_forward_length": "n_inner", "attention.head_count": "n_head", "vocab_size": "vocab_size",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One architecture of llama.cpp.

    ``model_types`` and ``network`` are transformers' names; ``keys`` maps a metadata key (without the architecture's
    name before it) to a member of the configuration, ``constants`` to what is always written.  ``activations`` are
    the activation functions that llama.cpp computes, ``ropes`` the kinds of rotary embeddings (none: the network has
    none), ``turned`` whether a head may be turned in part.  ``permuted``: rows of query and key weights lie in another
    order.  ``shifted_norms``: norms are stored with the 1 that transformers adds.
    ``windows``: sliding windows are computed; otherwise the context ends with the window.  ``computed``: members of
    configurations whose other values llama.cpp does not compute, ``stated`` those for which it has a value of its own
    where they are None.  ``after_padding``: positions are counted from the row after the padding's id, and a file has
    none before.  ``own_names``: parts of a block whose transformers name the package gguf does not know, by their names
    in a file's block.
    """

    name: str
    model_types: tuple[str, ...]
    network: str
    keys: Mapping[str, str]
    constants: Mapping[str, object] = field(default_factory=dict)
    activations: tuple[str, ...] = ("silu",)
    activation_member: str = "hidden_act"
    ropes: tuple[str, ...] = SCALED
    turned: bool = False
    permuted: bool = False
    shifted_norms: bool = False
    windows: bool = False
    computed: Mapping[str, object] = field(default_factory=dict)
    stated: tuple[str, ...] = ()
    after_padding: bool = False
    own_names: Mapping[str, str] = field(default_factory=dict)


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(name="llama", model_types=("llama", "mistral", "mistral3", "llava"), network="LlamaForCausalLM",
                 keys=PLAIN_RMS, permuted=True, ropes=(*SCALED, "llama3")),
    Architecture(name="qwen2", model_types=("qwen2",), network="Qwen2ForCausalLM", keys=GROUPED | RMS),
    Architecture(name="qwen3", model_types=("qwen3",), network="Qwen3ForCausalLM", keys=PLAIN_RMS,
                 computed=NO_BIASES),
    Architecture(name="qwen2moe", model_types=("qwen2_moe",), network="Qwen2MoeForCausalLM",
                 keys=GROUPED | RMS | EXPERTS | SHARED,
                 computed=EVERYWHERE | {"norm_topk_prob": False, "tie_word_embeddings": False}),
    Architecture(name="qwen3moe", model_types=("qwen3_moe",), network="Qwen3MoeForCausalLM",
                 keys=PLAIN_RMS | EXPERTS, computed=EVERYWHERE | NO_BIASES | {"norm_topk_prob": True}),
    Architecture(name="llama", model_types=("mixtral",), network="MixtralForCausalLM", permuted=True,
                 keys=PLAIN_RMS | {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}),
    Architecture(name="gemma2", model_types=("gemma2",), network="Gemma2ForCausalLM", keys=GEMMA,
                 activations=("gelu_pytorch_tanh",), activation_member="hidden_activation", shifted_norms=True,
                 windows=True, computed=NO_BIASES, stated=("attn_logit_softcapping", "final_logit_softcapping")),
    Architecture(name="gemma3", model_types=("gemma3_text", "gemma3"), network="Gemma3ForCausalLM", keys=GEMMA,
                 activations=("gelu_pytorch_tanh",), activation_member="hidden_activation", shifted_norms=True,
                 windows=True, computed=NO_BIASES | {"attn_logit_softcapping": None}),
    Architecture(name="phi3", model_types=("phi3",), network="Phi3ForCausalLM", keys=GROUPED | RMS,
                 ropes=("default", "longrope"), turned=True),
    Architecture(name="gpt2", model_types=("gpt2",), network="GPT2LMHeadModel", keys=GPT2, ropes=(),
                 activations=("gelu_new", "gelu_pytorch_tanh"), activation_member="activation_function"),
    Architecture(name="starcoder2", model_types=("starcoder2",), network="Starcoder2ForCausalLM",
                 keys=GROUPED | {"attention.layer_norm_epsilon": "norm_epsilon"}, activations=("gelu_pytorch_tanh",),
                 computed={"use_bias": True}),
    Architecture(name="olmo", model_types=("olmo",), network="OlmoForCausalLM", permuted=True, computed=NO_BIASES,
                 keys=GROUPED | {"attention.clamp_kqv": "clip_qkv"},
                 constants={"attention.layer_norm_epsilon": 1e-5}),
    Architecture(name="olmo2", model_types=("olmo2",), network="Olmo2ForCausalLM", keys=GROUPED | RMS,
                 computed=NO_BIASES | {"tie_word_embeddings": False}),
    Architecture(name="olmoe", model_types=("olmoe",), network="OlmoeForCausalLM", keys=GROUPED | RMS | {
                     "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"},
                 computed=NO_BIASES | {"norm_topk_prob": False, "clip_qkv": None, "tie_word_embeddings": False}),
    Architecture(name="gemma", model_types=("gemma",), network="GemmaForCausalLM", keys=PLAIN_RMS,
                 activations=("gelu_pytorch_tanh",), activation_member="hidden_act", shifted_norms=True,
                 computed=NO_BIASES),
    Architecture(name="smollm3", model_types=("smollm3",), network="SmolLM3ForCausalLM", keys=PLAIN_RMS, permuted=True,
                 computed=NO_BIASES | {"mlp_bias": False}),
    Architecture(name="granite", model_types=("granite",), network="GraniteForCausalLM", permuted=True,
                 keys=GROUPED | RMS | {"attention.scale": "attention_multiplier", "logit_scale": "logits_scaling",
                                       "embedding_scale": "embedding_multiplier",
                                       "residual_scale": "residual_multiplier"}),
    Architecture(name="arcee", model_types=("arcee",), network="ArceeForCausalLM", keys=PLAIN_RMS, permuted=True,
                 activations=("relu2",), computed=NO_BIASES | {"mlp_bias": False}),
    Architecture(name="ernie4_5", model_types=("ernie4_5",), network="Ernie4_5ForCausalLM", keys=PLAIN_RMS,
                 computed={"use_bias": False}),
    Architecture(name="seed_oss", model_types=("seed_oss",), network="SeedOssForCausalLM", keys=PLAIN_RMS,
                 computed={"attention_out_bias": False, "mlp_bias": False}),
    Architecture(name="glm4", model_types=("glm4",), network="Glm4ForCausalLM", keys=PLAIN_RMS, turned=True),
    Architecture(name="stablelm", model_types=("stablelm",), network="StableLmForCausalLM", turned=True,
                 keys=GROUPED | {"attention.layer_norm_epsilon": "layer_norm_eps",
                                 "use_parallel_residual": "use_parallel_residual"},
                 computed={"qk_layernorm": False, "use_parallel_residual": False, "tie_word_embeddings": False}),
    Architecture(name="command-r", model_types=("cohere",), network="CohereForCausalLM",
                 keys=GROUPED | {"attention.layer_norm_epsilon": "layer_norm_eps", "logit_scale": "logit_scale"},
                 computed=NO_BIASES | {"use_qk_norm": False}),
    Architecture(name="cohere2", model_types=("cohere2",), network="Cohere2ForCausalLM", windows=True,
                 keys=GROUPED | {"attention.layer_norm_epsilon": "layer_norm_eps", "logit_scale": "logit_scale",
                                 "attention.sliding_window": "sliding_window"}, computed=NO_BIASES,
                 stated=("sliding_window",)),
    Architecture(name="nemotron", model_types=("nemotron",), network="NemotronForCausalLM", activations=("relu2",),
                 turned=True, shifted_norms=True, ropes=("default", "linear"),
                 keys=GROUPED | {"attention.layer_norm_epsilon": "norm_eps"}, computed={"tie_word_embeddings": False}),
    Architecture(name="hunyuan-dense", model_types=("hunyuan_v1_dense",), network="HunYuanDenseV1ForCausalLM",
                 keys=PLAIN_RMS, ropes=("default",), computed=NO_BIASES),
    Architecture(name="exaone4", model_types=("exaone4",), network="Exaone4ForCausalLM", windows=True,
                 keys=GROUPED | RMS | {"attention.sliding_window": "sliding_window"},
                 ropes=("default", "linear", "llama3")),
    Architecture(name="glm4moe", model_types=("glm4_moe",), network="Glm4MoeForCausalLM", turned=True,
                 constants={"expert_gating_func": 2}, computed={"n_group": 1}, keys=PLAIN_RMS | SIGMOID_EXPERTS),
    Architecture(name="gptneox", model_types=("gpt_neox",), network="GPTNeoXForCausalLM", activations=("gelu",),
                 turned=True, ropes=("default",), computed={"attention_bias": True, "tie_word_embeddings": False},
                 keys=COMMON | {"attention.layer_norm_epsilon": "layer_norm_eps",
                                "use_parallel_residual": "use_parallel_residual"}),
    Architecture(name="phi2", model_types=("phi",), network="PhiForCausalLM", activations=("gelu_new",), turned=True,
                 ropes=("default",), computed={"qk_layernorm": False, "tie_word_embeddings": False},
                 keys=GROUPED | {"attention.layer_norm_epsilon": "layer_norm_eps"}),
    Architecture(name="olmo2", model_types=("olmo3",), network="Olmo3ForCausalLM", windows=True,
                 keys=GROUPED | RMS | {"attention.sliding_window": "sliding_window"},
                 computed=NO_BIASES | {"tie_word_embeddings": False}),
    Architecture(name="lfm2", model_types=("lfm2",), network="Lfm2ForCausalLM", ropes=("default",),
                 computed={"conv_bias": False},
                 keys=COMMON | {"attention.layer_norm_rms_epsilon": "norm_eps", "shortconv.l_cache": "conv_L_cache"}),
    Architecture(name="bert", model_types=("bert",), network="BertModel", ropes=(), activations=("gelu",),
                 keys=COMMON | {"attention.layer_norm_epsilon": "layer_norm_eps"},
                 constants={"attention.causal": False}),
    Architecture(name="bert", model_types=("roberta", "xlm-roberta", "camembert"), network="RobertaModel", ropes=(),
                 activations=("gelu",), keys=COMMON | {"attention.layer_norm_epsilon": "layer_norm_eps"},
                 constants={"attention.causal": False}, after_padding=True),
    Architecture(name="bert", model_types=("distilbert",), network="DistilBertModel", ropes=(), activations=("gelu",),
                 activation_member="activation", keys=COMMON | {"feed_forward_length": "hidden_dim"},
                 constants={"attention.causal": False, "attention.layer_norm_epsilon": 1e-12}),
    Architecture(name="modern-bert", model_types=("modernbert",), network="ModernBertModel", activations=("gelu",),
                 activation_member="hidden_activation", windows=True, constants={"attention.causal": False},
                 ropes=("default",), computed=NO_BIASES | {"mlp_bias": False, "norm_bias": False},
                 keys=COMMON | {"attention.layer_norm_epsilon": "norm_eps",
                                "attention.sliding_window": "local_attention"}),
    Architecture(name="nomic-bert", model_types=("nomic_bert",), network="NomicBertModel",
                 keys=COMMON | {"attention.layer_norm_epsilon": "layer_norm_eps"},
                 constants={"attention.causal": False}, own_names={
                     "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
                     "post_attention_layernorm": "attn_output_norm", "post_mlp_layernorm": "layer_output_norm"}),
)  # fmt: skip
"""A new one is an entry here, checked by a test that runs a small network of it in llama.cpp."""


def architecture_of(model_type: str, error: type[WorkbenchError]) -> Architecture:
    """Return the architecture for a configuration's ``model_type``; ``error`` that lists what is supported."""
    for each in ARCHITECTURES:
        if model_type in each.model_types:
            return each
    supported = ", ".join(name for each in ARCHITECTURES for name in each.model_types)
    raise error(f"the architecture {model_type} cannot be written as GGUF yet; supported are {supported}")


def by_name(name: str) -> Architecture | None:
    """Return the first architecture that a GGUF file calls ``name``, None for one that is not known."""
    return next((each for each in ARCHITECTURES if each.name == name), None)


def metadata_of(architecture: Architecture, config: Mapping[str, Any], error: type[WorkbenchError]) -> dict[str, Any]:
    """Return the architecture's metadata, ``<name>.<key>`` to a plain value; ``error`` for what it cannot say."""
    _require_computed(architecture, config, error)
    values = dict(architecture.constants)
    for key, member in architecture.keys.items():
        value = config.get(member)
        if value is not None:
            values[key] = value
    if config.get("num_key_value_heads") is None and "attention.head_count_kv" in architecture.keys:
        values["attention.head_count_kv"] = config["num_attention_heads"]
    if architecture.name == "gpt2":
        values.setdefault("feed_forward_length", 4 * config["n_embd"])
    if architecture.name == "modern-bert" and (kinds := config.get("layer_types")):
        values[PERIOD] = _period(kinds)
    if architecture.name == "lfm2":
        heads = config["num_key_value_heads"]
        values["attention.head_count_kv"] = [0 if kind == "conv" else heads for kind in config["layer_types"]]
        values["feed_forward_length"] = _adjusted(config)
    if architecture.after_padding:
        padding, rows = config["pad_token_id"], config["max_position_embeddings"]
        if padding is None or not 0 <= padding < rows - 1:
            raise error(
                f"positions begin in the row after pad_token_id ({padding}) of {rows}; it cannot be written as GGUF"
            )
        values["context_length"] = rows - first_position(config)
    if (window := window_of(config)) and not architecture.windows:
        values["context_length"] = window
    if architecture.ropes:
        values |= _rotary(architecture, config)
    return {f"{architecture.name}.{key}": value for key, value in values.items()}


def _adjusted(config: Mapping[str, Any]) -> int:
    """Return the width of LFM2's feed-forward networks, which its configuration states by a rule."""
    width, factor = int(config["intermediate_size"]), config["block_ffn_dim_multiplier"]
    if config["block_auto_adjust_ff_dim"]:
        width = int(2 * width / 3)
        if factor is not None:
            width = -(-int(factor * width) // config["block_multiple_of"]) * int(config["block_multiple_of"])
    return width


def first_position(config: Mapping[str, Any]) -> int:
    """Return the row of the first token in a table of positions that begins after the padding's id."""
    return int(config["pad_token_id"]) + 1


def window_of(config: Mapping[str, Any]) -> int | None:
    """Return the tokens of a sliding window that a configuration states and a text can exceed, else None."""
    window, kinds = config.get("sliding_window"), config.get("layer_types")
    used = config.get("use_sliding_window", True) and (not kinds or "sliding_attention" in kinds)
    return int(window) if window and used and window < config.get("max_position_embeddings", 0) else None


_PLAIN = {
    "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True, "position_embedding_type": "absolute",
    "add_cross_attention": False, "is_decoder": False, "use_bidirectional_attention": False,
}  # fmt: skip
"""Members of configurations whose other values llama.cpp does not compute."""


def _require_computed(architecture: Architecture, config: Mapping[str, Any], error: type[WorkbenchError]) -> None:
    """Raise ``error`` for a configuration that llama.cpp would run as another network."""
    usual_of = {**_PLAIN, **architecture.computed}
    stated = {member: config.get(member) for member in usual_of}
    other = {member: value for member, value in stated.items() if value not in (usual_of[member], None)}
    other |= {member: None for member in architecture.stated if config.get(member) is None}
    if architecture.name in SCALED_HEADS:
        scale = config.get("query_pre_attn_scalar")
        if scale not in (None, scale_size(architecture, config)):
            other["query_pre_attn_scalar"] = scale
    if (step := PERIODS.get(architecture.name)) is not None:
        blocks = config["num_hidden_layers"]
        usual = ["full_attention" if (at + 1) % step == 0 else "sliding_attention" for at in range(blocks)]
        if architecture.name == "exaone4":
            window = config.get("sliding_window")
            other |= {} if (window is None) == (blocks != EXAONE_WITH_WINDOWS) else {"sliding_window": window}
            usual = ["full_attention"] * blocks if window is None else usual
        if config.get("layer_types") not in (None, usual):
            other["layer_types"] = config["layer_types"]
    if architecture.name == "modern-bert":
        other |= _other_windows(config)
    if architecture.name == "smollm3":
        turned = [int((at + 1) % 4 != 0) for at in range(config["num_hidden_layers"])]
        other |= {} if config.get("no_rope_layers") in (None, turned) else {"no_rope_layers": config["no_rope_layers"]}
    if architecture.name == "olmoe" and (heads := config.get("num_key_value_heads")) != config["num_attention_heads"]:
        other |= {} if heads is None else {"num_key_value_heads": heads}
    if architecture.ropes:
        other |= _turned_otherwise(architecture, config)
    if other:
        listed = few((f"{member} {value}" for member, value in other.items()), 8)
        raise error(f"llama.cpp's {architecture.name} computes no network with {listed}; it cannot be written as GGUF")
    chosen = config.get(architecture.activation_member)
    if chosen is not None and chosen not in architecture.activations:
        raise error(
            f"the network's activation is {chosen}, llama.cpp's {architecture.name} computes "
            f"{' or '.join(architecture.activations)}; it cannot be written as GGUF"
        )


def _other_windows(config: Mapping[str, Any]) -> dict[str, object]:
    """Return what of ModernBERT's windows llama.cpp does not compute; it stops where no block has one."""
    kinds = config.get("layer_types")
    other: dict[str, object] = {}
    if kinds is not None and (kinds != window_kinds(_period(kinds), len(kinds)) or "sliding_attention" not in kinds):
        other["layer_types"] = kinds
    return other


def window_kinds(period: int, blocks: int) -> list[str]:
    """Return ModernBERT's ``layer_types``: the first of each ``period`` blocks sees all tokens, others a window."""
    return ["sliding_attention" if at % period else "full_attention" for at in range(blocks)]


def _period(kinds: Sequence[str]) -> int:
    """Return after how many blocks the next one sees all tokens; the number of blocks where none does."""
    return next((at for at, kind in enumerate(kinds) if at and kind == "full_attention"), len(kinds))


def scale_size(architecture: Architecture, config: Mapping[str, Any]) -> int:
    """Return the number by whose root llama.cpp divides Gemma's attention: it knows those of 27 billion by blocks."""
    if config["num_hidden_layers"] == SCALED_HEADS[architecture.name]:
        return int(config["hidden_size"]) // int(config["num_attention_heads"])
    return head_size(config)


def _turned_otherwise(architecture: Architecture, config: Mapping[str, Any]) -> dict[str, object]:
    """Return what of a configuration's heads and rotary embeddings llama.cpp does not compute."""
    other, rope, local = not_computed(config), rope_of(config), sliding_rope(config)
    kind, elsewhere = rope.get("rope_type", "default"), local.get("rope_type", "default")
    if kind not in architecture.ropes or elsewhere != "default":
        other["rotary embeddings of the kind"] = kind if elsewhere == "default" else elsewhere
    if architecture.name == "olmo2" and local and local["rope_theta"] != rope["rope_theta"]:
        other["another rope_theta of windows,"] = local["rope_theta"]
    usual = int(config["hidden_size"]) // int(config["num_attention_heads"])
    if "attention.key_length" not in architecture.keys and head_size(config) != usual:
        other["head_dim"] = head_size(config)
    return other


def _rotary(architecture: Architecture, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of rotary embeddings."""
    share = rope_of(config).get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1
    values = rotary_metadata(config, int(head_size(config) * float(share if architecture.turned else 1)))
    local = sliding_rope(config)
    if local and architecture.model_types[0] in TWO_ROPES:
        values["rope.freq_base_swa"] = float(local["rope_theta"])
    return values


def config_of(
    architecture: Architecture, metadata: Mapping[str, Any], factors: Mapping[str, list[float]]
) -> dict[str, Any]:
    """Return the members of a transformers configuration that ``metadata`` (``<name>.<key>``) states, with a file's
    ``factors`` of rotary frequencies by tensor."""
    head = f"{architecture.name}."
    stated = {member: metadata.get(head + key) for key, member in architecture.keys.items()}
    members = {member: value for member, value in stated.items() if value is not None}
    if architecture.ropes:
        own = {key.removeprefix(head): value for key, value in metadata.items() if key.startswith(head)}
        rope = rotary_of(own, factors)
        if architecture.turned and (turned := own.get("rope.dimension_count")):
            rope["partial_rotary_factor"] = turned / head_size(members)
        members["rope_parameters"] = rope
    local = metadata.get(head + "rope.freq_base_swa")
    if architecture.model_types[0] in TWO_ROPES:
        usual = members["rope_parameters"]["rope_theta"] if architecture.name == "olmo2" else 10000.0
        sliding = {"rope_type": "default", "rope_theta": local or usual}
        members["rope_parameters"] = {"full_attention": members["rope_parameters"], "sliding_attention": sliding}
    if architecture.name == "exaone4" and "sliding_window" not in members:
        members |= {"sliding_window": None, "layer_types": ["full_attention"] * int(members["num_hidden_layers"])}
    if architecture.name == "lfm2":
        heads = metadata[head + "attention.head_count_kv"]
        members |= {"num_key_value_heads": max(heads), "block_auto_adjust_ff_dim": False}
        members["layer_types"] = ["full_attention" if count else "conv" for count in heads]
    if architecture.name == "modern-bert":
        members["layer_types"] = window_kinds(int(metadata.get(head + PERIOD, 3)), int(members["num_hidden_layers"]))
    return members
