"""The zoo: architectures of transformers, shrunk to a few thousand random weights."""

from __future__ import annotations

from typing import Any

SIZES: dict[str, Any] = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "max_position_embeddings": 64, "head_dim": 8, "type_vocab_size": 2,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 24, "moe_num_experts": 4, "moe_top_k": 2, "num_shared_experts": 1,
    "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_inner": 48, "n_ctx": 64,
    "d_model": 32, "d_ff": 48, "d_kv": 8, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "ffn_dim": 48, "word_embed_proj_dim": 32, "ffn_hidden_size": 48,
    "embedding_size": 16, "embedding_dim": 16, "state_size": 8, "time_step_rank": 4, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4,
    "image_size": 32, "patch_size": 8, "projection_dim": 16, "conv_dim": [8, 8], "num_feat_extract_layers": 2,
    "conv_kernel": [10, 3], "conv_stride": [5, 2], "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 64, "num_labels": 5,
    "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "qk_head_dim": 16,
    "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "n_shared_experts": 1,
    "sliding_window": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    "num_channels": 3, "mamba_d_state": 8, "mamba_n_heads": 4, "mamba_d_head": "auto", "mamba_n_groups": 1,
    "classifier_proj_size": 16, "hidden_sizes": None, "depths": None, "lm_hidden_dim": 32, "decoder_hidden_size": 32,
    "d_embed": 32, "d_inner": 48, "d_head": 8, "relative_attention_num_buckets": 8, "attention_window": 8, "block_size": 4,
    "embed_dim": 32, "rotary_dim": 4, "fc_hidden_size": 32, "mask_ratio": 0.0,
}  # fmt: skip
"""Fields that many configurations share, and the value of each in the zoo (None: left alone)."""

SPECIAL = ("cls_token_id", "sep_token_id", "mask_token_id", "unk_token_id", "forced_eos_token_id", "forced_bos_token_id")


def shrink(config: Any, **own: Any) -> Any:
    """Set the sizes of a configuration, and of those within it, to small ones; ``own`` (``a__b`` for nested) wins."""
    for name in list(getattr(config, "sub_configs", {})):
        part = getattr(config, name, None)
        if part is not None and not isinstance(part, dict):
            shrink(part)
    for name, value in SIZES.items():
        present = getattr(config, name, None)
        if value is not None and present is not None and not isinstance(present, dict):
            if isinstance(present, list | tuple) != isinstance(value, list | tuple):
                continue
            try:
                setattr(config, name, value)
            except (AttributeError, NotImplementedError, TypeError, ValueError):
                continue
    for name in ("layer_types", "mlp_layer_types", "layers_block_type"):
        present = getattr(config, name, None)
        if isinstance(present, list) and len(present) > 2:
            kinds = list(dict.fromkeys(present))
            try:
                setattr(config, name, (kinds * 2)[:2])
            except (AttributeError, NotImplementedError):
                continue
    for name in SPECIAL:
        if isinstance(getattr(config, name, None), int):
            setattr(config, name, 3)
    for name, value in own.items():
        *within, last = name.split("__")
        target = config
        for part in within:
            target = getattr(target, part)
        setattr(target, last, value)
    return config


TEXT = """
LlamaForCausalLM MistralForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM GemmaForCausalLM Gemma2ForCausalLM
Gemma3ForCausalLM PhiForCausalLM Phi3ForCausalLM GPT2LMHeadModel GPTNeoForCausalLM GPTNeoXForCausalLM GPTJForCausalLM
OPTForCausalLM BloomForCausalLM FalconForCausalLM MptForCausalLM StableLmForCausalLM CohereForCausalLM OlmoForCausalLM
Olmo2ForCausalLM GraniteForCausalLM Starcoder2ForCausalLM BioGptForCausalLM CodeGenForCausalLM XGLMForCausalLM
Glm4ForCausalLM HeliumForCausalLM SmolLM3ForCausalLM NemotronForCausalLM PersimmonForCausalLM GPTBigCodeForCausalLM
MambaForCausalLM Mamba2ForCausalLM FalconMambaForCausalLM RwkvForCausalLM RecurrentGemmaForCausalLM
BambaForCausalLM Lfm2ForCausalLM Zamba2ForCausalLM JambaForCausalLM Qwen3NextForCausalLM
MixtralForCausalLM Qwen2MoeForCausalLM Qwen3MoeForCausalLM OlmoeForCausalLM DeepseekV2ForCausalLM
DeepseekV3ForCausalLM GptOssForCausalLM PhimoeForCausalLM GraniteMoeForCausalLM DbrxForCausalLM Llama4ForCausalLM
JetMoeForCausalLM Ernie4_5_MoeForCausalLM
""".split()

ENCODERS = """
BertModel BertForMaskedLM BertForSequenceClassification BertForTokenClassification BertForQuestionAnswering
RobertaForMaskedLM DistilBertModel DistilBertForSequenceClassification AlbertModel ElectraForTokenClassification
DebertaModel DebertaV2ForSequenceClassification MPNetModel ModernBertForMaskedLM XLMRobertaModel ConvBertModel
FNetForMaskedLM SqueezeBertForSequenceClassification RoFormerForMaskedLM CamembertForMaskedLM XLNetForSequenceClassification
NystromformerForMaskedLM T5EncoderModel EsmForMaskedLM BigBirdForMaskedLM LongformerForSequenceClassification
""".split()

PAIRS = """
T5ForConditionalGeneration BartForConditionalGeneration MarianMTModel PegasusForConditionalGeneration
MT5ForConditionalGeneration M2M100ForConditionalGeneration MBartForConditionalGeneration
BlenderbotSmallForConditionalGeneration SwitchTransformersForConditionalGeneration ProphetNetForConditionalGeneration
LEDForConditionalGeneration WhisperForConditionalGeneration Speech2TextForConditionalGeneration
""".split()

VISION = """
ViTForImageClassification ViTModel DeiTForImageClassification BeitForImageClassification SwinForImageClassification
Swinv2ForImageClassification ConvNextForImageClassification ConvNextV2ForImageClassification ResNetForImageClassification
RegNetForImageClassification BitForImageClassification MobileNetV1ForImageClassification MobileNetV2ForImageClassification
MobileViTForImageClassification EfficientNetForImageClassification PoolFormerForImageClassification
SegformerForSemanticSegmentation SegformerForImageClassification Dinov2ForImageClassification DPTForDepthEstimation
YolosForObjectDetection CvtForImageClassification LevitForImageClassification PvtForImageClassification
SiglipVisionModel CLIPVisionModel UperNetForSemanticSegmentation FocalNetForImageClassification ViTMAEModel
""".split()

AUDIO = """
Wav2Vec2ForCTC Wav2Vec2ForSequenceClassification HubertForCTC WavLMForCTC ASTForAudioClassification
WhisperForAudioClassification SEWForCTC
""".split()

MULTIMODAL = """
CLIPModel SiglipModel LlavaForConditionalGeneration Qwen2VLForConditionalGeneration Gemma3ForConditionalGeneration
PaliGemmaForConditionalGeneration Blip2ForConditionalGeneration Idefics3ForConditionalGeneration
""".split()

GROUPS = {"text": TEXT, "encoder": ENCODERS, "pair": PAIRS, "vision": VISION, "audio": AUDIO, "multimodal": MULTIMODAL}

SMALL_CNN = {"hidden_sizes": [8, 12], "depths": [1, 1], "embedding_size": 8, "layer_type": "basic"}
OWN: dict[str, dict[str, Any]] = {
    "GPTNeoForCausalLM": {"attention_types": [[["global", "local"], 1]], "attention_layers": ["global", "local"]},
    "NemotronForCausalLM": {"num_key_value_heads": 2, "head_dim": 8},
    "Mamba2ForCausalLM": {"num_heads": 8, "head_dim": 8, "n_groups": 1},
    "BambaForCausalLM": {"mamba_n_heads": 4, "mamba_d_head": 16},
    "RecurrentGemmaForCausalLM": {"lru_width": 32, "attention_window_size": 8, "block_types": ["recurrent", "attention"]},
    "RwkvForCausalLM": {"attention_hidden_size": 32, "intermediate_size": 48},
    "SqueezeBertForSequenceClassification": {"embedding_size": 32},
    "EsmForMaskedLM": {"vocab_size": 96, "mask_token_id": 3},
    "Swinv2ForImageClassification": {"depths": [1, 1], "num_heads": [2, 4], "embed_dim": 16, "window_size": 2, "patch_size": 4},
    "SwinForImageClassification": {"depths": [1, 1], "num_heads": [2, 4], "embed_dim": 16, "window_size": 2, "patch_size": 4},
    "FocalNetForImageClassification": {"depths": [1, 1], "embed_dim": 16, "focal_levels": [1, 1], "focal_windows": [3, 3]},
    "ConvNextForImageClassification": {"hidden_sizes": [8, 12], "depths": [1, 1], "num_stages": 2, "patch_size": 4},
    "ConvNextV2ForImageClassification": {"hidden_sizes": [8, 12], "depths": [1, 1], "num_stages": 2, "patch_size": 4},
    "ResNetForImageClassification": SMALL_CNN, "RegNetForImageClassification": {**SMALL_CNN, "layer_type": "y", "groups_width": 4},
    "BitForImageClassification": {"hidden_sizes": [32, 64], "depths": [1, 1], "embedding_size": 32, "num_groups": 4},
    "MobileNetV1ForImageClassification": {"depth_multiplier": 0.25},
    "MobileNetV2ForImageClassification": {"depth_multiplier": 0.25},
    "MobileViTForImageClassification": {"hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 8, 8, 16, 16, 16, 32], "patch_size": 2},
    "EfficientNetForImageClassification": {"width_coefficient": 0.25, "depth_coefficient": 0.2, "hidden_dim": 320},
    "PoolFormerForImageClassification": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
    "SegformerForSemanticSegmentation": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "decoder_hidden_size": 16},
    "SegformerForImageClassification": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
    "DPTForDepthEstimation": {"backbone_out_indices": [0, 0, 1, 1], "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16},
    "YolosForObjectDetection": {"image_size": [32, 32], "num_detection_tokens": 5},
    "CvtForImageClassification": {"embed_dim": [8, 16, 16], "depth": [1, 1, 1], "num_heads": [1, 2, 2]},
    "LevitForImageClassification": {"image_size": 64, "hidden_sizes": [16, 24, 32], "depths": [1, 1, 1], "key_dim": [8, 8, 8], "num_attention_heads": [2, 3, 4], "down_ops": [["Subsample", 8, 2, 4, 2, 2], ["Subsample", 8, 3, 4, 2, 2]]},
    "PvtForImageClassification": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2], "image_size": 32},
    "UperNetForSemanticSegmentation": {"backbone_config__hidden_sizes": [8, 8, 16, 16], "backbone_config__depths": [1, 1, 1, 1], "hidden_size": 16, "auxiliary_in_channels": 16},
    "DebertaV2ForSequenceClassification": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 8, "share_att_key": True},
    "DebertaModel": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 8},
}  # fmt: skip
"""What single architectures need beyond :data:`SIZES`."""
