"""GPTQ: round one column after another, and let the columns not yet rounded take up the error.

Frantar, Ashkboos, Hoefler, Alistarh, "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
Transformers", ICLR 2023.  Objective, for a weight ``W`` ``[rows, columns]`` and inputs with second moment
``A = E[x x^T]`` ``[columns, columns]``: the ``Q`` on the scheme's grid with the least ``tr((W - Q) A (W - Q)^T)``, the
mean squared error of the layer's output.  The Hessian of every row is the same, so all rows go at once.

Beyond the paper:

- The units that have parameters of their own (groups) are taken in the order of their inputs' energy, and so are the
  columns inside each.  This is activation ordering that keeps every group together: parameters are fitted to the
  weights as the feedback has changed them, and nothing needs to be stored to find a column's group.
- The range of each group is chosen by running the feedback with the most promising ranges and keeping, for each
  row, the one with the least error.
- Coordinate descent over all columns afterwards (as in QuantEase, Behdin et al., arXiv 2309.01885): each weight moves
  to the value of the grid that is best given all others.  The objective never rises.

- Tokens count as their squared gradients ``|d|^2`` do where the calibration has those, so that ``A = E[|d|^2 x x^T]``
  (GuidedQuant, Kim et al., arXiv 2505.07004, with one group of outputs), in the trace of ``E[x x^T]``.
- Where the calibration has the whole ``G = E[d d^T]`` of the gradients at the outputs, the descent is that of
  ``tr(G D A D^T)``: see :mod:`workbench.numerics.rounding.coupled`; it starts at what the feedback left.
- Schemes whose groups share something that is stored once (NVFP4's factor of the tensor; the mean and the maxima of the
  scales of ``-dq``, whose blocks of 256 scales run across rows) are fitted once, to the original weights: another scale
  for a later group would move the shared part, and with it groups that are rounded already.  A per-tensor scheme has
  nothing to refit.  Everything else (order, feedback, both descents) is as for other schemes.

- GPTAQ (``gptq-sequential`` in plans; Li et al., arXiv 2504.02692) takes the inputs ``x'`` that the layer gets from the
  layers already quantized, and aims at the outputs that it had before, ``E|W x - Q x'|^2``.  With ``A' = E[x' x'^T]``
  and ``C = E[x x'^T]`` that is the same problem for ``A'`` and the target ``W + W (C - A') H'^-1``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.numerics.bands import row_tiles
from workbench.numerics.rounding.algorithm import Context, Need, Rounded
from workbench.numerics.rounding.columns import compiled_columns
from workbench.numerics.rounding.coupled import descend_coupled
from workbench.numerics.rounding.hessian import Hessian, hessian
from workbench.numerics.rounding.parameter_parts import is_plain, join_columns, stack_rows, take_rows, unit_width
from workbench.numerics.rounding.range_search import best_ranges
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

BLOCK = 128
"""Columns whose errors are fed back one by one before all later columns take them up in one product."""

BAND, SQUARES = 1 << 24, 4
"""Weights of a table that are rounded at once, whose intermediates take some ten times their bytes; at least so many
times as many rows as columns, beside which the feedback, computed for each band, costs little."""

TRIAL_COLUMNS = 640
"""Wider units get the range that the clip search weighted by what feedback cannot take up finds, without a trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gptq:
    """``damping`` is the share of the mean of diag A that is added to it, ``trials`` how many ranges of each group are
    tried, ``sweeps`` how often coordinate descent goes over all columns."""

    sequential: bool = False
    damping: float = 0.01
    trials: int = 8
    sweeps: int = 4

    @property
    def name(self) -> str:
        """``gptq``, or ``gptq-sequential`` for GPTAQ."""
        return "gptq-sequential" if self.sequential else "gptq"

    @property
    def needs(self) -> Need:
        """The second moment of the inputs: of the model as it is, or with all earlier layers quantized."""
        return Need.SEQUENCE if self.sequential else Need.SECOND_MOMENT

    def quantize(self, weight: torch.Tensor, scheme: Scheme, context: Context) -> Rounded:
        """Return the weight on the grid of any scheme; convolutions unfolded, with a moment for each group.

        A large table is taken in bands of rows where none has anything to do with another.
        """
        import torch

        rows, columns = scheme.matrix_shape(weight)
        band = max(BAND, SQUARES * columns**2)
        if rows * columns <= band or not _apart(weight, scheme, context):
            return self._quantized(weight, scheme, context)
        parts, values = [], torch.empty(rows, columns, device=weight.device)
        for part in row_tiles(rows, columns, elements=band):
            own = None if context.rows is None else context.rows[part]
            rounded = self._quantized(weight[part], scheme, replace(context, rows=own))
            values[part] = rounded.values
            parts.append(rounded.parameters)
        return Rounded(parameters=stack_rows(parts), values=values)

    def _quantized(self, weight: torch.Tensor, scheme: Scheme, context: Context) -> Rounded:
        assert context.second_moment is not None
        shape = (weight.shape[0], weight.shape[1])
        weight = weight.detach().float()
        whole = scheme.fit(weight)
        curved = hessian(context.second_moment.to(weight.device), shape, self.damping, context.samples)
        if context.cross_moment is not None and context.cross_moment is not context.second_moment:
            weight = _target(weight, curved, context.second_moment, context.cross_moment)
        width = unit_width(scheme, whole, shape)
        stored, alone = weight, min(whole.width, shape[1])
        weight = _without_dead(weight, curved, alone, apart=width == alone)
        if width is None:
            rounded = _static(weight, curved, scheme, context.rows)
            rounded = _descend(weight, curved, scheme, rounded, self.sweeps)
        else:
            rounded = _progressive(weight, curved, scheme, width, self.trials)
        values = None
        if context.outputs is not None and curved.groups == 1:
            values = descend_coupled(
                weight, rounded.values, scheme, rounded.parameters, curved.matrix[0], context.outputs, self.sweeps
            )
        if values is None:
            values = (rounded if width is None else _descend(weight, curved, scheme, rounded, self.sweeps)).values
        if bool(curved.dead.any()):  # what no input reaches comes as near as the range of the others lets it
            dead = curved.dead.repeat_interleave(shape[0] // curved.groups, dim=0)
            values = scheme.round(stored, rounded.parameters).where(dead, values)
        return Rounded(parameters=rounded.parameters, values=values)


def _apart(weight: torch.Tensor, scheme: Scheme, context: Context) -> bool:
    """Return whether each row has parameters of its own, the moment of all others, and errors that no other meets."""
    moment = context.second_moment
    one = moment is not None and (moment.dim() == 2 or len(moment) == 1)
    return one and context.outputs is None and scheme.rows_apart and len(scheme.fit(weight[:2]).scale) == 2


def _without_dead(weight: torch.Tensor, curved: Hessian, width: int, *, apart: bool) -> torch.Tensor:
    """Return the weight with 0 in dead columns, as the paper's code has it: they must not widen what is shared.

    A group without live columns stays as it is if it is fitted ``apart`` from others.
    """
    import torch

    dead = curved.dead
    if apart:
        whole = [part.all(dim=1, keepdim=True).expand_as(part) for part in torch.split(dead, width, dim=1)]
        dead = dead & ~torch.cat(whole, dim=1)
    return _split(weight, curved.groups).masked_fill(dead[:, None], 0.0).reshape(weight.shape)


def _target(weight: torch.Tensor, curved: Hessian, moment: torch.Tensor, cross_moment: torch.Tensor) -> torch.Tensor:
    """Return the weight whose outputs on the inputs as they are now come closest to the old ones on the old inputs."""
    import torch

    columns = weight.shape[1]
    change = (cross_moment - moment).to(weight).reshape(-1, columns, columns).double()
    pulled = _split(weight, curved.groups).double() @ change
    moved: torch.Tensor = torch.linalg.solve(curved.matrix.double(), pulled, left=False)
    return weight + moved.reshape(weight.shape).float()


def _progressive(weight: torch.Tensor, curved: Hessian, scheme: Scheme, width: int, trials: int) -> Rounded:
    """Fit each unit to the weights as the feedback has changed them, the unit with the strongest inputs first."""
    import torch

    columns = weight.shape[1]
    energy = curved.diagonal.sum(dim=0).cpu()  # places are read one by one
    units = [torch.arange(start, min(start + width, columns)) for start in range(0, columns, width)]
    falling = [unit[energy[unit].argsort(descending=True, stable=True)] for unit in units]
    units = sorted(falling, key=lambda unit: -float(energy[unit].mean()))
    order = torch.cat(units)
    feedback = curved.feedback(order)
    left = _split(weight[:, order], curved.groups).clone()
    values = torch.empty_like(weight)
    parameters: dict[int, Parameters] = {}
    start = 0
    for unit in units:
        stop = start + len(unit)
        inner = feedback[:, start:stop, start:stop]
        natural = unit.argsort()
        fitted = _candidates(left[..., start:stop].flatten(0, 1)[:, natural], inner, natural, scheme, trials)
        best, rounded, errors = _try(left[..., start:stop], inner, unit - unit.min(), scheme, fitted)
        parameters[int(unit.min())] = best
        values[:, unit] = rounded.flatten(0, 1)
        left[..., stop:] -= errors @ feedback[:, start:stop, stop:]
        start = stop
    return Rounded(parameters=join_columns([parameters[first] for first in sorted(parameters)]), values=values)


def _split(matrix: torch.Tensor, groups: int) -> torch.Tensor:
    return matrix.reshape(groups, -1, matrix.shape[-1])


def _candidates(
    weight: torch.Tensor, feedback: torch.Tensor, natural: torch.Tensor, scheme: Scheme, trials: int
) -> Parameters:
    """Return the parameters to be tried for a unit, those of as many matrices one below the other.

    ``weight`` is ``[rows, width]`` with columns in their natural order, which ``natural`` brings ``feedback`` into.
    """
    rows, width = weight.shape
    left_over = feedback.diagonal(dim1=1, dim2=2)[:, natural].square().reciprocal()
    if is_plain(scheme, scheme.fit(weight), rows) and width <= TRIAL_COLUMNS:
        return best_ranges(weight, scheme, left_over, keep=trials)
    spread = left_over.repeat_interleave(rows // left_over.shape[0], dim=0)
    fits = [scheme.fit(weight, spread, clip_search=True)]
    if width <= TRIAL_COLUMNS:
        fits += [scheme.fit(weight), scheme.fit(weight, spread)]
    return stack_rows(fits)


def _try(
    left: torch.Tensor, feedback: torch.Tensor, local: torch.Tensor, scheme: Scheme, fitted: Parameters
) -> tuple[Parameters, torch.Tensor, torch.Tensor]:
    """Run the feedback inside a unit with all candidates, and return the best of every row.

    ``left`` is ``[groups, r, width]``; ``local[j]`` the place of column ``j`` in the unit.  Returns its parameters, the
    rounded values and the errors divided by ``U_jj``, both of the shape of ``left``.
    """
    import torch

    groups, run = left.shape[:2]
    count = fitted.scale.shape[0] // (groups * run)
    tried = left.expand(count, *left.shape).clone()
    rounded, errors = _feed_back(tried, feedback, scheme, fitted, local)
    best = errors.square().sum(dim=-1).flatten(1).argmin(dim=0)
    rows = torch.arange(groups * run, device=left.device)

    def of_best(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.flatten(1, 2)[best, rows].reshape(left.shape)

    return take_rows(fitted, best * (groups * run) + rows), of_best(rounded), of_best(errors)


def _feed_back(
    left: torch.Tensor, feedback: torch.Tensor, scheme: Scheme, parameters: Parameters, places: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Round ``left`` ``[..., groups, r, width]`` column by column, in place; return values and errors over ``U_jj``.

    ``places[j]`` is the column of ``parameters`` that column ``j`` has.
    """
    import torch

    width = left.shape[-1]
    values, errors = torch.empty_like(left), torch.empty_like(left)
    fast = compiled_columns(scheme, parameters, left.flatten(0, -2)) if len(feedback) == 1 else None
    for start in range(0, width, BLOCK):
        stop = min(start + BLOCK, width)
        if fast is not None:
            block = left[..., start:stop]
            both = fast.feed_back(block.flatten(0, -2), feedback[0, start:stop, start:stop], places[start:stop])
            values[..., start:stop], errors[..., start:stop] = (each.reshape(block.shape) for each in both)
        else:
            for j in range(start, stop):
                values[..., j] = _nearest(scheme, parameters, int(places[j]), left[..., j])
                errors[..., j] = (left[..., j] - values[..., j]) / feedback[:, j, j, None]
                left[..., j:stop] -= errors[..., j, None] * feedback[:, j, None, j:stop]
        left[..., stop:] -= errors[..., start:stop] @ feedback[:, start:stop, stop:]
    return values, errors


def _nearest(scheme: Scheme, parameters: Parameters, column: int, values: torch.Tensor) -> torch.Tensor:
    return scheme.round(values.reshape(-1, 1), parameters.columns(column, column + 1)).reshape(values.shape)


def _static(weight: torch.Tensor, curved: Hessian, scheme: Scheme, rows: torch.Tensor | None) -> Rounded:
    """Fit once to the original weights: with and without a search weighted by what feedback cannot take up.

    For schemes where rows or all groups share a parameter.  ``rows`` weighs the outputs against each other.
    """
    import torch

    order = curved.diagonal.sum(dim=0).cpu().argsort(descending=True, stable=True)
    feedback = curved.feedback(order)
    left_over = feedback.diagonal(dim1=1, dim2=2)[:, order.argsort()].square().reciprocal()
    outputs = torch.ones(len(weight)) if rows is None else rows.float()
    importance = outputs[:, None].to(weight.device) * left_over.repeat_interleave(len(weight) // curved.groups, dim=0)
    best: tuple[float, Rounded] | None = None
    for fitted in (scheme.fit(weight), scheme.fit(weight, importance, clip_search=True)):
        left = _split(weight[:, order], curved.groups).clone()
        rounded, errors = _feed_back(left, feedback, scheme, fitted, order)
        loss = float(errors.square().sum(dim=-1).flatten() @ outputs.to(weight.device))
        if best is None or loss < best[0]:
            best = loss, Rounded(parameters=fitted, values=rounded.flatten(0, 1)[:, order.argsort()])
    assert best is not None
    return best[1]


def _descend(weight: torch.Tensor, curved: Hessian, scheme: Scheme, start: Rounded, sweeps: int) -> Rounded:
    """Move each weight to its best value given all others, ``sweeps`` times over, until none moves."""
    order = curved.diagonal.sum(dim=0).cpu().argsort(descending=True, stable=True)
    values = _split(start.values[:, order], curved.groups).clone()
    errors = values - _split(weight[:, order], curved.groups)
    matrix = curved.matrix[:, order][:, :, order]
    fast = compiled_columns(scheme, start.parameters, weight) if curved.groups == 1 else None
    for _ in range(sweeps):
        moved = False
        for first in range(0, len(order), BLOCK):
            part = slice(first, first + BLOCK)
            slopes, local = errors @ matrix[:, :, part], matrix[:, part, part]
            if fast is not None:
                values[0, :, part], moves = fast.descend(values[0, :, part], slopes[0], local[0], order[part])
            else:
                moves = _moves(values[..., part], slopes, local, scheme, start.parameters, order[part])
            errors[..., part] += moves
            moved = moved or bool(moves.any())
        if not moved:
            break
    flat = values.flatten(0, 1)[:, order.argsort()]
    return Rounded(parameters=start.parameters, values=scheme.round(flat, start.parameters))


def _moves(
    values: torch.Tensor, slopes: torch.Tensor, local: torch.Tensor, scheme: Scheme, parameters: Parameters,
    columns: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Move the ``values`` ``[groups, r, n]`` of some ``columns`` in place, and return how far each moved."""
    import torch

    moves = torch.empty_like(values)
    for j, column in enumerate(columns.tolist()):
        target = values[..., j] - slopes[..., j] / local[:, j, j, None]
        moves[..., j] = _nearest(scheme, parameters, column, target) - values[..., j]
        values[..., j] += moves[..., j]
        slopes[..., j:] += moves[..., j, None] * local[:, j, None, j:]
    return moves
