"""Audit: do the losses of a plan's layers add up?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.memory import Spill
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import cached_layers, plan_totals, quantized_inputs
from workbench.progress import part_of
from workbench.sensitivity.audit import Audit, PlanAudit, audit_weights
from workbench.session.calibrated_ranges import identity
from workbench.steps import session_data
from workbench.steps.options import BATCH_SIZE, EVALUATION_DATA, SAMPLES, option
from workbench.steps.quantize import quantize
from workbench.steps.requirements import PLAN_CALIBRATED, QUANTIZES, RUNS, tables, with_moments
from workbench.steps.step import Context, Step, plan_name

if TYPE_CHECKING:
    import torch

UNIFORM = 4
"""So many uniform plans are measured beside the audited one: those of the least predicted loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """On which data, and how much of them."""

    data: str = option("", EVALUATION_DATA)
    samples: int | None = option(None, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)


def _run(context: Context, options: AuditOptions) -> PlanAudit:
    session = context.session
    assignments = resolve(session.plan, session.model.layers)
    return PlanAudit(
        plan_name=session.plan.name, plan_hash=identity(session, session.plan), audit=_audit(context, options),
        cached=len(cached_layers(session.model.layers, assignments)),
        rounded_inputs=len(quantized_inputs(session.model, assignments)),
    )  # fmt: skip


def _audit(context: Context, options: AuditOptions) -> Audit:
    """Measure the plan's weights one by one, all together and all but one, beside the predicted losses.

    Losses are predicted for the model as it is, so a plan with transforms has none.
    """
    session, model = context.session, context.model()
    plan, progress = session.plan, context.progress
    dataset = session_data.for_evaluation(model, session, options.data, samples=options.samples, seed=0)
    quantized = quantize(model, plan, session=session, progress=part_of(progress, 0.0, 0.2))
    weights = {name: parse_scheme(stored.scheme).decode(stored) for name, stored in quantized.tensors.items()}
    table = None if plan.transforms else session.sensitivities.get("predicted_kl")
    cells = [] if table is None else [(name, stored.scheme) for name, stored in quantized.tensors.items()]
    sums = plan_totals(session.model, plan, table)
    predicted = {name: table.of(name, scheme) for name, scheme in cells if table is not None}
    return audit_weights(
        quantized.rewritten(model), weights, dataset, predicted=predicted, batch_size=options.batch_size,
        predicted_interaction=sums.interaction, predicted_error=sums.error, predicted_samples=sums.samples,
        predicted_doubt=sums.doubt,
        uniform=_uniform(context, list(weights), sums.nbytes), progress=part_of(progress, 0.2, 1.0),
    )  # fmt: skip


def _uniform(context: Context, layers: list[str], nbytes: int) -> dict[tuple[str, float], dict[str, torch.Tensor]]:
    """Return the weights of the best predicted uniform plans of at most ``nbytes``, by scheme and bits per weight.

    They quantize the audited plan's layers without its transforms, and lie in files where memory has no room for them.
    """
    session, model = context.session, context.model()
    table = session.sensitivities.get("predicted_kl")
    if table is None or session.plan.transforms:
        return {}
    fitting = []
    for scheme in table.schemes:
        plan = Plan.uniform([session.model.by_name[name] for name in layers], scheme)
        sums = plan_totals(session.model, plan, table)
        if sums.predicted is not None and sums.nbytes <= nbytes and plan.rules != session.plan.rules:
            fitting.append((sums.predicted, scheme, sums.bits_per_weight, plan))
    best = sorted(fitting, key=lambda plan: plan[:2])[:UNIFORM]
    spill = Spill.in_files(4 * len(best) * sum(session.model.by_name[name].parameters for name in layers))
    return {
        (scheme, bits): {
            name: spill.keep(parse_scheme(stored.scheme).decode(stored))
            for name, stored in quantize(model, plan, session=session).tensors.items()
        }
        for _, scheme, bits, plan in best
    }


AUDIT = Step(
    runs_model=True,
    name="audit", title="Audit the plan", options=AuditOptions, requires=(RUNS, QUANTIZES, PLAN_CALIBRATED), run=_run,
    summary="Measures the loss of each of the plan's layers quantized alone, of all together, and of all but one: "
    "whether the losses add up, and which layers make each other's worse. Takes two runs over the data for each layer.",
    heading=lambda options, session: f"Audit {plan_name(session)}",
    needs=lambda session, options: replace(with_moments(session), sensitivities=tables(session, "predicted_kl")),
    join=lambda session, options, audit: replace(session, audit=audit),
    first=lambda session: AuditOptions(data=session_data.last_data(session, session.evaluation)),
    missing=lambda session, options: session_data.missing_data(session, options.data, held=True),
)  # fmt: skip
