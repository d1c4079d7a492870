"""What a search minimises and stays within, as numbers of the groups together."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from workbench.planning.budgets import Budgets
from workbench.planning.constraints import SearchSpace
from workbench.planning.search.hull import padded
from workbench.planning.search.solve import Problem

LOSS_SLACK = 1e-12
"""A budget of loss may be exceeded by this share of it: losses are sums of floats, added in another order elsewhere."""


def limits_of(space: SearchSpace, budgets: Budgets) -> dict[str, float]:
    """Return what the groups may take together of bits, loss and microseconds; bits by exact arithmetic."""
    limits: dict[str, float] = {}
    bits = []
    if budgets.nbytes is not None:
        bits.append((int(budgets.nbytes) - space.summary.other_nbytes) * 8 + 7 - space.all_bits)
    if budgets.bits_per_weight is not None:
        most = math.floor(Fraction(budgets.bits_per_weight) * space.counted_weights)
        if space.counted_weights and (most + 1) / space.counted_weights <= budgets.bits_per_weight:
            most += 1  # the asked number is the float nearest to this very quotient
        bits.append(most - space.counted_bits)
    if bits:
        limits["bits"] = min(bits)
    if budgets.loss is not None:
        limits["loss"] = budgets.loss * (1 + LOSS_SLACK) - space.fixed_loss
    if budgets.microseconds is not None:
        limits["microseconds"] = budgets.microseconds - space.fixed_microseconds
    return limits


def matrix_of(space: SearchSpace, quantity: str) -> np.ndarray:
    """Return a quantity of every choice, float64 ``[groups, choices]``, padded with infinity."""
    return padded([getattr(group, quantity) for group in space.groups])


def problem_of(space: SearchSpace, minimise: str, limits: dict[str, float]) -> Problem:
    """Return the problem of the least ``minimise`` within ``limits``."""
    value = matrix_of(space, "bits" if minimise in ("nbytes", "bits_per_weight") else minimise)
    costs = tuple(matrix_of(space, quantity) for quantity in limits)
    return Problem(value=value, costs=costs, limits=tuple(limits.values()))
