"""What calibration sums up of mixtures of experts: statistics, second moments and curvature of each expert.

A row of a product is a token that was sent to an expert.  Tokens are taken as independent of each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from workbench.measurement.token_outliers import PlacedPeaks
from workbench.memory import Spill
from workbench.models.layer import Layer
from workbench.models.model import Routed
from workbench.numerics.curvature import Curvature
from workbench.numerics.statistics.layer_statistics import LayerStatistics

Observed = tuple[LayerStatistics, np.ndarray, PlacedPeaks | None]
"""Statistics of a tensor, sums of the squares of its channels, its tokens with the largest values."""

ENOUGH = 1.0
"""Tokens for each input of an expert below which a note names it: a second moment of fewer has no full rank, so that
GPTQ and ranges of that expert rest on the damping more than on the data."""


@dataclass(slots=True, kw_only=True)
class ExpertSums:
    """What one batch contributes; ``look`` observes rows ``[tokens, features]`` of a layer's input or output.

    ``seen`` are the statistics by layer, tap and whether all tokens were shown to all experts; ``squares`` sums of the
    inputs' squares ``[experts, columns]`` with the tokens ``[experts]``, in the same way; ``rows`` and ``columns`` sums
    of squared gradients ``[experts, rows or columns]``; ``scatter`` their number, sum and sum of squares.
    """

    look: Callable[[str, str, torch.Tensor], Observed | None] | None
    seen: dict[tuple[str, str, bool], LayerStatistics] = field(default_factory=dict)
    squares: dict[tuple[str, bool], tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    rows: dict[str, torch.Tensor] = field(default_factory=dict)
    columns: dict[str, torch.Tensor] = field(default_factory=dict)
    scatter: dict[str, torch.Tensor] = field(default_factory=dict)

    def forward(self, name: str, routed: Routed, x: torch.Tensor, output: torch.Tensor) -> None:
        """Observe the tokens of a product."""
        inputs, numbers = routed.rows(x.detach()), routed.numbers
        for tap, rows in (("input", inputs), ("output", routed.rows(output.detach()))):
            observed = self.look(name, tap, rows) if self.look is not None and len(rows) else None
            if observed is not None:
                key = (name, tap, routed.again)
                self.seen[key] = self.seen[key].merge(observed[0]) if key in self.seen else observed[0]
        sums = by_expert(inputs.double().square(), numbers, routed.count)
        counts = torch.bincount(numbers, minlength=routed.count)
        before = self.squares.get((name, routed.again))
        self.squares[name, routed.again] = (sums, counts) if before is None else (before[0] + sums, before[1] + counts)

    def backward(self, name: str, routed: Routed, x: torch.Tensor, gradient: torch.Tensor) -> None:
        """Add the squared gradients at the weight, of each token alone."""
        inputs, squares = routed.rows(x).double().square(), routed.rows(gradient).double().square()
        lengths, weights = inputs.sum(dim=1, keepdim=True), squares.sum(dim=1, keepdim=True)
        add_to(self.rows, name, by_expert(squares * lengths, routed.numbers, routed.count))
        add_to(self.columns, name, by_expert(inputs * weights, routed.numbers, routed.count))
        add_to(self.scatter, name, scatter_of((lengths * weights).squeeze(1)))


@dataclass(slots=True, kw_only=True)
class RoutedSums:
    """The sums of all batches, by layer: see :class:`ExpertSums`; where all experts saw all tokens, those count."""

    statistics: dict[tuple[str, str], LayerStatistics] = field(default_factory=dict)
    squares: dict[str, torch.Tensor] = field(default_factory=dict)
    counts: dict[str, torch.Tensor] = field(default_factory=dict)
    sent: dict[str, torch.Tensor] = field(default_factory=dict)
    rows: dict[str, torch.Tensor] = field(default_factory=dict)
    columns: dict[str, torch.Tensor] = field(default_factory=dict)
    scatter: dict[str, torch.Tensor] = field(default_factory=dict)
    everywhere: dict[str, bool] = field(default_factory=dict)

    def add(self, batch: ExpertSums) -> None:
        """Add a batch that proved finite."""
        everywhere = {name for name, again in batch.squares if again}
        self.everywhere |= dict.fromkeys(sorted(everywhere), True)  # what is saved of a run holds no sets
        for (name, tap, again), statistics in batch.seen.items():
            if again or name not in everywhere:
                old = self.statistics.get((name, tap))
                self.statistics[name, tap] = statistics if old is None else old.merge(statistics)
        for (name, again), (squares, counts) in batch.squares.items():
            if not again:
                add_to(self.sent, name, counts)
            if again or name not in everywhere:
                add_to(self.squares, name, squares)
                add_to(self.counts, name, counts)
        for name, rows in batch.rows.items():
            add_to(self.rows, name, rows)
            add_to(self.columns, name, batch.columns[name])
            add_to(self.scatter, name, batch.scatter[name])

    def curvature(self, layers: Mapping[str, Layer], units: int) -> dict[str, Curvature]:
        """Return the curvature of each layer: ``columns`` and ``counts`` by expert.

        An expert without tokens has the mean expert's inputs, and the gradients of one token of the mean expert.
        Where all saw all tokens, of most of which no gradients are known, inputs are not weighed by them.
        """
        curvature = {}
        for name, rows in self.rows.items():
            counts, sent = self.counts[name].double(), self.sent[name].double()
            columns = self.squares[name] / counts.clamp_min(1)[:, None]
            columns[counts == 0] = self.squares[name].sum(dim=0) / counts.sum().clamp_min(1)
            squares = torch.where(sent[:, None] > 0, rows, rows.sum(dim=0) / sent.sum().clamp_min(1)) / units
            lengths = columns.sum(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
            sums, total = self.columns[name], self.columns[name].sum(dim=1, keepdim=True)
            by_loss = torch.where(total > 0, sums * (lengths / total.clamp_min(1e-300)), columns)
            curvature[name] = Curvature(
                by_loss=None if name in self.everywhere else by_loss.cpu().numpy(),
                rows=(squares / lengths).reshape(-1).cpu().numpy(), columns=columns.cpu().numpy(), full=None,
                count=int(counts.sum()), counts=self.sent[name].cpu().numpy(),
                shown=int(counts[0]) if name in self.everywhere else 0,
                error=relative_error(self.scatter[name]),
            )  # fmt: skip
        return curvature

    def notes(self, layers: Mapping[str, Layer], all_experts: bool) -> list[str]:
        """Return sentences on experts that saw few tokens, and on mixtures that could not be shown all tokens."""
        notes = []
        if all_experts and not self.counts:
            notes.append(
                "all tokens through all experts changed nothing (--all-experts): no layer holds the weights of several "
                "experts (those that are modules of their own see the tokens that they are sent)"
            )
        advice = "" if all_experts else ", or let all experts see all tokens (--all-experts)"
        for name, counts in self.counts.items():
            width = layers[name].matrix[1]
            few = [(int(tokens), expert) for expert, tokens in enumerate(counts.tolist()) if tokens < ENOUGH * width]
            if few:
                least, expert = min(few)
                notes.append(
                    f"{len(few)} of {len(counts)} experts of {name} saw fewer than {ENOUGH * width:.0f} tokens, one "
                    f"for each of their inputs (expert {expert} saw {least}); calibrate on more samples{advice}"
                )
        left = [name for name in self.counts if all_experts and name not in self.everywhere]
        if left:
            notes.append(
                f"the experts of {left[0]}{f' and {len(left) - 1} more' if len(left) > 1 else ''} saw only the tokens "
                "that were sent to them: their module is not given the chosen experts, so that others cannot be chosen"
            )
        return notes


@dataclass(slots=True, kw_only=True)
class ExpertMoments:
    """Sums of ``x x^T`` over the tokens of each expert, float32 ``[experts, columns, columns]``, by layer.

    Where all experts were shown all tokens, only those count.  Tokens of ``weighed`` layers count as their squared
    gradients do.
    """

    spill: Spill
    weighed: Collection[str] = ()
    sums: dict[str, torch.Tensor] = field(default_factory=dict)
    counts: dict[str, torch.Tensor] = field(default_factory=dict)
    _again: set[str] = field(default_factory=set)
    _divided: set[str] = field(default_factory=set)
    _units: dict[str, float] = field(default_factory=dict)

    def forward(self, name: str, routed: Routed, x: torch.Tensor, output: torch.Tensor) -> None:
        """Add the tokens of a product."""
        if routed.again and name not in self._again:  # what came before were tokens of this very batch, the first
            self._again.add(name)
            del self.sums[name], self.counts[name]
        if name not in self.weighed and (routed.again or name not in self._again):
            self._add(name, routed, routed.rows(x.detach()).float())

    def _add(self, name: str, routed: Routed, rows: torch.Tensor) -> None:
        numbers = routed.numbers
        if name not in self.sums:
            self.sums[name] = self.spill.zeros(rows, routed.count, rows.shape[1], rows.shape[1])
            self.counts[name] = torch.zeros(routed.count, dtype=torch.int64)
        counts = torch.bincount(numbers, minlength=routed.count)
        for expert in counts.nonzero().flatten().tolist():
            own = rows[numbers == expert]
            self.sums[name][expert].addmm_(own.T, own)
        self.counts[name] += counts.cpu()

    def backward(self, name: str, routed: Routed, x: torch.Tensor, gradient: torch.Tensor) -> None:
        """Add the tokens of a weighed product."""
        if name in self.weighed:
            lengths = routed.rows(gradient).float().norm(dim=1, keepdim=True)
            self._units[name] = self._units.get(name) or unit_of(lengths)
            self._add(name, routed, routed.rows(x.detach()).float() * (lengths * (self._units[name] or 1.0)))

    def means(self, name: str) -> torch.Tensor:
        """Return the means in place of the sums; an expert without tokens gets the mean of all tokens."""
        sums, counts = self.sums[name], self.counts[name]
        if name in self._divided:
            return sums
        self._divided.add(name)
        everything = sums.sum(dim=0) / counts.sum().clamp_min(1)
        for expert, count in enumerate(counts.tolist()):
            sums[expert] = sums[expert] / count if count else everything
        return sums


def shown_everything(curvature: Curvature | None) -> bool:
    """Return whether all experts of a layer were shown all tokens; earlier sessions have them as their counts."""
    counts = None if curvature is None else curvature.seen
    return counts is not None and len(counts) > 1 and bool((counts == counts[0]).all()) and counts[0] > 0


def unit_of(lengths: torch.Tensor) -> float:
    """Return a power of two near one part of the sum of ``lengths``, whose squares might vanish; 0 where all are 0."""
    total = float(lengths.sum())
    return 2.0 ** min(-math.frexp(total)[1], 126) if total > 0 else 0.0


def by_expert(rows: torch.Tensor, numbers: torch.Tensor, count: int) -> torch.Tensor:
    """Return the sums ``[count, features]`` of ``rows`` ``[tokens, features]`` by expert."""
    return torch.zeros(count, rows.shape[1], dtype=rows.dtype, device=rows.device).index_add_(0, numbers, rows)


def add_to(sums: dict[str, torch.Tensor], name: str, more: torch.Tensor) -> None:
    """Add a tensor to the sum of that name."""
    sums[name] = sums[name] + more if name in sums else more


def scatter_of(gradients: torch.Tensor) -> torch.Tensor:
    """Return how many squared gradients there are, their sum and their sum of squares, ``[3]``."""
    return torch.stack([gradients.new_tensor(len(gradients)), gradients.sum(), gradients.square().sum()])


def relative_error(scatter: torch.Tensor) -> float:
    """Return the relative standard error of a mean squared gradient by its scatter; NaN for fewer than two."""
    count, total, squares = scatter.tolist()
    if count < 2 or total <= 0:
        return math.nan
    return float(math.sqrt(max(squares - total * total / count, 0.0) * count / (count - 1)) / total)
