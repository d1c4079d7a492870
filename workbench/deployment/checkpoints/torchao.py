"""torchao checkpoints: its tensor subclasses as safetensors, and a FqnToConfig that says what each module is.

Integers of 2 to 8 bits are ``IntxUnpackedToInt8Tensor`` (a byte each, whatever their width), FP8 is ``Float8Tensor``.
Names and metadata are those of ``torchao.prototype.safetensors``, which transformers writes and reads.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.deployment.checkpoints.write import Job, Method
from workbench.deployment.targets import is_linear, is_table, what_it_is
from workbench.deployment.tensors import DTYPES, Entry
from workbench.errors import BackendUnavailableError, ExportError
from workbench.installed import require_new
from workbench.models.layer import Layer
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.floating import FP8_E4M3
from workbench.numerics.formats.integer import IntegerElement
from workbench.numerics.formats.microscaling import MxScheme, NvScheme
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerChannel, PerGroup, PerTensor, grid
from workbench.planning.plan import Assignment

if TYPE_CHECKING:
    import torch

    from workbench.numerics.quantized_tensor import QuantizedTensor
    from workbench.numerics.ranges.calibrated import Range

TOKENS, SYMMETRIC_TOKENS = "int8-token-asym", "int8-token"
"""Inputs that torchao computes: the first beside integers of any width, the second beside symmetric ones of 8 bits."""


class TorchaoMethod(Method):
    """See :class:`workbench.deployment.checkpoints.write.Method`."""

    kind = "torchao"
    reads_whole = True
    what = "a torchao checkpoint"
    target = "torchao"

    def require(self) -> None:
        require_new("torchao", "torchao")
        try:
            import torchao  # noqa: F401
        except ImportError as error:
            raise BackendUnavailableError(
                f"this needs the package torchao: {error}; pip install 'quantization-workbench[torchao]'"
            ) from None

    def refusal(self, layer: Layer, assignment: Assignment, job: Job) -> str | None:
        if assignment.cache is not None:
            return "torchao checkpoints say nothing of keys and values"
        stored = job.quantized.tensors.get(layer.name)
        if stored is None:
            return None if assignment.inputs is None else "torchao quantizes no inputs where it keeps the weights"
        if not is_linear(layer) and not is_table(layer):
            return f"torchao quantizes embeddings and linear modules stored outputs x inputs, not {what_it_is(layer)}"
        return _scheme_refusal(stored.scheme, assignment.inputs, layer)

    def entries(self, stored: QuantizedTensor, inputs: str | None, calibrated: Range | None) -> Iterator[Entry]:
        scheme = parse_scheme(stored.scheme)
        assert isinstance(scheme, ScaledScheme)
        (rows, columns), cut = stored.shape, grid(scheme.granularity, stored.shape)
        shape = (cut.bands, cut.groups)
        if scheme.element.shiftable:
            yield Entry(
                name="_weight_qdata", dtype="int8", shape=(rows, columns), load=lambda: _signed(scheme, stored, "codes")
            )
            zeros = lambda: _signed(scheme, stored, "zero_points").reshape(shape)  # noqa: E731
            if inputs != SYMMETRIC_TOKENS:
                yield Entry(name="_weight_zero_point", dtype="int8", shape=shape, load=zeros)
        else:
            codes = lambda: stored.arrays["codes"].reshape(rows, columns)  # noqa: E731
            yield Entry(name="_weight_qdata", dtype="float8_e4m3fn", shape=(rows, columns), load=codes)
        scales = lambda: stored.arrays["scales"].reshape(shape)  # noqa: E731
        yield Entry(name="_weight_scale", dtype=DTYPES[scheme.scale_format.name], shape=shape, load=scales)

    def settings(self, job: Job) -> dict[str, Any]:
        from torchao.core.config import config_to_dict
        from torchao.quantization import FqnToConfig

        configs = OrderedDict(
            (layer.name, _config_of(stored.scheme, job.assignments[layer.name].inputs))
            for layer, stored in job.packed()
        )
        if not configs:
            raise ExportError("the plan gives no layer a scheme that torchao stores; there is nothing to write")
        return {"quantization_config": {
            "quant_method": "torchao", "quant_type": {"default": config_to_dict(FqnToConfig(configs))},
            "modules_to_not_convert": [], "include_input_output_embeddings": False, "untie_embedding_weights": False,
        }}  # fmt: skip

    def metadata(self, job: Job, names: list[str]) -> dict[str, str]:
        """Return what every file says of all tensors, by their names in the network: transformers reads what the last
        file says, as it writes it."""
        descriptions: dict[str, str] = {}
        for layer, stored in job.packed():
            weight = job.origin.names.get(layer.parameter, layer.parameter)
            module = weight.rpartition(".")[0]
            if f"{module}._weight_qdata" in names:
                descriptions[layer.parameter] = _described(layer, stored, job.assignments[layer.name].inputs)
        plain = [name for name in names if not name.rpartition(".")[2].startswith("_weight_")]
        descriptions |= {name: json.dumps({"_type": "Tensor"}) for name in plain}
        within = [name for name in descriptions if "." in name]  # the reader splits names, and wants two parts
        return {**descriptions, "tensor_names": json.dumps(within)}

    def read(
        self, layer: Layer, tensors: Mapping[str, torch.Tensor], stored: QuantizedTensor, config: Mapping[str, Any],
        rows: slice,
    ) -> tuple[torch.Tensor, int]:  # fmt: skip
        """See the contract: torchao's own reader makes its tensor, which dequantizes itself."""
        import torch
        from torchao.prototype.safetensors.safetensors_support import unflatten_tensor_state_dict

        parts = {f"module.{name}": tensor for name, tensor in tensors.items() if name.startswith("_weight_")}
        descriptions = config["__metadata__"]
        described = json.loads(descriptions[f"{layer.name}.weight"])
        described["_data"]["dtype"] = {"_type": "torch.dtype", "_data": "float32"}
        metadata = {"module.weight": json.dumps(described), "tensor_names": json.dumps(["module.weight"])}
        tensors, _ = unflatten_tensor_state_dict(parts, metadata)
        value: torch.Tensor = tensors["module.weight"].dequantize()
        return value.to(torch.float32), 0


def _scheme_refusal(name: str, inputs: str | None, layer: Layer) -> str | None:
    scheme = parse_scheme(name)
    if not isinstance(scheme, ScaledScheme) or isinstance(scheme, MxScheme | NvScheme):
        return f"torchao checkpoints of this kind hold integers and fp8-e4m3, not {name}"
    integer = isinstance(scheme.element, IntegerElement)
    if not integer and scheme.element != FP8_E4M3:
        return f"torchao checkpoints of this kind hold integers and fp8-e4m3, not {name}"
    kinds = (PerGroup, PerChannel) if integer else (PerChannel, PerTensor)
    if not isinstance(scheme.granularity, kinds) or scheme.offset_format is not None:
        what = "a scale and a whole zero point for each group or output" if integer else "a scale for each output"
        return f"torchao stores {what}, not {name}"
    width = grid(scheme.granularity, layer.matrix).width
    if layer.matrix[1] % width:
        return f"{name} needs inputs in multiples of {width}, the layer has {layer.matrix[1]}"
    whole = integer and scheme.element.bits == 8 and scheme.symmetric and isinstance(scheme.granularity, PerChannel)
    if inputs is not None and not (integer and inputs == TOKENS) and not (whole and inputs == SYMMETRIC_TOKENS):
        return f"torchao computes {TOKENS} inputs beside integer weights and {SYMMETRIC_TOKENS} ones beside " \
            f"int8-channel, not {inputs} beside {name}"  # fmt: skip
    return None


def _signed(scheme: ScaledScheme, stored: QuantizedTensor, what: str) -> np.ndarray:
    """Return codes or zero points (0 where there are none) around 0, int8."""
    codes, scales, shifts = scheme.unpacked(stored)
    middle = 2 ** (scheme.element.bits - 1)
    if what == "codes":
        return np.asarray((codes.numpy().astype(np.int16) - middle).astype(np.int8))
    if shifts is None:
        return np.zeros(tuple(scales.shape), np.int8)
    return np.asarray((shifts.numpy() - middle).astype(np.int8))


def _config_of(name: str, inputs: str | None) -> Any:
    """Return torchao's configuration of a scheme."""
    import torch
    from torchao.quantization import (
        Float8WeightOnlyConfig,
        Int8DynamicActivationInt8WeightConfig,
        Int8DynamicActivationIntxWeightConfig,
        IntxWeightOnlyConfig,
    )
    from torchao.quantization.granularity import PerAxis
    from torchao.quantization.granularity import PerGroup as Groups
    from torchao.quantization.quant_primitives import MappingType

    scheme = parse_scheme(name)
    assert isinstance(scheme, ScaledScheme)
    if not scheme.element.shiftable:
        return Float8WeightOnlyConfig()
    cells = Groups(scheme.granularity.size) if isinstance(scheme.granularity, PerGroup) else PerAxis(0)
    dtype = getattr(torch, f"int{scheme.element.bits}")
    mapping = MappingType.SYMMETRIC if scheme.symmetric else MappingType.ASYMMETRIC
    if inputs == SYMMETRIC_TOKENS:
        return Int8DynamicActivationInt8WeightConfig()
    if inputs is None:
        return IntxWeightOnlyConfig(weight_dtype=dtype, granularity=cells, mapping_type=mapping)
    return Int8DynamicActivationIntxWeightConfig(
        weight_dtype=dtype, weight_granularity=cells, weight_mapping_type=mapping
    )


def _described(layer: Layer, stored: QuantizedTensor, inputs: str | None) -> str:
    """Return what torchao writes of a tensor like this one, made without its numbers."""
    import torch
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
    from torchao.quantization import Float8Tensor, Int8Tensor, IntxUnpackedToInt8Tensor, PerRow
    from torchao.quantization.quant_primitives import MappingType
    from torchao.quantization.quantize_.workflows.int8.int8_tensor import QuantizeTensorToInt8Kwargs

    scheme = parse_scheme(stored.scheme)
    assert isinstance(scheme, ScaledScheme)
    cut = grid(scheme.granularity, stored.shape)
    scale = torch.empty(cut.bands, cut.groups, dtype=getattr(torch, DTYPES[scheme.scale_format.name]), device="meta")
    dtype, block = getattr(torch, layer.dtype), [cut.height, min(cut.width, cut.columns)]
    tensor: Any
    if scheme.element.shiftable:
        codes = torch.empty(stored.shape, dtype=torch.int8, device="meta")
        if inputs == SYMMETRIC_TOKENS:
            # Its default divides by 127.5 and clips, which is not what was evaluated; this one is.
            mapping = MappingType.SYMMETRIC_NO_CLIPPING_ERR
            input_settings = QuantizeTensorToInt8Kwargs(granularity=PerRow(), mapping_type=mapping)
            tensor = Int8Tensor(codes, scale, block, dtype, act_quant_kwargs=input_settings)
            return str(flatten_tensor_state_dict({"module.weight": tensor})[1]["module.weight"])
        zeros = torch.empty(scale.shape, dtype=torch.int8, device="meta")
        target = getattr(torch, f"int{scheme.element.bits}")
        activations = None if inputs is None else _per_token()
        tensor = IntxUnpackedToInt8Tensor(codes, scale, zeros, target, tuple(block), dtype, activations)
    else:
        codes = torch.empty(stored.shape, dtype=torch.float8_e4m3fn, device="meta")
        tensor = Float8Tensor(codes, scale, block_size=block, dtype=dtype)
    _, metadata = flatten_tensor_state_dict({"module.weight": tensor})
    described = json.loads(metadata["module.weight"])
    if described["_data"].get("activation_quantization") is not None:
        # torchao 0.18 writes a class here that its own reader does not know; its value is equal to the member.
        described["_data"]["activation_quantization"] = str(_per_token().value)
    return json.dumps(described)


def _per_token() -> Any:
    from torchao.quantization.quantize_.workflows.intx import intx_unpacked_to_int8_tensor as intx

    return intx.IntxUnpackedToInt8TensorActivationQuantization.INT8_ASYM_PER_TOKEN
