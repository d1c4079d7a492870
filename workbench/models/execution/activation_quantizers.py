"""What a scheme does to a layer's activations while the model runs: to its input, or to the keys or values it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.errors import MissingResultError, NonFiniteError
from workbench.models.kv_cache import cache_scheme
from workbench.models.layer import Layer
from workbench.models.model import Replacement
from workbench.numerics.formats import parse_scheme, takes_range, within
from workbench.numerics.formats.microscaling import MxScheme
from workbench.numerics.granularity import PerBlock
from workbench.numerics.ranges import Range
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

Ranges = Mapping[tuple[str, str], Range]
"""The range in force by (layer, tap)."""


def input_quantizer(layer: Layer, scheme_name: str, ranges: Ranges) -> Replacement:
    """Return the function that quantizes a layer's input.

    A scheme for a whole tensor is static: it takes the calibrated range, and so does NVFP4's scale for the tensor;
    MissingResultError says that there is none.  Any other is dynamic: scales are computed from each token (each
    sample, for convolutions) when it is seen.
    """
    scheme, by_sample = parse_scheme(scheme_name), layer.kind.is_convolution
    calibrated, parameters = ranges.get((layer.name, "input")), None
    if isinstance(scheme, MxScheme):
        scheme = replace(scheme, nearest=True)  # as compressed-tensors and vLLM do: fewer inputs saturate
    if takes_range(scheme):
        if calibrated is None:
            raise MissingResultError(
                f"the inputs of {layer.name} have the scheme {scheme.name}, but no range was calibrated for them; "
                "calibrate first, or choose a dynamic scheme such as int8-token"
            )
        scheme, parameters = within(scheme, calibrated.low, calibrated.high)
    return _ActivationQuantizer(f"the input of {layer.name}", scheme, by_sample, parameters)


def cache_quantizer(layer: Layer, scheme_name: str) -> Replacement:
    """Return the function that rounds what a layer gives the KV cache; PlanError for a static scheme.

    Scales are of each token (or of groups of its features), or with blocks of several rows of so many tokens of one
    sample (``int2-b32x1-asym-zfp16``: per-channel keys, Liu et al., "KIVI", ICML 2024, which keeps the last ones as
    they are).  Keys are rounded before their rotation by position.
    """
    return _ActivationQuantizer(f"the output of {layer.name}", cache_scheme(scheme_name))


@dataclass(frozen=True, slots=True, eq=False)
class _ActivationQuantizer:
    """Rounds a layer's input (or, for a KV cache, its output) to the grid of a scheme; token ids pass unchanged."""

    place: str
    scheme: Scheme
    by_sample: bool = False
    parameters: Parameters | None = None

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        blocks = self.scheme.granularity
        if isinstance(blocks, PerBlock) and blocks.rows > 1 and tensor.ndim > 2 and not self.by_sample:
            import torch

            return torch.stack([self(sample) for sample in tensor])  # no block holds tokens of two samples
        rows = tensor.reshape(tensor.shape[0], -1) if self.by_sample else tensor.reshape(-1, tensor.shape[-1])
        try:
            parameters = self.scheme.fit(rows) if self.parameters is None else self.parameters.on(rows.device)
        except NonFiniteError:
            raise NonFiniteError(f"{self.place} holds NaN or infinite values: no scale fits") from None
        return self.scheme.round(rows, parameters).reshape(tensor.shape).to(tensor.dtype)
