"""What compressed-tensors calls our schemes, how it stores them, and its own decoder to read them back.

Specification: the package compressed-tensors (``QuantizationArgs``, its compressors), which vLLM and transformers read.
Weights are never rounded again: codes and scales are those of the plan in another order of bytes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.deployment.checkpoints import compressed_tensors_entries as layout
from workbench.deployment.checkpoints.folder import write_config
from workbench.deployment.checkpoints.write import Job, Method
from workbench.deployment.targets import is_linear, is_table, what_it_is
from workbench.deployment.tensors import DTYPES, Entry
from workbench.errors import BackendUnavailableError, ExportError
from workbench.installed import require_new
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.formats.floating import FP8_E4M3
from workbench.numerics.formats.integer import IntegerElement
from workbench.numerics.formats.microscaling import MxScheme, NvScheme
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerBlock, PerChannel, PerGroup, PerTensor, PerToken, grid
from workbench.numerics.scheme import Scheme
from workbench.planning.plan import KEEP, Assignment

if TYPE_CHECKING:
    import torch

    from workbench.numerics.quantized_tensor import QuantizedTensor
    from workbench.numerics.ranges.calibrated import Range

INSTALL = 'pip install "quantization-workbench[compressed-tensors]"'
MIXED = "mixed-precision"
MICRO = {"mxfp4": "mxfp4-pack-quantized", "mxfp8-e4m3": "mxfp8-quantized", "nvfp4": "nvfp4-pack-quantized"}
"""The microscaling schemes that the library stores, and what it calls their packing."""

ULPS = {"nvfp4": 4}
"""It stores the inverse of NVFP4's scale for the tensor and divides by it: two roundings more than a product."""

NOTHING = "re:^experts are not quantized$"
NO_EXPERTS: dict[str, Any] = {
    "weights": {"num_bits": 8, "type": "float", "symmetric": True, "dynamic": False, "strategy": "channel"},
    "format": "float-quantized", "input_activations": None, "output_activations": None,
}  # fmt: skip
"""A group that no module is in.  transformers 5 joins the experts of a checkpoint by the first group that names
experts, or by the first of all; only one of FP8 lets weights without scales through, others end its loading."""

Make = Callable[[], "np.ndarray | torch.Tensor"]


def library() -> Any:
    """Return the package; BackendUnavailableError with the line that installs it."""
    require_new("compressed-tensors", "compressed-tensors")
    try:
        import compressed_tensors
    except ImportError as error:
        raise BackendUnavailableError(f"this needs the package compressed-tensors: {error}; {INSTALL}") from None
    return compressed_tensors


def packing(weights: str, inputs: str | None) -> str:
    """Return the name of the packing in which the library stores a scheme that :func:`weight_args` knows."""
    scheme = parse_scheme(weights)
    if scheme.name in MICRO:
        return MICRO[scheme.name]
    assert isinstance(scheme, ScaledScheme)
    if not scheme.element.shiftable:
        return "float-quantized"
    whole_bytes = scheme.element.bits == 8 and (inputs is not None or isinstance(scheme.granularity, PerBlock))
    return "int-quantized" if whole_bytes else "pack-quantized"


def weight_args(scheme: Scheme) -> dict[str, Any] | str:
    """Return the members of ``QuantizationArgs`` for weights, or why there are none."""
    if scheme.name in MICRO:
        return _micro_args(scheme)
    number = _number(scheme)
    if number is None:
        return f"compressed-tensors has no {scheme.name}: it stores int2 to int8, fp8-e4m3, {', '.join(MICRO)}"
    assert isinstance(scheme, ScaledScheme)
    if scheme.offset_format is not None:
        return f"{scheme.name} has floating zero points, compressed-tensors has whole ones"
    args: dict[str, Any] = {**number, "symmetric": scheme.symmetric, "dynamic": False}
    match scheme.granularity:
        case PerTensor():
            return args | {"strategy": "tensor"}
        case PerChannel():
            return args | {"strategy": "channel"}
        case PerGroup(size):
            return args | {"strategy": "group", "group_size": size}
        case PerBlock(rows, columns):
            return args | {"strategy": "block", "block_structure": [rows, columns]}
    return f"{scheme.name} is a scheme for activations"


def _number(scheme: Scheme) -> dict[str, Any] | None:
    if isinstance(scheme, ScaledScheme) and not isinstance(scheme, MxScheme | NvScheme):
        if isinstance(scheme.element, IntegerElement):
            return {"num_bits": scheme.element.bits, "type": "int"}
        if scheme.element == FP8_E4M3:
            return {"num_bits": 8, "type": "float"}
    return None


def _micro_args(scheme: Scheme) -> dict[str, Any]:
    bits = 8 if scheme.name == "mxfp8-e4m3" else 4
    args = {"num_bits": bits, "type": "float", "symmetric": True, "dynamic": False}
    if scheme.name == "nvfp4":
        return args | {"strategy": "tensor_group", "group_size": 16, "scale_dtype": "torch.float8_e4m3fn"}
    return args | {"strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8"}


def input_args(scheme: Scheme) -> dict[str, Any] | str:
    """Return the members of ``QuantizationArgs`` for inputs (or keys and values), or why there are none."""
    if scheme.name in MICRO:
        dynamic = "local" if scheme.name == "nvfp4" else True
        return _micro_args(scheme) | {"dynamic": dynamic}
    number = _number(scheme)
    if number is None:
        return f"compressed-tensors has no {scheme.name} for activations"
    assert isinstance(scheme, ScaledScheme)
    args = {**number, "symmetric": scheme.symmetric, "dynamic": not takes_range(scheme)}
    match scheme.granularity:
        case PerTensor():
            return args | {"strategy": "tensor"}
        case PerToken() | PerChannel():
            return args | {"strategy": "token"}
        case PerGroup(size) if scheme.symmetric:
            return args | {"strategy": "group", "group_size": size}
    return f"compressed-tensors has no {scheme.name} for activations"


class CompressedTensorsMethod(Method):
    """See :class:`workbench.deployment.checkpoints.write.Method`."""

    kind = "compressed-tensors"
    what = "a compressed-tensors checkpoint"
    target = "vllm"
    holds_experts = True
    holds_rotations = True

    def require(self) -> None:
        library()

    def refusal(self, layer: Layer, assignment: Assignment, job: Job) -> str | None:
        if layer.parameter in job.origin.pieces:
            return self._experts_refusal(assignment, job)
        if not is_linear(layer) and not is_table(layer):
            return f"compressed-tensors quantizes linear modules stored outputs x inputs, not {what_it_is(layer)}"
        if assignment.weights == KEEP or assignment.weights in DTYPES:
            return "compressed-tensors quantizes no inputs of a layer whose weights it keeps" if \
                assignment.inputs is not None else None  # fmt: skip
        scheme = parse_scheme(assignment.weights)
        args = weight_args(scheme)
        if isinstance(args, str):
            return args
        cut = grid(scheme.granularity, layer.matrix)
        if cut.columns % cut.width or (scheme.name in MICRO and cut.columns % 2):
            return f"{scheme.name} needs inputs in multiples of {cut.width}, the layer has {cut.columns}"
        if args["num_bits"] == 4 and not args["symmetric"] and cut.bands <= 8 and cut.groups > 1:
            return f"compressed-tensors does not unpack the zero points of {cut.bands} rows in 4 bits; more than 8 work"
        if assignment.inputs is None:
            return None
        if is_table(layer):
            return "the inputs of an embedding are tokens, which are not quantized"
        return self._input_refusal(layer, assignment.inputs)

    @staticmethod
    def _experts_refusal(assignment: Assignment, job: Job) -> str | None:
        """Return why experts cannot be held: both loaders read them all by one scheme, and few of them."""
        scheme = parse_scheme(assignment.weights)
        if assignment.inputs is not None:
            return "transformers gives experts the inputs as they are; keep them"
        whole = isinstance(scheme, ScaledScheme) and isinstance(scheme.granularity, PerChannel | PerGroup)
        if not whole or packing(scheme.name, None) != "pack-quantized" or not getattr(scheme, "symmetric", False):
            return f"vLLM and transformers read experts as symmetric integers, not as {scheme.name}; int4-g32 is one"
        others = {job.assignments[each.name].weights for each in job.model.summary.stored if
                  each.parameter in job.origin.pieces}  # fmt: skip
        if len(others) > 1:
            return f"transformers reads all experts by one scheme, and the plan has {', '.join(sorted(others))}"
        return None

    @staticmethod
    def _input_refusal(layer: Layer, inputs: str) -> str | None:
        scheme = parse_scheme(inputs)
        args = input_args(scheme)
        if isinstance(args, str):
            return args
        size = args.get("group_size")
        if size and layer.matrix[1] % size:
            return f"{scheme.name} inputs come in groups of {size}, the layer has {layer.matrix[1]}"
        return None

    def entries(self, stored: QuantizedTensor, inputs: str | None, calibrated: Range | None) -> Iterator[Entry]:
        scheme = parse_scheme(stored.scheme)
        assert isinstance(scheme, ScaledScheme)
        if scheme.name in MICRO:
            yield from layout.micro_entries(stored)
        elif packing(stored.scheme, inputs) == "pack-quantized":
            yield from layout.packed_entries(scheme, stored)
        else:
            integer = scheme.element.shiftable
            codes: Callable[[], np.ndarray] = lambda: stored.arrays["codes"].reshape(stored.shape)  # noqa: E731
            make: Make = (lambda: codes() ^ np.uint8(128)) if integer else codes
            yield Entry(name="weight", dtype="int8" if integer else "float8_e4m3fn", shape=stored.shape, load=make)
        if scheme.name not in MICRO:
            yield from layout.scale_entries(scheme, stored, packing(stored.scheme, inputs))
        if inputs is not None:
            yield from layout.input_entries(parse_scheme(inputs), calibrated)

    def settings(self, job: Job) -> dict[str, Any]:
        packed = {layer.name for layer, _ in job.packed()}
        groups: dict[str, tuple[dict[str, Any], list[Layer]]] = {}
        for layer in job.model.summary.stored:
            if layer.name in packed:
                assignment = job.assignments[layer.name]
                group = config_group(job.quantized.tensors[layer.name].scheme, assignment.inputs)
                groups.setdefault(repr(sorted(group.items(), key=str)), (group, []))[1].append(layer)
        if job.origin.pieces and not packed & {layer.name for layer in job.model.summary.stored if
                                               layer.parameter in job.origin.pieces}:  # fmt: skip
            groups["experts"] = (NO_EXPERTS, [])
        linear = [layer for layer in job.model.summary.layers if layer.kind is LayerKind.LINEAR]
        ignored = [layer.parameter.removesuffix(".weight") for layer in linear if layer.name not in packed]
        ignored += _experts(layer for layer in job.model.summary.layers if layer.name not in packed)
        bare = job.model.summary.cannot_run is not None
        if bare and not any(layer.name == "lm_head" for layer in linear):
            ignored.append("lm_head")  # which may be tied to the table; the tensors alone do not say
        cache = cache_args(job.model.summary, job.assignments)
        if not packed and cache is None:
            return {}  # a folder as it was: loaders look for packed tensors where it says that there are
        formats = sorted({group["format"] for group, layers in groups.values() if layers})
        written = {
            f"group_{number}": {"targets": _targets(layers, len(groups) + bare, job), **group}
            for number, (group, layers) in enumerate(groups.values())
        }
        return {"quantization_config": {
            "quant_method": "compressed-tensors", "version": library().__version__, "config_groups": written,
            "format": formats[0] if len(formats) == 1 else MIXED if formats else "dense", "ignore": ignored,
            "kv_cache_scheme": cache, "quantization_status": "compressed",
            "global_compression_ratio": None, "sparsity_config": {},
            "transform_config": transform_config(job.quantized.changes.rotated, job.model.online),
        }}  # fmt: skip

    def adapt(self, folder: Path, job: Job) -> None:
        """Have transformers unpack weights as it loads them where it cannot load them packed.

        It takes the first scheme that is not of experts for all, and leaves inputs, keys and values as they are.
        """
        from workbench.deployment.checkpoints.loading import loads_in_transformers

        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        settings = config.get("quantization_config", {})
        groups = settings.get("config_groups", {}).values()
        experts = [any(each.startswith("re:") and "experts" in each for each in group["targets"]) for group in groups]
        dense = [group for group, of_experts in zip(groups, experts, strict=True) if not of_experts]
        rounded = any(group["input_activations"] for group in groups) or settings.get("kv_cache_scheme")
        if len(dense) != 1 or rounded:
            return
        in_blocks = "scale_dtype" in dense[0]["weights"]  # unpacked to bfloat16 in the first run, whatever runs there
        if in_blocks or loads_in_transformers(folder, job.model):
            write_config(folder, {**config, "quantization_config": {**settings, "dequantize": True}})
            if loads_in_transformers(folder, job.model):
                write_config(folder, config)

    def read(
        self, layer: Layer, tensors: Mapping[str, torch.Tensor], stored: QuantizedTensor, config: Mapping[str, Any],
        rows: slice,
    ) -> tuple[torch.Tensor, int]:  # fmt: skip
        """See the contract: the library decodes what its own reading of config.json says of the module."""
        import torch
        from compressed_tensors.compressors import BaseCompressor

        kind = torch.nn.Embedding if layer.kind is LayerKind.EMBEDDING else torch.nn.Linear
        scheme = _scheme_of(str(config["quantization_config"]), layer.name, kind.__name__)
        parts = _rows_of(tensors, rows, scheme)
        if parts["weight_scale"].dtype in (torch.float16, torch.bfloat16):
            parts["weight_scale"] = parts["weight_scale"].float()  # which decodes in the dtype of its scales
        if scheme.format == MICRO["nvfp4"]:
            return _read_nvfp4(parts, scheme.weights), ULPS["nvfp4"]
        values: torch.Tensor = BaseCompressor.get_value_from_registry(scheme.format).decompress(parts, scheme)["weight"]
        return values, 0


def _rows_of(parts: Mapping[str, torch.Tensor], rows: slice, scheme: Any) -> dict[str, torch.Tensor]:
    """Return what stands for some rows of a weight."""
    import torch

    args, whole = scheme.weights, next(parts[name] for name in ("weight_packed", "weight") if name in parts)
    band = {name: tensor for name, tensor in parts.items() if name.startswith("weight")}
    height, bits = (args.block_structure or (1, 1))[0], args.num_bits
    for name, tensor in band.items():
        if name == "weight_shape":
            band[name] = torch.tensor([rows.stop - rows.start, int(tensor[1])])
        elif name == "weight_zero_point" and tensor.dtype == torch.int32:
            words = tensor[rows.start * bits // 32 : -(-rows.stop * bits // 32)]
            single = len(words) == 1  # which the library unpacks where its transpose has a last step of 1
            band[name] = words.clone().as_strided(words.shape, (1, 1)) if single else words
        elif tensor.ndim == 2 and (len(tensor) == len(whole) or height > 1):
            high = 1 if len(tensor) == len(whole) else height
            band[name] = tensor[rows.start // high : -(-rows.stop // high)]
    return band


def config_group(weights: str, inputs: str | None) -> dict[str, Any]:
    """Return a config group without its targets, for schemes that :func:`weight_args` and :func:`input_args` know."""
    return {
        "weights": weight_args(parse_scheme(weights)), "format": packing(weights, inputs), "output_activations": None,
        "input_activations": None if inputs is None else input_args(parse_scheme(inputs)),
    }  # fmt: skip


def transform_config(rotated: Mapping[str, int], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what says that inputs are rotated, and nothing of weights: loaders would rotate them once more.

    ``own`` are the rotations that the opened network has; ExportError for what the package does not know of them.
    """
    if not rotated and not own:
        return {}
    from compressed_tensors.transform import TransformArgs, TransformConfig, TransformScheme

    try:
        groups = {name: TransformScheme.model_validate(group) for name, group in own.items()}
    except ValueError as error:
        what = " ".join(str(error).split())
        raise ExportError(
            f"the package compressed-tensors does not take the model's own rotations: {what:.200}"
        ) from None
    for block in sorted(set(rotated.values())):
        inputs = TransformArgs(targets=[name for name in rotated if rotated[name] == block], location="input")
        name = f"R4_{block}"
        while name in own:
            name += "_further"
        groups[name] = TransformScheme(type="hadamard", head_dim=block, apply=[inputs])
    return dict(TransformConfig(config_groups=groups).model_dump(mode="json"))


def _targets(layers: Sequence[Layer], groups: int, job: Job) -> list[str]:
    """Return what names the layers of a group: all linear layers that are not ignored where there is one group."""
    pieces = job.origin.pieces
    if groups == 1 and all(layer.kind is LayerKind.LINEAR or layer.parameter in pieces for layer in layers):
        return ["Linear"]
    names = [layer.name for layer in layers if layer.parameter not in pieces]
    for layer in layers:
        modules = [piece.module.split(".") for piece in pieces.get(layer.parameter, ())]
        names += dict.fromkeys(
            f"re:{re.escape('.'.join(module[:-2]))}\\.\\d+\\.{re.escape(module[-1])}$" for module in modules
        )
    return names or [NOTHING]


def _experts(layers: Iterable[Layer]) -> list[str]:
    """Return what names the experts' linear layers as loaders have them, fused or one by one."""
    owners = dict.fromkeys(layer.parameter.rpartition(".")[0] for layer in layers if layer.kind is LayerKind.EXPERTS)
    return [name for owner in owners for name in (owner, f"re:{re.escape(owner)}\\..*")]


def cache_args(summary: ModelSummary, assignments: Mapping[str, Assignment]) -> dict[str, Any] | None:
    """Return what holds for all keys and values; ExportError where layers differ, which the library cannot say."""
    makers = [layer for layer in summary.layers if makes_keys_or_values(layer)]
    schemes = {assignments[layer.name].cache for layer in makers}
    if schemes <= {None}:
        return None
    if len(schemes) > 1:
        names = ", ".join(sorted(str(scheme or "as computed") for scheme in schemes))
        raise ExportError(f"the plan stores keys and values in {names}; compressed-tensors has one scheme for all")
    name = next(iter(schemes))
    assert name is not None
    args = input_args(parse_scheme(name))
    if isinstance(args, str) or args["strategy"] != "token":
        raise ExportError(f"a KV cache in {name} cannot be expressed in compressed-tensors; choose fp8-e4m3-token")
    return args


@lru_cache(maxsize=4096)
def _scheme_of(settings: str, name: str, kind: str) -> Any:
    """Return what the library takes a module's scheme to be; ExportError where it finds none."""
    from compressed_tensors.utils.match import match_name

    config = _parsed(settings)
    ignore = ast.literal_eval(settings)["ignore"]
    if not any(match_name(name, each) for each in ignore):
        for group in config.config_groups.values():
            if any(target == kind or match_name(name, target) for target in group.targets):
                return group
    raise ExportError(f"compressed-tensors has no scheme for {name} in what was written; please report")


@lru_cache(maxsize=8)
def _parsed(settings: str) -> Any:
    from compressed_tensors.quantization import QuantizationConfig

    return QuantizationConfig.model_validate(ast.literal_eval(settings))


def _read_nvfp4(parts: Mapping[str, torch.Tensor], weights: Any) -> torch.Tensor:
    """Return the weight in float32 by the library's own unpacking; its decompressor would round it to bfloat16."""
    import torch
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    rows, half = parts["weight_packed"].shape
    codes = unpack_fp4_from_uint8(parts["weight_packed"], rows, 2 * half).float()
    scale = parts["weight_scale"].float()
    value: torch.Tensor = dequantize(
        codes, scale, args=weights, global_scale=parts["weight_global_scale"], dtype=torch.float32
    )
    return value
