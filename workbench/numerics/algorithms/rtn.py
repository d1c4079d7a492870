"""Round to nearest: every weight goes to the closest value of the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.numerics.algorithms.algorithm import Context, Rounded
from workbench.numerics.scheme import Scheme

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Rtn:
    """With ``clip_search``, smaller ranges are tried for each group and the one with the least error is kept."""

    clip_search: bool = False

    @property
    def name(self) -> str:
        """``rtn`` or ``rtn-clip``."""
        return "rtn-clip" if self.clip_search else "rtn"

    @property
    def needs_second_moment(self) -> bool:
        """Never."""
        return False

    def quantize(self, weight: torch.Tensor, scheme: Scheme, context: Context | None = None) -> Rounded:
        """Fit, then round."""
        importance = context.importance if context is not None else None
        parameters = scheme.fit(weight, importance, clip_search=self.clip_search)
        return Rounded(parameters=parameters, values=scheme.round(weight, parameters))
