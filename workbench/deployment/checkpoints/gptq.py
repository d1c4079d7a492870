"""GPTQ checkpoints: codes packed along the inputs, zero points along the outputs, one group index for each input.

Layout of AutoGPTQ and GPTQModel: ``qweight`` int32 ``[inputs * bits / 32, outputs]``, ``qzeros`` int32
``[groups, outputs * bits / 32]``, both streams of bits from the least significant on, ``scales`` float16
``[groups, outputs]``, ``g_idx`` int32 ``[inputs]``.  ``weight = scale * (code - zero point)``.  Files of format
``gptq`` hold the zero point minus one, those of ``gptq_v2`` itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.deployment.checkpoints.write import Job, Method, unpacked_words
from workbench.deployment.targets import is_linear, target, what_it_is
from workbench.deployment.tensors import Entry
from workbench.errors import ExportError
from workbench.models.layer import Layer
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.integer import IntegerElement
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerChannel, PerGroup, grid
from workbench.numerics.packing import pack
from workbench.planning.plan import Assignment
from workbench.readable import few
from workbench.version import VERSION

if TYPE_CHECKING:
    import torch

    from workbench.numerics.quantized_tensor import QuantizedTensor
    from workbench.numerics.ranges.calibrated import Range
    from workbench.quantization.quantized_model import QuantizedModel

WIDTHS = (2, 3, 4, 8)
FORMATS = ("auto", "gptq", "gptq_v2")
Settings = tuple[int, int, bool]
"""Bits, columns of a group (-1: all), symmetric."""


@dataclass(frozen=True, slots=True)
class GptqMethod(Method):
    """See :class:`workbench.deployment.checkpoints.write.Method`."""

    checkpoint_format: str
    is_free: bool = False  # the user left the format open

    kind = "gptq"
    what = "a GPTQ checkpoint"
    target = "gptq"

    def require(self) -> None:
        """Raise ExportError for a format that there is not; no library is needed."""
        if self.checkpoint_format not in FORMATS:
            raise ExportError(f"checkpoint_format is {', '.join(FORMATS)}, not {self.checkpoint_format!r}")

    def chosen(self, quantized: QuantizedModel) -> GptqMethod:
        """Return the method with its format: where it is ``auto``, the older one unless a zero point is 0."""
        if self.checkpoint_format != "auto":
            return self
        newer = any(map(_has_zero_point_0, quantized.tensors.values()))
        return GptqMethod("gptq_v2" if newer else "gptq", is_free=True)

    def holds_as_stored(self, settings: Mapping[str, Any]) -> bool:
        return self.is_free or settings.get("checkpoint_format", "gptq") == self.checkpoint_format

    def refusal(self, layer: Layer, assignment: Assignment, job: Job) -> str | None:
        if assignment.inputs is not None or assignment.cache is not None:
            return "GPTQ checkpoints quantize weights alone, neither inputs nor keys and values"
        stored = job.quantized.tensors.get(layer.name)
        if stored is None:
            return None
        if not is_linear(layer):
            return f"GPTQ checkpoints quantize linear modules stored outputs x inputs, not {what_it_is(layer)}"
        scheme = parse_scheme(stored.scheme)
        if reason := _scheme_refusal(stored.scheme):
            return reason
        assert isinstance(scheme, ScaledScheme)
        rows, columns = layer.matrix
        bits, width = scheme.element.bits, grid(scheme.granularity, layer.matrix).width
        if columns * bits % 32 or rows * bits % 32 or columns % width:
            return (
                f"{scheme.name} needs inputs and outputs that fill words of 32 bits, and inputs in multiples of "
                f"{width}; the layer has {rows} x {columns}"
            )
        if self.checkpoint_format == "gptq" and _has_zero_point_0(stored):  # known once it is rounded
            return "a zero point of 0 has no place in the format gptq, which stores it minus one; set " \
                "checkpoint_format=gptq_v2, or auto"  # fmt: skip
        return None

    def entries(self, stored: QuantizedTensor, inputs: str | None, calibrated: Range | None) -> Iterator[Entry]:
        scheme = parse_scheme(stored.scheme)
        assert isinstance(scheme, ScaledScheme)
        (rows, columns), bits = stored.shape, scheme.element.bits
        cut = grid(scheme.granularity, stored.shape)
        words = columns * bits // 32
        yield Entry(
            name="qweight", dtype="int32", shape=(words, rows),
            load=lambda: np.ascontiguousarray(stored.arrays["codes"].view(np.int32).T),
        )  # fmt: skip
        yield Entry(
            name="qzeros", dtype="int32", shape=(cut.groups, rows * bits // 32),
            load=lambda: self._zero_points(scheme, stored),
        )  # fmt: skip
        yield Entry(
            name="scales", dtype="float16", shape=(cut.groups, rows),
            load=lambda: np.ascontiguousarray(stored.arrays["scales"].reshape(rows, cut.groups).T),
        )  # fmt: skip
        index = (np.arange(columns) // cut.width).astype(np.int32)
        yield Entry(name="g_idx", dtype="int32", shape=(columns,), load=lambda: index)

    def _zero_points(self, scheme: ScaledScheme, stored: QuantizedTensor) -> np.ndarray:
        import torch

        _, scales, shifts = scheme.unpacked(stored)
        bits = scheme.element.bits
        middle = torch.full_like(scales, 2 ** (bits - 1)) if shifts is None else shifts
        if self.checkpoint_format == "gptq":
            middle = middle - 1
        return pack(middle.T.contiguous().to(torch.uint8), bits).numpy().view(np.int32)

    def settings(self, job: Job) -> dict[str, Any]:
        """See the contract: what most layers have, and by regular expressions what others have or that they have none.

        The expressions are GPTQModel's ``dynamic``, which vLLM reads too.  transformers reads none, and would give the
        others random weights; it knows a list of modules.
        """
        by_layer = {layer.name: _settings_of(stored.scheme) for layer, stored in job.packed()}
        if not by_layer:
            raise ExportError("the plan gives no layer a scheme that GPTQ stores; there is nothing to write")
        usual = Counter(by_layer.values()).most_common(1)[0][0]
        dynamic: dict[str, dict[str, Any]] = {}
        for layer in job.model.summary.layers:
            pattern = layer.name.replace(".", r"\.") + "$"
            mine = by_layer.get(layer.name)
            if mine is None and is_linear(layer) and layer.name != "lm_head":
                dynamic[f"-:^{pattern}"] = {}
            elif mine is not None and mine != usual:
                dynamic[f"+:^{pattern}"] = {"bits": mine[0], "group_size": mine[1], "sym": mine[2]}
        excludes = any(pattern.startswith("-") for pattern in dynamic)
        return {"quantization_config": {
            "quant_method": "gptq", "bits": usual[0], "group_size": usual[1], "sym": usual[2], "desc_act": False,
            "checkpoint_format": self.checkpoint_format, "lm_head": "lm_head" in by_layer, "dynamic": dynamic,
            **({"modules_in_block_to_quantize": [list(by_layer)]} if excludes else {}),
            "meta": {"quantizer": [f"quantization-workbench:{VERSION}"]},
        }}  # fmt: skip

    def read(
        self, layer: Layer, tensors: Mapping[str, torch.Tensor], stored: QuantizedTensor, config: Mapping[str, Any],
        rows: slice,
    ) -> tuple[torch.Tensor, int]:  # fmt: skip
        """See the contract: unpacked shift by shift in 64-bit integers, as the specification says."""
        settings = config["quantization_config"]
        columns, bits = stored.shape[1], _bits(settings, layer.name)
        words = slice(rows.start * bits // 32, -(-rows.stop * bits // 32))
        shifts = unpacked_words(tensors["qzeros"][:, words], rows.stop - rows.start, bits)
        shifts = shifts + (settings["checkpoint_format"] == "gptq")
        index = tensors["g_idx"].long()
        codes = unpacked_words(tensors["qweight"][:, rows].T, columns, bits) - shifts.T[:, index]
        return tensors["scales"][:, rows].float().T[:, index] * codes.float(), 0


def remarks_on(quantized: QuantizedModel) -> list[str]:
    """Return a sentence for each program that does not load the checkpoint.

    transformers (optimum's ``GPTQQuantizer``) replaces layers in blocks alone, all by one width and group size.
    """
    packed = {name: _settings_of(each.scheme)[:2] for name, each in quantized.tensors.items()
              if not _scheme_refusal(each.scheme)}  # fmt: skip
    layers, by_name = quantized.summary.layers, quantized.summary.by_name
    usual = [settings for settings, _ in Counter(packed.values()).most_common(1)]
    others = [name for name, mine in packed.items() if [mine] != usual or not by_name[name].block[-1:].isdigit()]
    joined = [bond for bond in target("vllm").bonds(layers) if len({packed.get(name) for name in bond}) > 1]
    return [
        "transformers does not load this checkpoint: it gives all layers one width and group size, a head none; "
        f"{few(others, 3)} differ. GPTQModel, vLLM and SGLang read the rules in its configuration"
    ][: len(others)] + [
        f"vLLM runs {few(bond, 4)} as one matrix and does not load them in several forms; "
        "a repair for vLLM changes the plan (--repair of workbench check --target vllm)" for bond in joined[:1]
    ]  # fmt: skip


def _has_zero_point_0(stored: QuantizedTensor) -> bool:
    scheme = parse_scheme(stored.scheme)
    if not stored.arrays or not isinstance(scheme, ScaledScheme):
        return False
    shifts = scheme.zero_points(stored)
    return shifts is not None and bool((shifts == 0).any())


def _scheme_refusal(name: str) -> str | None:
    scheme = parse_scheme(name)
    if not isinstance(scheme, ScaledScheme) or not isinstance(scheme.element, IntegerElement):
        return f"GPTQ stores integers, not {name}"
    if scheme.element.bits not in WIDTHS:
        return f"GPTQ stores integers of {', '.join(map(str, WIDTHS))} bits, not of {scheme.element.bits}"
    if scheme.offset_format is not None or not isinstance(scheme.granularity, PerGroup | PerChannel):
        return f"GPTQ stores whole zero points and one scale for each group or output, not {name}"
    if scheme.scale_format.name != "fp16":
        return f"GPTQ stores float16 scales; take {name.removesuffix('-s' + scheme.scale_format.name)}-sfp16"
    return None


def _settings_of(name: str) -> Settings:
    scheme = parse_scheme(name)
    assert isinstance(scheme, ScaledScheme)
    size = scheme.granularity.size if isinstance(scheme.granularity, PerGroup) else -1
    return scheme.element.bits, size, scheme.symmetric


def _bits(settings: Mapping[str, Any], name: str) -> int:
    """Return what the configuration says of a layer's codes, matched as GPTQModel does."""
    for pattern, changes in settings["dynamic"].items():
        if pattern.startswith("+:") and re.match(pattern[2:], name):
            return int(changes["bits"])
    return int(settings["bits"])
