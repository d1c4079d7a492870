"""``workbench plan``: search a plan, or give every layer one scheme."""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from pathlib import Path

from workbench import content_kind
from workbench.atomic import require_writable
from workbench.console.command import NO_SAVE, Command, output_of_libraries_as_errors, require_saved
from workbench.console.flags import SESSION, TRUST, flag, flags_of, names, options_of
from workbench.console.report import Report
from workbench.console.reports.plans import planned
from workbench.deployment.targets import target
from workbench.errors import PlanError
from workbench.insight.legality import repair
from workbench.models.summary import quantizable
from workbench.planning.constraints import Constraints
from workbench.planning.plan import Plan, resolve
from workbench.planning.transform_names import check_names
from workbench.progress import Progress
from workbench.session.session import Session
from workbench.session.shared_file import SharedFile
from workbench.steps.options import scheme_name
from workbench.steps.score import complete_table
from workbench.steps.search import SEARCH, SearchOptions
from workbench.steps.search_rules import input_names, rounding_remark, with_activations, with_range_method

BUDGETS = ("bits_per_weight", "size", "microseconds", "loss")
WITH_UNIFORM = ("metric", "cache", "batch", "corrected", "schemes", "range_method", "inputs", "target")
"""Options of the search that do not contradict ``--uniform``."""


def check(arguments: argparse.Namespace) -> None:
    """End with a usage error if there is no budget, or if ``--uniform`` meets options that it does not use."""
    if arguments.uniform:
        default = SearchOptions()
        searched = [item.name for item in fields(SearchOptions) if item.name not in WITH_UNIFORM]
        if any(getattr(arguments, name) not in (getattr(default, name), []) for name in searched):
            arguments.refuse("--uniform searches nothing, so it goes with no budget, lock, allow or strategy")
    elif arguments.strategy == "optimal" and all(getattr(arguments, name) is None for name in BUDGETS):
        arguments.refuse("one of --bits-per-weight, --size, --microseconds, --loss or --uniform is needed")


def _run(arguments: argparse.Namespace, progress: Progress) -> Report:
    check(arguments)
    file, options = SharedFile.open(arguments.session), options_of(SearchOptions, arguments)
    session = file.session
    if not arguments.no_save:
        require_saved(file)
    if arguments.out:
        require_writable(Path(arguments.out), PlanError, "the plan", content_kind.PLAN)
    if arguments.uniform:
        plan = _uniform(session, arguments.uniform, options)
        session = complete_table(session, plan, options.metric, trust=arguments.trust, progress=progress)
    else:
        with output_of_libraries_as_errors():
            plan = SEARCH(session, options, trust=arguments.trust, progress=progress)
    if arguments.transforms is not None:
        check_names(arguments.transforms)
        plan = replace(plan, transforms=arguments.transforms)
    read = file.session.sensitivities
    tables = {name: table for name, table in session.sensitivities.items() if read.get(name) is not table}
    if not arguments.no_save:
        aim = target(options.target).name if options.target else None
        file.save(lambda now: replace(
            now, plan=plan, sensitivities={**now.sensitivities, **tables}, target=aim or now.target))  # fmt: skip
    if arguments.out:
        plan.save(arguments.out)
    remarks = [_size_remark(session, plan, options.target)]
    if not arguments.uniform:
        remarks.append(rounding_remark(session, options.target, session.require_table(options.metric).metric))
    return planned(session, plan, options.metric, corrected=options.corrected, remarks=remarks)


def _uniform(session: Session, scheme: str, options: SearchOptions) -> Plan:
    """Return the plan of one scheme; layers that the target does not run so get the nearest schemes that it runs."""
    if len(options.inputs) > 1:
        raise PlanError(f"--uniform chooses no schemes of inputs; give one of {', '.join(options.inputs)}")
    plan = Plan.uniform(quantizable(session.model.layers), scheme)
    plan = replace(plan, model=session.model.name, fingerprint=session.model.fingerprint)
    session = replace(session, plan=plan)
    inputs = input_names(session, options.inputs, options.target, scheme)
    plan, _, _ = with_activations(session, Constraints(), None, inputs, options.cache)
    if options.range_method is not None:
        plan = with_range_method(session, plan, options.range_method, frozenset())
    if not options.target:
        return plan
    repaired = repair(plan, session.model.layers, options.target)
    if repaired.left:
        raise PlanError(f"{target(options.target).title} cannot run {repaired.left[0].sentence}")
    return repaired.plan


def _size_remark(session: Session, plan: Plan, name: str | None) -> str:
    """Return what the target's checkpoint takes beyond the plan's bytes and why; empty where that is little."""
    from workbench.deployment.checkpoints.sizes import FOLDERS, size_remark

    runtime = target(name).runtime if name else None
    kind = "" if runtime is None else FOLDERS.get(runtime.name, "")
    remark = size_remark(kind, session.model, resolve(plan, session.model.layers))
    return f"in a {kind} folder {remark}" if remark else ""


PLAN = Command(
    name=SEARCH.name, help=SEARCH.summary, example="plan S.qwb --bits-per-weight 4.5 --out plan.json", run=_run,
    flags=(
        SESSION, TRUST, flags_of(SearchOptions),
        flag("--uniform", type=scheme_name, metavar="SCHEME",
             help="one scheme everywhere but for embeddings, such as int4-g32-asym"),
        flag("--transforms", type=names, metavar="A,B,...",
             help="rewrite the model first: fold-norms, equalize, awq, smoothquant, rotation-heads, rotation, "
             "online-rotation; or correct it after rounding: bias-correction, norm-reestimation (default: as the "
             "session's plan)"),
        flag("--out", metavar="PLAN.json", help="write the plan here, too (default: into the session only)"), NO_SAVE,
    ),
)  # fmt: skip
