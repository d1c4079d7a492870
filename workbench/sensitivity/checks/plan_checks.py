"""What whole plans cost when measured, beside their second-order prediction: how other plans are predicted from them.

The second order of a loss says little where the loss is large: errors of many layers at once cost more than their sum,
and a model that is lost already loses less.  What it misses grows with the loss and is nearly the same for plans of
one predicted loss, mixed or uniform.  So a few measured plans of several sizes say it for all.  numpy only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.sensitivity.confidence import NORMAL
from workbench.sensitivity.interaction import RESOLVED, beyond_chance

SPREAD = 0.3
"""How much the factors of plans of one predicted loss differ, at 95 %, as a share of the factor's logarithm."""

BEYOND = 0.5
"""How much wider the range gets, as a logarithm, where the loss is e times that of the coarsest plan measured."""

TRUSTED = 1.0
"""The factor of the finest plan measured says something of finer ones if its loss is at most this; else it is lost."""

FADES = 1.8
"""The most that a factor's logarithm may change below the finest plan: a larger loss stays larger."""

STEEPEST = 0.9
"""A measured loss grows at least with the predicted one to the power of one minus this: a larger loss stays larger."""

LARGEST = 50.0
"""The largest logarithm of a factor."""

NOTEWORTHY = 1.1
"""A factor below that goes without saying."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanChecks:
    """Plans that were measured: float64 ``[plans]``, the smallest ``predicted`` second-order loss first.

    ``measured`` is in the unit of ``predicted``, the mean over ``samples``; ``error`` its relative standard error, and
    ``bits`` the bits per weight of the layers that the plans quantize.  Raises ValueError for other shapes or orders.
    """

    predicted: np.ndarray
    measured: np.ndarray
    error: np.ndarray
    bits: np.ndarray
    samples: int

    def __post_init__(self) -> None:
        every = (self.predicted, self.measured, self.error, self.bits)
        plain = self.predicted.ndim == 1 and self.predicted.size and len({each.shape for each in every}) == 1
        positive = plain and all(np.isfinite(each).all() and (each >= 0).all() for each in every)
        if not positive or not (np.diff(self.predicted, prepend=0) > 0).all() or not (self.measured > 0).all():
            raise ValueError("measured plans are arrays of one length, of losses above 0, the smallest predicted first")

    @cached_property
    def factors(self) -> np.ndarray:
        """The logarithm of measured over predicted (float64 ``[plans]``), as far as the samples resolve it.

        Shrunk (positive-part James-Stein), by Student's t limits; 0 for fewer than 8 samples.
        """
        factors: np.ndarray = np.clip(np.log(self.measured) - np.log(self.predicted), -LARGEST, LARGEST)
        chance = beyond_chance(RESOLVED, self.samples)
        with np.errstate(divide="ignore", invalid="ignore"):
            doubtful = np.nan_to_num(chance * self.error / np.abs(factors), nan=math.inf, posinf=math.inf)
        factors *= np.maximum(1 - np.square(doubtful), 0.0)
        for place in range(1, factors.size):  # a plan of a larger predicted loss is predicted to lose more
            least = STEEPEST * math.log(self.predicted[place] / self.predicted[place - 1])
            factors[place] = max(factors[place], factors[place - 1] - least)
        return factors

    def whole(self, loss: float) -> float:
        """Return what a plan of that second-order loss is predicted to cost: the loss times the factor there.

        The factor's logarithm is linear between the measured plans: in the loss where it grows, in the loss's logarithm
        where a lost model loses no more.  Above them it is constant, below see TRUSTED and :meth:`_least`.
        """
        return float(self.wholes(np.array([loss]))[0])

    def wholes(self, losses: np.ndarray) -> np.ndarray:
        """Return :meth:`whole` of many losses, float64."""
        known = np.isfinite(losses) & (losses > 0)
        at = np.where(known, losses, self.predicted[0])
        straight = np.interp(at, self.predicted, self.factors)
        factors = np.minimum(straight, np.interp(np.log(at), np.log(self.predicted), self.factors))
        if self.predicted[0] > TRUSTED:
            first, share = float(self.factors[0]), at / self.predicted[0]
            finer = first * share if first > 0 else -np.log1p(math.expm1(-first) * share)
            factors = np.where(share < 1, finer, factors)
        else:
            share, least = np.minimum(at / self.predicted[0], 1.0), self._least
            factors = np.where(share < 1, least + (float(self.factors[0]) - least) * np.sqrt(share), factors)
        wholes: np.ndarray = np.where(known, losses * np.exp(factors), losses)
        return wholes

    @cached_property
    def _least(self) -> float:
        """The factor's logarithm where the loss is least: what is left of the finest plan's factor where it goes on as
        from the next plan to that one.  Higher orders grow with the errors, the root of the loss; what the second order
        itself says wrongly does not, and then both plans have one factor.  One plan alone has higher orders.
        """
        first, least = float(self.factors[0]), 0.0
        if self.factors.size > 1:
            steps = math.sqrt(float(self.predicted[1]) / float(self.predicted[0])) - 1
            least = first - float(self.factors[1] - first) / max(steps, math.ulp(1.0))
        low, high = (max(first - FADES, 0.0), first) if first > 0 else (first, min(first + FADES, 0.0))
        return min(max(least, low), high)

    def second_order(self, loss: float) -> float:
        """Return the largest second-order loss of plans that are predicted to cost no more than ``loss``."""
        low, high = 0.0, max(loss, 0.0) * math.exp(float(np.abs(self.factors).max()))
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if self.whole(middle) <= loss else (low, middle)
        return low

    def doubt(self, loss: float) -> float:
        """Return what a prediction from that second-order loss may be off by, as a logarithm at 95 %."""
        if not (math.isfinite(loss) and loss > 0):
            return 0.0
        spread = SPREAD * np.abs(self.factors)
        known = np.interp(loss, [0.0, *self.predicted], [spread[0], *np.hypot(spread, NORMAL * self.error)])
        return float(known) + BEYOND * max(math.log(loss / float(self.predicted[-1])), 0.0)

    def apart(self, loss: float) -> float:
        """Return how much the factors of two plans of that second-order loss may differ, as a logarithm at 95 %."""
        known = 0 < loss < math.inf
        return math.sqrt(2) * SPREAD * abs(math.log(self.whole(loss) / loss)) if known else 0.0

    def sentence(self, loss: float) -> str:
        """Return what the measured plans change about a prediction; empty where that is little."""
        factor = self.whole(loss) / loss if loss > 0 and math.isfinite(loss) else 1.0
        if 1 / NOTEWORTHY < factor < NOTEWORTHY:
            return ""
        return (
            f"the second order says {loss:.3g}; plans of {self.bits.min():.2g} to {self.bits.max():.2g} bits, measured "
            f"on {self.samples:,} samples of the calibration, cost {factor:.2g} times as much at this size, "
            "and the prediction counts that"
        )
