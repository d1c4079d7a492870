"""``workbench check``: what a target refuses of a plan, and the nearest plan that it runs."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from workbench.console.command import Command
from workbench.console.flags import TRUST, flag
from workbench.console.report import Report, Row, Table, row
from workbench.deployment.networks import unknown_network
from workbench.deployment.targets import target
from workbench.insight.legality import Pair, Refusal, refusals, repair
from workbench.models.summary import ModelSummary
from workbench.plain_file import opened
from workbench.planning.plan import Plan, resolve
from workbench.progress import Progress
from workbench.session.session import Session
from workbench.session.shared_file import SharedFile

HDF5 = b"\x89HDF\r\n\x1a\n"


def _run(arguments: argparse.Namespace, progress: Progress) -> Report:
    path = Path(arguments.plan)
    file = SharedFile.open(path) if _is_session(path) else None
    session = file.session if file else None
    if session is not None:
        plan, model = session.plan, session.model
    else:
        plan = Plan.load(path)
        if not (arguments.session or arguments.model):
            arguments.refuse("a plan file does not describe the model: add --session S.qwb or --model MODEL")
        model = _model(arguments)
    plan.require_model(model)
    refused = _rows(refusals(plan, model.layers, arguments.target), plan, model)
    facts: Row = {"plan": plan.name, "target": arguments.target, "refused": refused}
    if reason := unknown_network(arguments.target, model):
        return Report(facts={**facts, "network": reason}, parts=[reason], exit_code=1)
    if not arguments.repair:
        return _report(facts, refused, [])
    repaired = repair(plan, model.layers, arguments.target)
    out = Path(arguments.out or path)
    if file is not None and not arguments.out:
        file.save(lambda now: replace(now, plan=repaired.plan))
    else:
        repaired.plan.save(out)
    left = _rows(repaired.left, repaired.plan, model)
    changes = [
        {"layer": change.layer, "before": _spelled(change.before), "after": _spelled(change.after)}
        for change in repaired.changes
    ]
    parts: list[str | Table] = [f"changed {len(changes)} layers of “{plan.name}”, wrote {out}"]
    parts += [Table(rows=changes, columns="layer | before | after")] if changes else []
    return _report({**facts, "changes": changes, "left": left, "out": out}, left, parts)


def _is_session(path: Path) -> bool:
    try:
        with opened(path) as file:
            return file.read(len(HDF5)) == HDF5
    except OSError:  # a pipe gives what it holds only once; whoever reads it says what is wrong
        return False


def _model(arguments: argparse.Namespace) -> ModelSummary:
    from workbench.models.placement import CPU
    from workbench.steps.files.open_model import open as open_model

    if arguments.session:
        return Session.load(arguments.session).model
    return open_model(arguments.model, trust=arguments.trust, device=CPU).summary


def _rows(refused: tuple[Refusal, ...], plan: Plan, model: ModelSummary) -> list[Row]:
    assignments = resolve(plan, model.layers)
    return [
        row(assignments[name], "scheme=weights inputs", layer=name, reason=refusal.reason)
        for refusal in refused for name in refusal.layers
    ]  # fmt: skip


def _report(facts: Row, refused: list[Row], parts: list[str | Table]) -> Report:
    """Return ``parts`` and what the target refuses (after a repair: still); the exit code says whether it does."""
    title, count = target(str(facts["target"])).title, len({each["layer"] for each in refused})
    if not count:
        return Report(facts=facts, parts=[*parts, f"{title} runs “{facts['plan']}”"])
    table = Table(rows=refused, columns="layer | scheme | inputs | reason=why")
    return Report(facts=facts, parts=[*parts, f"{title} refuses {count} layers", table], exit_code=1)


def _spelled(pair: Pair) -> str:
    return pair[0] if pair[1] is None else f"{pair[0]} with inputs {pair[1]}"


CHECK = Command(
    name="check", help="Lists what a target refuses of a plan, or repairs the plan.",
    example="check plan.json --session S.qwb --target vllm --repair --out vllm-plan.json", run=_run,
    flags=(
        flag("plan", metavar="PLAN.json|S.qwb", help="a plan (add --session or --model), or a session"),
        flag("--target", metavar="NAME", required=True, help="vllm, gguf, nvidia-9.0, vllm@nvidia-9.0, ..."),
        flag("--session", metavar="S.qwb", help="a session of the plan's model"),
        flag("--model", metavar="MODEL", help="the plan's model, instead of a session"),
        TRUST,
        flag("--repair", action="store_true", help="give refused layers the nearest schemes that it runs"),
        flag("--out", metavar="FILE", help="write the repaired plan here (default: where it was read from)"),
    ),
)  # fmt: skip
