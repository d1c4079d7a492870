"""Reconstruction: how far each quantized weight of the plan lies from the floating-point weight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.numerics.formats import parse_scheme
from workbench.numerics.range_error import decibels
from workbench.planning.plan import resolve
from workbench.progress import part_of
from workbench.session.calibrated_ranges import identity
from workbench.session.results import StepResult
from workbench.session.session import Session
from workbench.steps.quantize import quantize
from workbench.steps.requirements import PLAN_CALIBRATED, QUANTIZES, with_moments
from workbench.steps.step import Context, Step, plan_name

if TYPE_CHECKING:
    import torch

NAME = "reconstruction"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructionOptions:
    """Nothing to choose: the session's plan decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """One quantized weight against the weight that was rounded, after the plan's transforms.

    ``sqnr`` is ``10 log10(|W|^2 / |W - W'|^2)`` in dB (infinite where nothing was lost), ``largest`` the largest error
    over the largest weight, ``zeros`` the share of weights that became 0.
    """

    layer: str
    scheme: str
    sqnr: float
    largest: float
    zeros: float


def reconstructions(session: Session) -> tuple[Reconstruction, ...]:
    """Return what the session stores; empty where the step has not run on the session's current plan."""
    result = session.results.get(NAME)
    if result is None or result.facts["plan"] != identity(session, session.plan):
        return ()
    return result.rows(Reconstruction)


def _run(context: Context, options: ReconstructionOptions) -> StepResult:
    session, model = context.session, context.model()
    quantized = quantize(model, session.plan, session=session, progress=part_of(context.progress, 0.0, 0.9))
    rewritten, assignments = quantized.rewritten(model), resolve(session.plan, quantized.summary.layers)
    rows: list[Reconstruction] = []
    for name, stored in quantized.tensors.items():
        context.progress(0.9 + 0.1 * len(rows) / len(quantized.tensors), f"comparing {name}")
        decoded = parse_scheme(stored.scheme).decode(stored).to(model.device)
        rows.append(_reconstruction(name, assignments[name].weights, rewritten.weight(name), decoded))
    return StepResult.of(Reconstruction, rows, plan=identity(session, session.plan), plan_name=session.plan.name)


def _reconstruction(layer: str, scheme: str, weight: torch.Tensor, decoded: torch.Tensor) -> Reconstruction:
    import torch

    exact = weight.double()
    error = decoded.double() - exact
    noise, size = error.square().sum(), exact.square().sum()
    largest = error.abs().amax() / exact.abs().amax().clamp_min(torch.finfo(torch.float64).tiny)
    return Reconstruction(
        layer=layer, scheme=scheme, sqnr=decibels(float(size), float(noise)),
        largest=float(largest), zeros=float((decoded == 0).double().mean()),
    )  # fmt: skip


RECONSTRUCTION = Step(
    runs_model=True,
    name=NAME, title="Reconstruction", options=ReconstructionOptions, requires=(QUANTIZES, PLAN_CALIBRATED), run=_run,
    summary="Quantizes the model by the plan and compares each weight with the original: SQNR, largest error, zeros.",
    heading=lambda options, session: f"Reconstruction by {plan_name(session)}",
    needs=with_moments,
    join=lambda session, options, result: replace(session, results={**session.results, NAME: result}),
)  # fmt: skip
