"""What a scheme does to a layer's activations while the model runs: to its input, or to the keys or values it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import MissingResultError, NonFiniteError
from workbench.models.kv_cache import cache_scheme
from workbench.models.layer import Layer
from workbench.models.model import Replacement
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.ranges import Range
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

Ranges = Mapping[tuple[str, str], Range]
"""The range in force by (layer, tap)."""


def input_quantizer(layer: Layer, scheme_name: str, ranges: Ranges) -> Replacement:
    """Return the function that quantizes a layer's input.

    A scheme for a whole tensor is static: it takes the calibrated range, and MissingResultError says that there is
    none.  Any other is dynamic: scales are computed from each token (each sample, for convolutions) when it is seen.
    """
    scheme = parse_scheme(scheme_name)
    parameters = _static_parameters(layer.name, scheme, ranges) if takes_range(scheme) else None
    by_sample = layer.kind.is_convolution
    return _ActivationQuantizer(layer=layer.name, scheme=scheme, parameters=parameters, by_sample=by_sample)


def cache_quantizer(layer: Layer, scheme_name: str) -> Replacement:
    """Return the function that rounds what a layer gives the KV cache; PlanError for a static scheme.

    Scales are of each token (or of groups of its features); keys are rounded before their rotation by position.
    """
    scheme = cache_scheme(scheme_name)
    return _ActivationQuantizer(layer=layer.name, scheme=scheme, parameters=None, by_sample=False, end="output")


def _static_parameters(name: str, scheme: Scheme, ranges: Ranges) -> Parameters:
    known = ranges.get((name, "input"))
    if known is None:
        raise MissingResultError(
            f"the inputs of {name} have the static scheme {scheme.name}, but no range was calibrated for them; "
            "calibrate first, or choose a dynamic scheme such as int8-token"
        )
    return scheme.fit_range(known.low, known.high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ActivationQuantizer:
    """Rounds a layer's input (or, for a KV cache, its output) to the grid of a scheme; token ids pass unchanged."""

    layer: str
    scheme: Scheme
    parameters: Parameters | None
    by_sample: bool
    end: str = "input"

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        rows = tensor.reshape(tensor.shape[0], -1) if self.by_sample else tensor.reshape(-1, tensor.shape[-1])
        try:
            parameters = self.parameters or self.scheme.fit(rows)
        except NonFiniteError:
            values = f"the {self.end} of {self.layer}"
            raise NonFiniteError(f"{values} holds NaN or infinite values: no scale fits") from None
        return self.scheme.round(rows, parameters).reshape(tensor.shape).to(tensor.dtype)
