"""Round to nearest: every weight goes to the closest value of the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from workbench.errors import AlgorithmError
from workbench.numerics.rounding.algorithm import Context, Need, Rounded
from workbench.numerics.rounding.parameter_parts import is_plain, join_columns
from workbench.numerics.rounding.range_search import best_ranges
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Rtn:
    """With ``clip_search``, smaller ranges are tried for each group and the best is used."""

    needs: ClassVar[Need] = Need.NOTHING
    clip_search: bool = False

    @property
    def name(self) -> str:
        """``rtn`` or ``rtn-clip``."""
        return "rtn-clip" if self.clip_search else "rtn"

    def quantize(self, weight: torch.Tensor, scheme: Scheme, context: Context | None = None) -> Rounded:
        """Fit, then round."""
        importance = context.importance if context is not None else None
        parameters = scheme.fit(weight, importance, clip_search=self.clip_search)
        return Rounded(parameters=parameters, values=scheme.round(weight, parameters))


@dataclass(frozen=True, slots=True, kw_only=True)
class RtnWeighted:
    """Round to nearest with the range of each group that adds the least error to the layer's output.

    The error of a group ``g`` with the weight errors ``D`` is ``D A_gg D^T``, ``A_gg`` being the group's block of the
    inputs' second moment: what the group alone does to ``E|y - y'|^2``.  Low and high ends are searched apart.  Where A
    is not known, or for schemes with more than a scale and a zero point for each group, the scheme's own clip search is
    weighted by the diagonal of A.
    """

    name: ClassVar[str] = "rtn-weighted"
    needs: ClassVar[Need] = Need.IMPORTANCE
    """The importance of the columns; better the whole second moment."""

    def quantize(self, weight: torch.Tensor, scheme: Scheme, context: Context) -> Rounded:
        """Search, then round; AlgorithmError without importance and without second moment."""
        plain = scheme.fit(weight)
        if context.second_moment is not None and is_plain(scheme, plain, weight.shape[0]):
            parameters = _by_blocks(weight.detach().float(), scheme, context.second_moment, plain)
        else:
            parameters = scheme.fit(weight, _importance(context, weight.shape[0]), clip_search=True)
        return Rounded(parameters=parameters, values=scheme.round(weight, parameters))


def _by_blocks(weight: torch.Tensor, scheme: Scheme, moment: torch.Tensor, plain: Parameters) -> Parameters:
    moment = moment.to(weight.device).reshape(-1, weight.shape[1], weight.shape[1])
    width = plain.width if plain.scale.shape[1] > 1 else weight.shape[1]
    parts = []
    for start in range(0, weight.shape[1], width):
        part = slice(start, min(start + width, weight.shape[1]))
        parts.append(best_ranges(weight[:, part], scheme, moment[:, part, part]))
    return join_columns(parts)


def _importance(context: Context, rows: int) -> torch.Tensor:
    if context.second_moment is not None:
        moment = context.second_moment
        diagonal = moment.reshape(-1, *moment.shape[-2:]).diagonal(dim1=1, dim2=2)
        return diagonal.repeat_interleave(rows // diagonal.shape[0], dim=0)
    if context.importance is None:
        raise AlgorithmError("rtn-weighted needs the importance of the inputs; calibrate first, or choose rtn-clip")
    return context.importance
