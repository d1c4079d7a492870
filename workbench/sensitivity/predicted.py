"""The predicted loss of every cell: Kronecker form for token models, directional form for correlated positions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
import torch

from workbench.errors import MissingResultError
from workbench.measurement.gradients import GradientPass
from workbench.memory import Spill, give_back
from workbench.models.data.batches import Data, tappable, units_of
from workbench.models.data.even_samples import EvenSamples
from workbench.models.layer import Layer, LayerKind
from workbench.models.model import Model
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature, predicted_loss, predicted_loss_full
from workbench.numerics.rounding import Need
from workbench.numerics.rounding import algorithm as find_algorithm
from workbench.sensitivity.differences import Differences, cell_bytes
from workbench.sensitivity.directional_losses import DIFFERENCE_BYTES, directional_losses
from workbench.sensitivity.embedding_rows import looked_up
from workbench.sensitivity.interaction import relative_error
from workbench.sensitivity.margins import margin_noise
from workbench.sensitivity.rerouting import Rerouting
from workbench.sensitivity.scoring import Row, Scoring, Sloped
from workbench.sensitivity.shrinkage import shrunk
from workbench.sensitivity.stacked_rounding import in_groups, rounded_cells

REPEATED_CELLS = 1 << 21
"""The most weights of a layer whose samples' gradients are formed because it is used more than once: 8 MB for each.

Larger ones are tables of large vocabularies, where few tokens are both looked up and likely.
"""

UNKNOWN = ("python_module", "exported_program", "onnx")
"""Sources of networks of any architecture: a few samples choose between the forms there."""

COMPARED, POSITIONS, FORMS_APART = 64, 1 << 12, 1.25
"""So many samples choose, or as many as have so many positions; the forms disagree where a scheme's losses differ by
this factor and two standard errors."""


class Form(StrEnum):
    """How a layer's loss is predicted."""

    KRONECKER = "kronecker"
    DIRECTIONAL = "directional"


def form_of(summary: ModelSummary, layer: Layer, routed: bool = False, paired: bool = False) -> Form:
    """Return the form for a layer: Kronecker where every position has a label of its own and a tap sees the inputs.

    A weight that one pass uses several times (a shared module, an embedding that is the head too) has errors that are
    correlated: the directional form, as long as a sample's gradient is small enough to form.  ``routed``: experts whose
    products a tap sees; each of their tokens has a label of its own.  ``paired``: an encoder-decoder, where positions
    of the encoder have none, and all of them act on each label.
    """
    per_token, owner = summary.output.per_token, layer.tied_to or layer.name
    calls = sum(each.calls for each in summary.layers if owner in (each.name, each.tied_to))
    if (calls > 1 or paired) and layer.parameters <= REPEATED_CELLS:
        return Form.DIRECTIONAL
    plain = layer.kind in (LayerKind.LINEAR, LayerKind.EMBEDDING) or routed
    return Form.KRONECKER if per_token and plain else Form.DIRECTIONAL


def kronecker_rows(
    scoring: Scoring, cells: Mapping[str, Sequence[str]], rerouting: Rerouting | None = None, share: float = 1.0
) -> Iterator[Row]:  # fmt: skip
    """Yield (layer, scheme to loss); a tied layer's loss is added to its owner's, whose weight it shares.

    ``share`` of the progress is these rows', by weights and schemes: one embedding may be a fifth of a model.
    An algorithm that sees the inputs leaves errors that are correlated along a row; those need the whole of A.
    """
    model, curvature = scoring.model, scoring.curvature
    correlated = find_algorithm(scoring.algorithm).needs is not Need.NOTHING
    tied: dict[str, list[str]] = {}
    for layer in model.summary.layers:
        tied.setdefault(layer.tied_to or layer.name, []).append(layer.name)
    total = sum(model.summary.by_name[name].parameters * len(schemes) for name, schemes in cells.items())
    done = 0
    for weights, by_scheme in rounded_cells(model, cells, scoring.algorithm, curvature):
        losses: dict[str, dict[str, float]] = {name: {} for name in weights}
        size = sum(model.summary.by_name[name].parameters for name in weights)
        for scheme, matrices in by_scheme:
            done += size
            scoring.progress(share * done / total, f"scoring {next(iter(weights))} as {scheme}")
            for name, values in matrices.items():
                uses = [curvature[member] for member in tied[name] if member in curvature]
                losses[name][scheme] = sum(_loss(values, weights[name], use, correlated) for use in uses)
                if rerouting is not None:
                    losses[name][scheme] += scoring.reroute(name, scheme, rerouting.loss(name, values - weights[name]))
            del matrices, values  # before the next scheme's are made
        yield from losses.items()


def _loss(values: torch.Tensor, weight: torch.Tensor, use: Curvature, correlated: bool) -> float:
    """Return what rounding ``weight`` to ``values`` costs where its inputs are those of ``use``."""
    if correlated and use.full is not None:
        return predicted_loss_full(values - weight, use)
    return predicted_loss(values, use, weight)


def directional_rows(
    scoring: Scoring, data: Data, cells: Mapping[str, Sequence[str]], rerouting: Rerouting | None = None,
    start: float = 0.0,
) -> Iterator[Sloped]:  # fmt: skip
    """Yield (layer, scheme to loss, scheme to slopes), in as many passes over the data as the differences ask for.

    The progress goes on from ``start``.
    """
    model = scoring.model
    rows = looked_up(model, data, tuple(cells), scoring.batch_size) if rerouting is None else {}
    counts = {name: len(each) for name, each in rows.items()}
    chunks = list(in_groups(model.summary, cells, DIFFERENCE_BYTES, rows=counts, cell_bytes=cell_bytes))
    for done, chunk in enumerate(chunks):
        part = {name: cells[name] for name in chunk}
        changes = _changes(scoring, part, rows)

        def report(fraction: float, text: str, partial: object = None, done: int = done) -> None:
            scoring.progress(start + (1 - start) * (done + fraction) / len(chunks), text)

        losses_of = directional_losses(
            model, changes, data, batch_size=scoring.batch_size, seed=scoring.seed, progress=report
        )
        noise = {} if rerouting is None else margin_noise(
            model, changes, data, rerouting.routers, batch_size=scoring.batch_size, seed=scoring.seed
        )  # fmt: skip
        for name in chunk:
            layer = losses_of[name]
            slopes = {} if layer.slopes is None else dict(zip(cells[name], layer.slopes.cpu().numpy(), strict=True))
            losses = dict(zip(cells[name], layer.losses.tolist(), strict=True))
            if slopes:
                separable = _separable(changes[name], scoring.curvature.get(name))
                losses = shrunk(losses, dict(zip(cells[name], separable, strict=True)), slopes, len(data))
            if rerouting is not None:
                for number, scheme in enumerate(cells[name]):
                    cost = rerouting.loss_of(*noise[name][:, :, number].tolist())
                    losses[scheme] += scoring.reroute(name, scheme, cost)
            yield name, losses, slopes


def _separable(changes: Differences, curvature: Curvature | None) -> list[float]:
    """Return the losses of all schemes in the Kronecker form; where its moments are not known, the squared errors."""
    known = curvature is not None and curvature.has_gradients and curvature.rows.any()
    losses = []
    for change in (values.float() for values in changes.values):
        if known and curvature is not None:
            kept = curvature if changes.rows is None else replace(curvature, rows=curvature.rows[changes.rows.numpy()])
            losses.append(predicted_loss(change, kept))
        else:
            losses.append(float(change.square().sum(dtype=torch.float64)))
    changes.put_away()
    return losses


def _changes(
    scoring: Scoring, cells: Mapping[str, Sequence[str]], rows: Mapping[str, torch.Tensor]
) -> dict[str, Differences]:
    """Return what each scheme changes of each layer's weight; of a layer in ``rows`` (int64) only of those rows."""
    changes: dict[str, Differences] = {}
    spill = Spill.in_files(DIFFERENCE_BYTES)
    for weights, by_scheme in rounded_cells(scoring.model, cells, scoring.algorithm, scoring.curvature, rows):
        for name, weight in weights.items():
            changes[name] = Differences.empty(len(cells[name]), weight, rows.get(name), spill)
        for number, (_, matrices) in enumerate(by_scheme):
            for name, values in matrices.items():
                changes[name].values[number] = values - weights[name].detach()
        for name in weights:
            changes[name].put_away()
    give_back()  # what rounding took
    return changes


def split_forms(scoring: Scoring, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the layers to be predicted by the Kronecker and by the directional form.

    Without data the Kronecker form serves wherever there is curvature, and other layers stay open.  Raises
    MissingResultError if nothing can be predicted at all.
    """
    summary, data = scoring.model.summary, scoring.dataset
    mixtures = scoring.model.routed
    tapped = {layer.name for layer in tappable(scoring.model)} | mixtures.keys()
    paired = scoring.model.inputs.has_decoder
    separable = {n for n in names if form_of(summary, summary.by_name[n], n in mixtures, paired) is Form.KRONECKER}
    known = {n for n in names if n in scoring.curvature and scoring.curvature[n].has_gradients}
    flat = {n for n in known if data is not None and not scoring.curvature[n].rows.any()}  # a loss of 0 may be wrong
    known -= flat
    kronecker = [n for n in names if n in known and (data is None or n in separable)]
    apart = _disagreeing(scoring, kronecker)
    kronecker = [n for n in kronecker if n not in apart]
    unseen = [n for n in names if n in separable and n in tapped and n not in scoring.curvature]
    elsewhere = flat | apart | (_without_gradients(scoring, data, unseen) if data is not None and unseen else set())
    reached = [n for n in names if n in elsewhere or (n not in kronecker and not (n in separable and n in tapped))]
    if not kronecker and (data is None or not reached) and names:
        raise MissingResultError(
            "a predicted loss needs the curvature of a calibration, or calibration data for convolutions and weights "
            "inside larger modules; calibrate with curvature first, or use the metric weight_error, which needs neither"
        )
    return kronecker, reached if data is not None else []


def _without_gradients(scoring: Scoring, data: Data, names: Sequence[str]) -> set[str]:
    """Return the layers that the first sample runs through without gradients, which a calibration cannot see: those of
    reversible blocks run once more on the way back (Reformer)."""
    model, found = scoring.model, set[str]()

    def tap(name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        if not torch.is_grad_enabled():
            found.add(name)

    batch = model.on_device(next(data.batches(model.inputs.batch or 1)))
    GradientPass(model).run(batch, 0, scoring.seed, tap, None, layers=names, proceed=lambda output: False)
    return found


def samples_compared(model: Model, data: Data) -> int:
    """Return how many samples of ``data`` choose between the forms."""
    positions = max(units_of(next(data.batches(model.inputs.batch or 1)), model.summary), 1)
    return min(len(data), COMPARED, -(-POSITIONS // positions))


def _disagreeing(scoring: Scoring, names: Sequence[str]) -> set[str]:
    """Return those of ``names`` whose Kronecker form is not that of a few samples, in networks of UNKNOWN sources.

    Positions of an encoder that others attend to, or of which a mean is taken, have no label each; and rounding errors
    that add up over inputs of one sign cost what no diagonal tells.
    """
    model, data = scoring.model, scoring.dataset
    correlated = find_algorithm(scoring.algorithm).needs is not Need.NOTHING  # by the whole second moment, then
    if data is None or correlated or model.summary.source.kind not in UNKNOWN:
        return set()
    table = scoring.table
    scored = {name for name in names if np.isfinite(table.score[table.row[name]]).any()}  # in the form that they have
    small = [name for name in names if model.summary.by_name[name].parameters <= REPEATED_CELLS and name not in scored]
    cells, apart = dict.fromkeys(small, table.schemes), {name for name in scored if name in scoring.slopes}
    part = EvenSamples(data, samples_compared(model, data), model.inputs.batch)
    kronecker = dict(kronecker_rows(scoring, cells, share=0.0))
    for chunk in in_groups(model.summary, cells, DIFFERENCE_BYTES, cell_bytes=cell_bytes):
        changes = _changes(scoring, {name: cells[name] for name in chunk}, {})
        found = directional_losses(model, changes, part, batch_size=scoring.batch_size, seed=scoring.seed)
        for name, slopes in ((name, found[name].slopes) for name in chunk):
            if slopes is not None:
                own, others = found[name].losses.numpy(), np.array([*kronecker[name].values()])
                errors = [relative_error({"": each}, len(part)) for each in slopes.cpu().numpy()]
                with np.errstate(divide="ignore", invalid="ignore"):
                    beyond = np.abs(np.log(own / others)) > math.log(FORMS_APART) + 2 * np.array(errors)
                apart.update([name] if beyond.any() else ())
    return apart
