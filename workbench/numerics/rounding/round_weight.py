"""One layer's weight onto the grid of a scheme: the one place where scores and quantized models get their bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.errors import AlgorithmError, MissingResultError, NonFiniteError, SchemeError
from workbench.memory import Spill
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.rounding import Algorithm, Context, Need, Rounded, algorithm
from workbench.numerics.rounding.algorithm import PrefixMoments
from workbench.numerics.rounding.by_rows import encode_by_rows
from workbench.numerics.rounding.rtn import Rtn

if TYPE_CHECKING:
    import torch

    from workbench.numerics.curvature import Curvature


def round_weight(
    layer: str, weight: torch.Tensor, scheme: str, algorithm_name: str, curvature: Curvature | None = None,
    prefix: PrefixMoments | None = None,
) -> Rounded:  # fmt: skip
    """Return ``weight`` (``[rows, columns]``) rounded by the named algorithm.

    ``prefix`` holds the moments of the inputs after all earlier layers were quantized, for algorithms of that need.
    ``rtn``, ``rtn-clip`` and ``hqq`` look at nothing but the weight, so that a plan alone gives the same bits anywhere.
    Raises, all naming the layer: MissingResultError for an algorithm that needs the inputs' moments where there are
    none, AlgorithmError for a scheme or moments that the algorithm cannot serve and for a matrix that
    the scheme cannot hold, NonFiniteError.  SchemeError for a scheme that does not exist.
    """
    method, parsed = algorithm(algorithm_name), parse_scheme(scheme)
    with _named(layer, method, scheme):
        return method.quantize(weight, parsed, context_for(layer, method, curvature, prefix).on(weight.device))


def encode_weight(
    layer: str, weight: torch.Tensor, scheme: str, algorithm_name: str, curvature: Curvature | None = None,
    prefix: PrefixMoments | None = None, *, spill: Spill,
) -> QuantizedTensor:  # fmt: skip
    """Return the stored form of what :func:`round_weight` returns, its arrays where ``spill`` has room; raises alike.

    Plain rounding takes a matrix in bands of rows.
    """
    method, parsed = algorithm(algorithm_name), parse_scheme(scheme)
    if isinstance(method, Rtn) and parsed.rows_apart and weight.device.type == "cpu" and weight.numel():
        with _named(layer, method, scheme):
            return encode_by_rows(weight, parsed, clip_search=method.clip_search, empty=spill.empty)
    rounded = round_weight(layer, weight, scheme, algorithm_name, curvature, prefix)
    stored = parsed.encode(rounded.values, rounded.parameters)
    return replace(stored, arrays={name: spill.put_away(array) for name, array in stored.arrays.items()})


@contextmanager
def _named(layer: str, method: Algorithm, scheme: str) -> Iterator[None]:
    """Have errors name the layer."""
    try:
        yield
    except NonFiniteError:
        raise NonFiniteError(
            f"the weight of {layer} holds NaN or infinite values; it can only stay in floating point"
        ) from None
    except (AlgorithmError, SchemeError) as error:
        raise AlgorithmError(f"{method.name} cannot round {layer} to {scheme}: {error}") from None


def needs_sequence(algorithm_name: str) -> bool:
    """Return whether the algorithm takes layers one after another, each on the inputs that quantized layers give."""
    return algorithm(algorithm_name).needs is Need.SEQUENCE


def is_weights_only(algorithm_name: str) -> bool:
    """Return whether the algorithm looks at nothing but the weight."""
    return algorithm(algorithm_name).needs is Need.NOTHING


def context_for(
    layer: str, method: Algorithm, curvature: Curvature | None, prefix: PrefixMoments | None = None
) -> Context:
    """Return what ``method`` looks at beyond the weight of ``layer``; MissingResultError naming what is missing."""
    import torch

    if method.needs is Need.NOTHING:
        return Context()
    if method.needs is Need.SEQUENCE:
        return _sequence(layer, method, curvature, prefix)
    if curvature is None or (method.needs is Need.SECOND_MOMENT and curvature.full is None):
        raise MissingResultError(
            f"{method.name} needs the second moment of the inputs of {layer}, which no calibration has collected; "
            "calibrate with curvature and give the session, or choose rtn-clip",
            command="workbench apply ... --session S.qwb",
        )
    rows = torch.from_numpy(curvature.rows).float() if curvature.has_gradients else None
    if curvature.full is None:
        return Context(importance=torch.from_numpy(curvature.importance()), rows=rows)
    return Context(
        second_moment=torch.from_numpy(curvature.full), rows=rows, outputs=_outputs(curvature),
        samples=curvature.count if curvature.full.ndim == 2 else None,
    )  # fmt: skip


def _sequence(layer: str, method: Algorithm, curvature: Curvature | None, prefix: PrefixMoments | None) -> Context:
    import torch

    if prefix is None:
        raise MissingResultError(
            f"{method.name} quantizes {layer} after all layers before it, with the calibration's data at hand; for a "
            "single layer, or one whose inputs' second moment is not collected, choose gptq or rtn-clip"
        )
    return Context(
        second_moment=prefix.present, cross_moment=prefix.cross, samples=prefix.count,
        rows=torch.from_numpy(curvature.rows).float() if curvature is not None and curvature.has_gradients else None,
        outputs=_outputs(curvature),
    )  # fmt: skip


def _outputs(curvature: Curvature | None) -> torch.Tensor | None:
    import torch

    return None if curvature is None or curvature.outputs is None else torch.from_numpy(curvature.outputs)
