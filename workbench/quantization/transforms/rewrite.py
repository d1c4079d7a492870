"""The rewrite of a model: the tensors that it replaces, and the draft of it, which keeps the curvature in step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any

import numpy as np
import torch

from workbench.measurement.second_moments import TRANSFORM_BYTES, SecondMoments
from workbench.models.model import Model
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.numerics.equivalences.rotation import BlockRotation
from workbench.numerics.equivalences.scaling import spread
from workbench.quantization.transforms.folds import Fold


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewrittenTensors:
    """Tensors that stand for a model's own: ``weights`` (layer to matrix of outputs x inputs) and ``others`` (norms and
    biases by name); ``untied`` layers own their weight from now on, and the inputs of ``rotated`` ones are rotated
    while the model runs, in blocks of so many features."""

    weights: Mapping[str, torch.Tensor] = field(default_factory=dict)
    others: Mapping[str, torch.Tensor] = field(default_factory=dict)
    untied: tuple[str, ...] = ()
    rotated: Mapping[str, int] = field(default_factory=dict)

    def apply(self, model: Model) -> Model:
        """Return the view of ``model`` with these tensors."""
        if self.untied:
            model = model.untied(self.untied)
        if self.rotated:
            model = model.with_rotations({name: BlockRotation(block) for name, block in self.rotated.items()})
        return model.with_others(self.others).with_weights(self.weights) if self.weights or self.others else model

    def stored(self, summary: ModelSummary, quantized: Collection[str]) -> RewrittenTensors:
        """Return the tensors of all but the ``quantized`` layers, each in the dtype that the model's file has."""
        dtypes = {tensor.name: tensor.dtype for tensor in summary.others}
        weights = {
            name: weight.to(getattr(torch, summary.by_name[name].dtype))
            for name, weight in self.weights.items() if name not in quantized
        }  # fmt: skip
        others = {name: tensor.to(getattr(torch, dtypes[name])) for name, tensor in self.others.items()}
        return replace(self, weights=weights, others=others)


@dataclass(slots=True, kw_only=True, eq=False)
class Draft:
    """The model so far rewritten; the only mutable object here, alive while a plan's transforms are carried out.

    Its tensors lie on the host, as the curvature does, which is kept in step with the weights.  ``inputs`` collects the
    layers whose input has changed, ``folded`` the batch norms that change nothing any more, ``rotated`` the layers
    whose inputs are rotated while the model runs, with the size of the blocks.
    """

    model: Model
    summary: ModelSummary
    curvature: dict[str, Curvature]
    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    others: dict[str, torch.Tensor] = field(default_factory=dict)
    untied: tuple[str, ...] = ()
    inputs: set[str] = field(default_factory=set)
    folded: set[str] = field(default_factory=set)
    rotated: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(model: Model, curvature: Mapping[str, Curvature]) -> Draft:
        """Begin with the model as it is."""
        known, beyond = curvature.bounded() if isinstance(curvature, SecondMoments) else (dict(curvature), ())
        note = (
            f"the second moments of {len(beyond)} layers, from {beyond[0] if beyond else ''} on, are beyond "
            f"{TRANSFORM_BYTES / 2**30:g} GB: transforms and rounding take their diagonal, the mean squares of inputs"
        )
        return Draft(model=model, summary=model.summary, curvature=known, notes=(note,) if beyond else ())

    def copy(self) -> Draft:
        """Return a draft that goes its own way from here; tensors are shared, as they are never written into."""
        return replace(
            self, curvature=dict(self.curvature), weights=dict(self.weights), others=dict(self.others),
            inputs=set(self.inputs), folded=set(self.folded), rotated=dict(self.rotated),
        )  # fmt: skip

    def restore(self, earlier: Draft) -> None:
        """Become what ``earlier``, a copy, was."""
        for member in fields(self):
            setattr(self, member.name, getattr(earlier, member.name))

    def weight(self, layer: str) -> torch.Tensor:
        """Return the layer's matrix as it is by now, float32; never write into it."""
        owner = self.summary.by_name[layer].tied_to or layer
        return self.weights[owner] if owner in self.weights else self.model.held_weight(layer).float().cpu()

    def vector(self, name: str) -> torch.Tensor:
        """Return a norm's weight or a bias as it is by now, float32."""
        return self.others[name] if name in self.others else self.model.other(name).float().cpu()

    def untie(self, layer: str) -> None:
        """Give a tied layer a weight of its own; nothing for one that has one."""
        if self.summary.by_name[layer].tied_to is not None:
            self.weights[layer] = self.weight(layer)
            self.summary = self.summary.untied((layer,))
            self.untied = (*self.untied, layer)

    def non_finite(self, layers: Iterable[str], vectors: Iterable[str] = ()) -> str | None:
        """Return the first of these tensors that holds NaN or infinity."""
        tensors = chain(((name, self.weight(name)) for name in layers), ((name, self.vector(name)) for name in vectors))
        return next((name for name, tensor in tensors if not bool(tensor.isfinite().all())), None)

    def scale(self, fold: Fold, factor: torch.Tensor) -> None:
        """Divide the producer's channels by ``factor``, float32 ``[channels]``, > 0, and multiply what takes them.

        Where a norm's weight has fewer bits than float32, the factor becomes what the rounded weight can undo.
        """
        factor = torch.where(fold.free, factor, 1.0)
        if fold.layer is None:
            factor = self._scale_norm(fold, factor)
        else:
            self.weights[fold.layer] = self.weight(fold.layer) / factor[:, None]
            self.scale_rows(fold.layer, factor)
            for name in fold.vectors:
                self.others[name] = self.vector(name) / factor
        for name, channels in fold.columns.items():
            self.multiply_columns(name, spread(factor, channels))

    def _scale_norm(self, fold: Fold, factor: torch.Tensor) -> torch.Tensor:
        name, *biases = fold.vectors
        dtypes = {tensor.name: getattr(torch, tensor.dtype) for tensor in self.summary.others}
        old = self.vector(name) + fold.offset
        new = (old / factor - fold.offset).to(dtypes[name]).float()
        ratio = old / (new + fold.offset)
        exact = fold.free & ratio.isfinite() & (ratio > 0)
        factor = torch.where(exact, ratio, factor)
        self.others[name] = torch.where(fold.free, new, self.vector(name))
        for bias in biases:
            self.others[bias] = self.vector(bias) / factor
        return factor

    def multiply_columns(self, layer: str, factor: torch.Tensor) -> None:
        """Multiply a layer's columns by ``factor``, because its inputs were divided by it.

        ``factor`` is ``[columns]``, or ``[groups, columns]`` for a grouped convolution, whose rows fall into as many
        equal runs.
        """
        groups = factor.reshape(-1, factor.shape[-1])
        old = self.weight(layer)
        self.weights[layer] = (old.reshape(len(groups), -1, old.shape[1]) * groups[:, None]).reshape(old.shape)
        self.inputs.add(layer)
        known = self.curvature.get(layer)
        if known is not None:
            inverse = torch.where(groups == 0, 0.0, 1 / groups).double().numpy()
            full = known.full
            if full is not None:
                scaled = full.reshape(-1, *full.shape[-2:]) * (inverse[:, :, None] * inverse[:, None])
                full = scaled.astype(np.float32).reshape(full.shape)
            squares = (inverse**2).mean(axis=0)
            self.curvature[layer] = replace(known, full=full, **_by_column(known, lambda columns: columns * squares))

    def scale_rows(self, layer: str, factor: torch.Tensor) -> None:
        """Note in the curvature that a layer's outputs were divided by ``factor`` ``[rows]``."""
        old = self.curvature.get(layer)
        if old is not None:
            by = factor.double().numpy()
            outputs = None if old.outputs is None else (old.outputs * by * by[:, None]).astype(np.float32)
            self.curvature[layer] = replace(old, rows=old.rows * by**2, outputs=outputs)

    def rotate_columns(self, layer: str, q: np.ndarray) -> None:
        """Multiply a layer's matrix by ``q``, because its inputs are multiplied by ``q^T`` ``[columns, columns]``.

        Without the full second moment its diagonal is taken for all of it.
        """
        self.weights[layer] = self.weight(layer) @ torch.from_numpy(q).float()
        old = self.curvature.get(layer)
        if old is not None and old.full is None:
            self.curvature[layer] = replace(old, **_by_column(old, lambda columns: (q * q).T @ columns))
        elif old is not None:
            full = q.T @ old.full @ q
            columns = np.diag(full).clip(min=0).copy()
            self.curvature[layer] = replace(old, columns=columns, full=full.astype(np.float32), by_loss=None)

    def rotate_input(self, layer: str, block: int) -> None:
        """Rotate a layer's input while the model runs, in blocks of features, and its columns to match."""
        rotation, old = BlockRotation(block), self.curvature.get(layer)
        self.weights[layer] = rotation(self.weight(layer))
        if old is not None and old.full is None:
            mean = _by_column(old, lambda columns: columns.reshape(-1, block).mean(axis=1).repeat(block))
            self.curvature[layer] = replace(old, **mean)
        elif old is not None:
            full = rotation(rotation(torch.from_numpy(old.full)).T).T.numpy()
            self.curvature[layer] = replace(old, columns=np.diag(full).clip(min=0).copy(), full=full, by_loss=None)
        self.rotated[layer] = block
        self.inputs.add(layer)

    def rotate_rows(self, layer: str, q: np.ndarray, biases: Iterable[str]) -> None:
        """Multiply a layer's outputs, its matrix and its ``biases``, by the orthogonal ``q^T`` ``[rows, rows]``."""
        matrix = torch.from_numpy(q).float().T
        self.weights[layer] = matrix @ self.weight(layer)
        self.others |= {name: matrix @ self.vector(name) for name in biases}
        old = self.curvature.get(layer)
        if old is not None:
            outputs = None if old.outputs is None else (q.T @ old.outputs @ q).astype(np.float32)
            self.curvature[layer] = replace(old, rows=(q * q).T @ old.rows, outputs=outputs)

    def changes(self) -> RewrittenTensors:
        """Return what was replaced."""
        return RewrittenTensors(
            weights=dict(self.weights), others=dict(self.others), untied=self.untied, rotated=dict(self.rotated)
        )


def _by_column(known: Curvature, change: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    """Return what weighs the columns, changed."""
    by_loss = None if known.by_loss is None else change(known.by_loss)
    return {"columns": change(known.columns), "by_loss": by_loss}
