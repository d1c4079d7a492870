"""Steps down a gradient with a state of plain arrays, so that a run can stop and go on to the same bits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from workbench.errors import PlanError

if TYPE_CHECKING:
    import torch

Rule = Literal["adam", "signed"]
Schedule = Literal["cosine", "linear"]

_BETAS = (0.9, 0.99)
_TINY = 1e-12


def rate_factor(schedule: Schedule, step: int, steps: int) -> float:
    """Return what the learning rate is multiplied with at ``step`` of ``steps``: from 1 to 0."""
    done = step / max(steps, 1)
    return 1.0 - done if schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))


@dataclass(slots=True, kw_only=True)
class Descent:
    """Moves ``variables`` against their gradients, each at its own rate.

    ``signed``: by the gradient's sign alone (Cheng et al. 2023).  ``adam``: Kingma and Ba, ICLR 2015, betas 0.9 and
    0.99. Either forgets the gradient's length, so a rate is the most that a variable moves in one step, in its own
    unit.
    """

    variables: Sequence[torch.Tensor]
    rates: Sequence[float]
    rule: Rule = "adam"
    taken: int = 0
    _first: list[torch.Tensor] = field(default_factory=list)
    _second: list[torch.Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.rule == "adam":
            self._first = [variable.detach().new_zeros(variable.shape) for variable in self.variables]
            self._second = [variable.detach().new_zeros(variable.shape) for variable in self.variables]

    def step(self, gradients: Sequence[torch.Tensor], factor: float) -> None:
        """Take one step with every rate multiplied by ``factor``."""
        import torch

        self.taken += 1
        with torch.no_grad():
            for place, (variable, gradient, rate) in enumerate(zip(self.variables, gradients, self.rates, strict=True)):
                variable.sub_(self._direction(place, gradient), alpha=rate * factor)

    def _direction(self, place: int, gradient: torch.Tensor) -> torch.Tensor:
        if self.rule == "signed":
            return gradient.sign()
        first, second = self._first[place], self._second[place]
        first.mul_(_BETAS[0]).add_(gradient, alpha=1.0 - _BETAS[0])
        second.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1.0 - _BETAS[1])
        mean = first / (1.0 - _BETAS[0] ** self.taken)
        spread = (second / (1.0 - _BETAS[1] ** self.taken)).sqrt_().add_(_TINY)
        return mean.div_(spread)

    def state(self) -> dict[str, np.ndarray]:
        """Return everything that the next step depends on, as copies."""
        arrays = {name: tensor.detach().to("cpu", copy=True).numpy() for name, tensor in self._tensors()}
        return {"taken": np.array(self.taken), **arrays}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from ``state``; raises PlanError if it belongs to other variables."""
        import torch

        for name, tensor in self._tensors():
            stored = state.get(name)
            if stored is None or tuple(stored.shape) != tuple(tensor.shape):
                raise PlanError("the checkpoint holds other variables than this run; remove it to start again")
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(stored))
        self.taken = int(state["taken"])

    def _tensors(self) -> list[tuple[str, torch.Tensor]]:
        groups = {"variable": self.variables, "first": self._first, "second": self._second}
        return [(f"{name}{place}", tensor) for name, tensors in groups.items() for place, tensor in enumerate(tensors)]
