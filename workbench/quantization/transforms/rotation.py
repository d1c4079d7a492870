"""Rotation of a model's residual stream and of its attention heads; the matrices: numerics/equivalences/rotation.py.

What folds into the weights without any cost at run time (QuaRot's R1 and R2): norms' scales go into the layers behind
them; embeddings and all layers that write to the stream are followed by ``Q``, all that read it preceded by ``Q^T``;
the values of every attention head and the columns that take them are rotated against each other.  A head that shares
its weight with the embedding gets one of its own.  The inputs of the layers behind the activation function stay as they
are: a rotation there would need work at run time.

What it gains, and where it does not: resources/guide/decisions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from workbench.errors import TransformError
from workbench.models.layer import LayerKind
from workbench.models.tracing import LayerCall, Trace
from workbench.numerics.equivalences.rotation import rotation_matrix
from workbench.numerics.equivalences.scaling import spread
from workbench.planning.plan import KEEP
from workbench.quantization.transforms.cost import inputs_cost, observe, rounding_cost
from workbench.quantization.transforms.folds import Fold, find_folds
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.stream import Stream, find_stream
from workbench.quantization.transforms.transform import FoldReport, Outcome, Setting, non_finite_note

HEAD_SEEDS = 16
"""So many rotations of the heads of one attention are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """Written ``rotation``, ``rotation-7`` for the signs of seed 7, or ``rotation-heads``: the stream stays as it is.

    Where there is curvature, each head's signs are those of ``HEAD_SEEDS`` that cost the rounded layers least, or the
    head stays as it is; and ``rotation`` without a seed leaves the stream alone where rotating it is predicted to cost
    more: rounded weights by the curvature, quantized inputs by what the layers take.
    """

    seed: int | None = None
    heads_only: bool = False

    @property
    def name(self) -> str:
        """The name, with the seed if one was asked for."""
        if self.heads_only:
            return "rotation-heads"
        return "rotation" if self.seed is None else f"rotation-{self.seed}"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Rotate; see the Transform contract."""
        folds = find_folds(setting.trace, draft.summary, tied=True).folds
        stream = Outcome() if self.heads_only else self._rotate_stream(draft, setting, folds)
        done, notes = list(stream.changes), list(stream.notes)
        heads = [fold for fold in folds if fold.layer is not None and fold.heads.numel()]
        if not heads and self.heads_only:
            raise TransformError(
                f"{draft.summary.name} has no attention whose values and outputs could be rotated against each other; "
                "take rotation-heads out of the plan"
            )
        for index, fold in enumerate(heads):
            tensor = draft.non_finite(fold.layers, fold.vectors)
            if tensor is None:
                done.append(self._rotate_best(draft, setting, fold, index + 1))
            else:
                notes.append(non_finite_note(tensor, self.name, (fold.name,)))
        return Outcome(changes=tuple(done), notes=tuple(notes))

    def _rotate_stream(self, draft: Draft, setting: Setting, folds: Sequence[Fold]) -> Outcome:
        norms = {fold.vectors[0]: fold for fold in folds if fold.layer is None and bool(fold.free.all())}
        stream = find_stream(setting.trace, draft.summary, norms)
        tensor = draft.non_finite((*stream.writers, *stream.readers))
        if tensor is not None:
            raise TransformError(
                f"{tensor} holds NaN or infinite values, which a rotation would spread over the whole layer; take "
                "rotation out of the plan, or repair the weight"
            )
        for layer in draft.summary.layers:
            if layer.tied_to is not None:
                draft.untie(layer.name)
        layers, read = (*stream.writers, *stream.readers), stream.readers
        before, plain = predicted_cost(draft, setting, layers, read), draft.copy()
        for name in stream.norms:
            _absorb(draft, norms[name])
        self._rotate(draft, stream, setting.trace)
        after = None if before is None else predicted_cost(draft, setting, layers, read)
        dearer = dearer_by(before, after)
        if dearer and self.seed is None:
            draft.restore(plain)
            untied = "; rotation-heads does as much and keeps tied weights tied" if draft.untied else ""
            note = f"rotation left the residual stream as it is: {dearer} (rotation-0 rotates it{untied})"
            return Outcome(notes=(note,))
        change = FoldReport(
            transform=self.name, source=stream.writers[0], layers=stream.readers, before=before, after=after
        )
        return Outcome(changes=(change,), notes=(f"{self.name}: {dearer}",) if dearer else ())

    def _rotate_best(self, draft: Draft, setting: Setting, fold: Fold, index: int) -> FoldReport:
        """Rotate the heads of one attention by the seed that is predicted to cost least."""
        layers = [name for name in fold.layers if setting.assignments[name].weights != KEEP]
        first = self.seed or 0
        if not layers or not all(name in draft.curvature for name in layers):
            _rotate_heads(draft, fold, first * HEAD_SEEDS + index)
            return FoldReport(transform=self.name, source=fold.name, layers=fold.consumers)
        drafts = [draft.copy() for _ in range(HEAD_SEEDS + 1)]
        for step, each in enumerate(drafts[1:]):
            _rotate_heads(each, fold, HEAD_SEEDS * (first + index) + step)
        costs = [rounding_cost(each, setting.assignments, layers) for each in drafts]
        best = int(np.argmin(costs))
        draft.restore(drafts[best])
        return FoldReport(
            transform=self.name, source=fold.name, layers=fold.consumers, before=costs[0], after=costs[best]
        )

    def _rotate(self, draft: Draft, stream: Stream, trace: Trace) -> None:
        biases = {step.layer: step.others for step in trace.steps if isinstance(step, LayerCall)}
        q = rotation_matrix(stream.width, self.seed or 0)
        for name in stream.readers:
            draft.rotate_columns(name, q)
            draft.inputs.add(name)
        for name in stream.writers:
            if draft.summary.by_name[name].kind is LayerKind.EMBEDDING:
                draft.rotate_columns(name, q)
            else:
                draft.rotate_rows(name, q, biases[name])


def _rotate_heads(draft: Draft, fold: Fold, seed: int) -> None:
    """Rotate the values of each head, and back in the columns that take them, in every copy of the head."""
    q = rotation_matrix(fold.heads.shape[1], seed)
    rows = np.eye(fold.free.numel())
    for head in fold.heads.tolist():
        rows[np.ix_(head, head)] = q
    draft.rotate_rows(fold.name, rows, fold.vectors)
    for name, channels in fold.columns.items():
        draft.rotate_columns(name, copies(channels.numpy(), rows))
        draft.inputs.add(name)


def copies(channels: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Return the rotation of columns whose channels are ``channels``: column ``j`` takes channel ``channels[j]``.

    A channel that several columns take (heads of queries that share one of values) is rotated with the columns of its
    own copy: the n-th column of one channel belongs with the n-th of another.  float64 ``[columns, columns]``.
    """
    counts: dict[int, int] = {}
    which = np.zeros(channels.size, dtype=np.int64)
    for column, channel in enumerate(channels.tolist()):
        which[column] = counts.get(channel, 0)
        counts[channel] = which[column] + 1
    used = channels >= 0
    together = (which[:, None] == which[None]) & used[:, None] & used[None]
    whole: np.ndarray = np.where(together, rotation[np.ix_(channels, channels)], 0.0)
    whole[~used, ~used] = 1.0
    return whole


def predicted_cost(draft: Draft, setting: Setting, names: Sequence[str], read: Sequence[str]) -> float | None:
    """Return the predicted loss of rounding some layers and, with data, of quantizing the inputs of those in ``read``.

    None where one of them has no curvature.
    """
    assignments = setting.assignments
    layers = [name for name in dict.fromkeys(names) if assignments[name].weights != KEEP or assignments[name].inputs]
    if not layers or not all(name in draft.curvature for name in layers):
        return None
    cost = rounding_cost(draft, assignments, layers)
    read = [name for name in read if assignments[name].inputs]
    if read and setting.data is not None:
        statistics = observe(draft.changes().apply(draft.model), setting.data, read, setting.batch_size)
        cost += inputs_cost(draft, assignments, statistics)
    return cost


def dearer_by(before: float | None, after: float | None) -> str | None:
    """Return what to say if the predicted loss grew."""
    if before is None or after is None or not after > before:
        return None
    return f"its rotation raises the predicted loss of rounding from {before:.4g} to {after:.4g}"


def _absorb(draft: Draft, fold: Fold) -> None:
    """Move a norm's whole scale into the layers behind it."""
    (name, *biases) = fold.vectors
    if biases:
        raise TransformError(f"the norm {name} adds a bias, which a rotation cannot pass; take it out of the plan")
    scale = draft.vector(name) + fold.offset
    for layer, channels in fold.columns.items():
        draft.multiply_columns(layer, spread(scale, channels))
    draft.others[name] = torch.full_like(scale, 1.0 - fold.offset)
