"""One layer's weight onto the grid of a scheme: the one place where scores and quantized models get their bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import MissingResultError, NonFiniteError
from workbench.numerics.algorithms import Context, Rounded, algorithm
from workbench.numerics.formats import parse_scheme

if TYPE_CHECKING:
    import torch

    from workbench.numerics.curvature import Curvature


def round_weight(
    layer: str, weight: torch.Tensor, scheme: str, algorithm_name: str, curvature: Curvature | None = None
) -> Rounded:
    """Return ``weight`` (``[rows, columns]``) rounded by the named algorithm.

    ``rtn`` and ``rtn-clip`` look at nothing but the weight, so that a plan alone gives the same bits anywhere.  Raises
    MissingResultError for an algorithm that needs the inputs' second moment where there is none, NonFiniteError naming
    the layer.
    """
    import torch

    method = algorithm(algorithm_name)
    context = Context()
    if method.needs_second_moment:
        if curvature is None or curvature.full is None:
            raise MissingResultError(
                f"{method.name} needs the second moment of the inputs of {layer}, which was not collected; "
                "calibrate with curvature first, or choose rtn-clip"
            )
        context = Context(second_moment=torch.from_numpy(curvature.full))
    try:
        return method.quantize(weight, parse_scheme(scheme), context)
    except NonFiniteError:
        raise NonFiniteError(f"the weight of {layer} holds NaN or infinite values; it can only be kept") from None
