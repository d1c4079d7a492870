"""MLX checkpoints: rows of uint32 words, scales and biases of each group, settings for each layer that mlx-lm reads.

Layout of ``mlx.core.quantize``, mode ``affine``: ``weight`` uint32 ``[outputs, inputs * bits / 32]``, a stream of bits
from the least significant on, ``scales`` and ``biases`` ``[outputs, groups]`` of one dtype; ``scale * code + bias``.
Experts have an axis more, in front.
Modes ``mxfp4`` and ``mxfp8``: ``scales`` uint8, powers of two, no biases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.deployment.checkpoints.mlx_networks import module_of_experts, pattern_of, require_network
from workbench.deployment.checkpoints.origin import Origin
from workbench.deployment.checkpoints.switched import with_experts_together
from workbench.deployment.checkpoints.write import Job, Method, unpacked_words
from workbench.deployment.networks import other_head
from workbench.deployment.targets import is_linear, is_table, what_it_is
from workbench.deployment.tensors import DTYPES, Entry
from workbench.errors import ExportError
from workbench.models.layer import Layer
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.integer import IntegerElement
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerGroup, grid
from workbench.planning.plan import Assignment

if TYPE_CHECKING:
    import torch

    from workbench.numerics.quantized_tensor import QuantizedTensor
    from workbench.numerics.ranges.calibrated import Range

WIDTHS, GROUPS = (2, 3, 4, 5, 6, 8), (32, 64, 128)
MODES = {"mxfp4": ("mxfp4", 4), "mxfp8-e4m3": ("mxfp8", 8)}


class MlxMethod(Method):
    """See :class:`workbench.deployment.checkpoints.write.Method`."""

    kind = "mlx"
    what = "an MLX checkpoint"
    target = "mlx"
    holds_tied = True

    def require(self) -> None:
        """No library is needed to write it."""

    def require_network(self, summary: ModelSummary) -> None:
        from workbench.deployment.gguf_file import configuration

        config = configuration(summary)[1]
        require_network(config)
        if "text_config" not in config and (reason := other_head("mlx", str(config["model_type"]), summary)):
            raise ExportError(reason)

    def arranged(self, origin: Origin, summary: ModelSummary) -> Origin:
        """See the contract: with the experts of a projection in one tensor, as mlx-lm loads them."""
        from workbench.deployment.gguf_file import configuration

        config = configuration(summary)[1]
        owner = "" if "text_config" in config else module_of_experts(config)
        return with_experts_together(origin, summary.stored, owner) if owner else origin

    def refusal(self, layer: Layer, assignment: Assignment, job: Job) -> str | None:
        if assignment.inputs is not None or assignment.cache is not None:
            return "MLX checkpoints quantize weights alone, neither inputs nor keys and values"
        stored = job.quantized.tensors.get(layer.name)
        if stored is None:
            return None
        if not is_linear(layer) and not is_table(layer) and layer.parameter not in job.origin.stacked:
            return f"MLX quantizes embeddings and linear modules stored outputs x inputs, not {what_it_is(layer)}"
        return _scheme_refusal(stored.scheme, layer)

    def entries(self, stored: QuantizedTensor, inputs: str | None, calibrated: Range | None) -> Iterator[Entry]:
        scheme = parse_scheme(stored.scheme)
        assert isinstance(scheme, ScaledScheme)
        rows, columns = stored.shape
        words, shape = columns * scheme.element.bits // 32, (rows, grid(scheme.granularity, stored.shape).groups)
        yield Entry(
            name="weight", dtype="uint32", shape=(rows, words),
            load=lambda: np.ascontiguousarray(stored.arrays["codes"]).view(np.uint32),
        )  # fmt: skip
        dtype = "uint8" if stored.scheme in MODES else DTYPES[scheme.scale_format.name]
        yield Entry(name="scales", dtype=dtype, shape=shape, load=lambda: stored.arrays["scales"].reshape(shape))
        if stored.scheme in MODES:
            return
        yield Entry(name="biases", dtype=dtype, shape=shape, load=lambda: _biases(scheme, stored).reshape(shape))

    def settings(self, job: Job) -> dict[str, Any]:
        """See the contract: what most layers have, and by name what others have."""
        by_layer = {name.removesuffix(".weight"): _settings_of(stored.scheme) for name, _, stored in job.modules()}
        if not by_layer:
            raise ExportError("the plan gives no layer a scheme that MLX stores; there is nothing to write")
        usual = Counter(tuple(each.items()) for each in by_layer.values()).most_common(1)[0][0]
        others = {name: each for name, each in by_layer.items() if tuple(each.items()) != usual}
        settings = {**dict(usual), **others}
        return {"quantization": settings, "quantization_config": settings}

    def renamed(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """See the contract: mlx-lm knows rotary embeddings and the number of experts by the names that transformers had
        before version 5, and takes defaults of its own for what it does not find."""
        rope = config.get("rope_parameters") or {}
        whole, near = rope.get("full_attention", rope), rope.get("sliding_attention", {})
        earlier = {
            "rope_theta": whole.get("rope_theta"), "rope_local_base_freq": near.get("rope_theta"),
            "partial_rotary_factor": whole.get("partial_rotary_factor"), "num_experts": config.get("num_local_experts"),
        }  # fmt: skip
        if whole.get("rope_type", "default") != "default":
            earlier["rope_scaling"] = {name: value for name, value in whole.items() if name != "rope_theta"}
        if config.get("model_type") == "gpt_neox":
            earlier |= {"rotary_emb_base": whole.get("rope_theta"), "rotary_pct": whole.get("partial_rotary_factor")}
        earlier["sliding_window_pattern"] = pattern_of(config)
        return {name: value for name, value in earlier.items() if value is not None}

    def read(
        self, layer: Layer, tensors: Mapping[str, torch.Tensor], stored: QuantizedTensor, config: Mapping[str, Any],
        rows: slice,
    ) -> tuple[torch.Tensor, int]:  # fmt: skip
        """See the contract: each code shifted out of its word, as the specification says."""
        import torch

        settings = config["quantization"]
        settings = settings.get(layer.parameter.removesuffix(".weight"), settings)
        columns, scales = stored.shape[1], tensors["scales"][rows]
        groups = torch.arange(columns) // int(settings["group_size"])
        codes = unpacked_words(tensors["weight"][rows], columns, int(settings["bits"]))
        if settings["mode"] == "affine":
            values = scales.float()[:, groups] * codes + tensors["biases"][rows].float()[:, groups]
            return values, _ulps(stored.scheme)
        return torch.ldexp(_small_float(codes, settings["mode"]), scales.int()[:, groups] - 127), 0


def _scheme_refusal(name: str, layer: Layer) -> str | None:
    scheme = parse_scheme(name)
    columns = layer.matrix[1]
    if name in MODES:
        return None if columns % 32 == 0 else f"{name} needs inputs in multiples of 32, the layer has {columns}"
    if not isinstance(scheme, ScaledScheme) or not isinstance(scheme.element, IntegerElement):
        return f"MLX stores integers, mxfp4 and mxfp8-e4m3, not {name}"
    if scheme.element.bits not in WIDTHS:
        return f"MLX stores integers of {', '.join(map(str, WIDTHS))} bits, not of {scheme.element.bits}"
    size = scheme.granularity.size if isinstance(scheme.granularity, PerGroup) else None
    if size not in GROUPS:
        return f"MLX has one scale for 32, 64 or 128 inputs, which {name} has not"
    if columns % size:
        return f"{name} needs inputs in multiples of {size}, the layer has {columns}"
    offset = scheme.offset_format
    if not scheme.symmetric and (offset is None or offset != scheme.scale_format):
        stored = scheme.scale_format.name
        return f"MLX adds a bias in the dtype of the scales; take {scheme.element.name}-g{size}-asym-z{stored}" + (
            "" if stored == "fp16" else f"-s{stored}"
        )
    return None


def _biases(scheme: ScaledScheme, stored: QuantizedTensor) -> np.ndarray:
    """Return what is added: the offsets, or for symmetric codes, which are stored from 0 on, minus half their range.

    That is a power of two times a scale, which every format of scales holds exactly.
    """
    if "offsets" in stored.arrays:
        return np.asarray(stored.arrays["offsets"])
    import torch

    scales = torch.from_numpy(scheme.scale_format.load(stored.arrays["scales"]))
    return scheme.scale_format.store(scales * -(2.0 ** (scheme.element.bits - 1)))


def _ulps(name: str) -> int:
    """Return by how much a value may differ because MLX multiplies before it subtracts half the range of the codes.

    Products with scales of 16 bits are exact.  Others are rounded, at up to twice that half times the scale.
    """
    scheme = parse_scheme(name)
    assert isinstance(scheme, ScaledScheme)
    return 2 ** (scheme.element.bits - 1) + 1 if scheme.symmetric and scheme.scale_format.name == "fp32" else 0


def _settings_of(name: str) -> dict[str, Any]:
    if name in MODES:
        mode, bits = MODES[name]
        return {"group_size": 32, "bits": bits, "mode": mode}
    scheme = parse_scheme(name)
    assert isinstance(scheme, ScaledScheme) and isinstance(scheme.granularity, PerGroup)
    return {"group_size": scheme.granularity.size, "bits": scheme.element.bits, "mode": "affine"}


def _small_float(codes: torch.Tensor, mode: str) -> torch.Tensor:
    import torch

    if mode == "mxfp8":
        return codes.to(torch.uint8).view(torch.float8_e4m3fn).float()
    magnitudes = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    return torch.cat([magnitudes, -magnitudes])[codes]
