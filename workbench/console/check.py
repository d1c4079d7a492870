"""``workbench check``: what a target refuses of a plan, and the nearest plan that it runs."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from workbench.console import flags
from workbench.console.command import Command
from workbench.console.report import Report, Row, Table
from workbench.deployment.targets import target
from workbench.insight.legality import Change, Pair, Refusal, refusals, repair
from workbench.models.summary import ModelSummary
from workbench.planning.plan import Plan, resolve
from workbench.progress import Progress
from workbench.session.session import Session

HDF5 = b"\x89HDF\r\n\x1a\n"


def _add_flags(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("plan", metavar="PLAN.json|S.qwb", help="a plan (add --session or --model), or a session")
    entry.add_argument("--target", metavar="NAME", required=True, help="vllm, gguf, nvidia-9.0, vllm@nvidia-9.0, ...")
    entry.add_argument("--session", metavar="S.qwb", help="a session of the plan's model")
    entry.add_argument("--model", metavar="MODEL", help="the plan's model, instead of a session")
    flags.trust(entry)
    entry.add_argument("--repair", action="store_true", help="give refused layers the nearest schemes that it runs")
    entry.add_argument("--out", metavar="FILE", help="write the repaired plan here (default: where it was read from)")
    entry.set_defaults(refuse=entry.error)


def _run(arguments: argparse.Namespace, progress: Progress) -> Report:
    path = Path(arguments.plan)
    session = Session.load(path) if _is_session(path) else None
    if session is not None:
        plan, model = session.plan, session.model
    else:
        if not (arguments.session or arguments.model):
            arguments.refuse("a plan file does not describe the model: add --session S.qwb or --model MODEL")
        plan, model = Plan.load(path), _model(arguments)
    if plan.fingerprint is not None:
        model.require_fingerprint(plan.fingerprint, f"the plan {plan.name!r}")
    refused = refusals(plan, model.layers, arguments.target)
    facts = {"plan": plan.name, "target": arguments.target, "refused": _rows(refused, plan, model)}
    if not arguments.repair:
        return _report(facts, refused)
    repaired = repair(plan, model.layers, arguments.target)
    out = Path(arguments.out or path)
    if session is not None and not arguments.out:
        replace(session, plan=repaired.plan).save(out)
    else:
        repaired.plan.save(out)
    left = {"left": _rows(repaired.left, repaired.plan, model), "out": out}
    return _report({**facts, **left}, repaired.left, repaired.changes, out)


def _is_session(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(HDF5)) == HDF5
    except IsADirectoryError:
        return False


def _model(arguments: argparse.Namespace) -> ModelSummary:
    from workbench.steps.files.open_model import open as open_model

    if arguments.session:
        return Session.load(arguments.session).model
    return open_model(arguments.model, trust=arguments.trust).summary


def _rows(refused: tuple[Refusal, ...], plan: Plan, model: ModelSummary) -> list[Row]:
    assignments = resolve(plan, model.layers)
    return [
        {
            "layer": name, "scheme": assignments[name].weights, "inputs": assignments[name].inputs,
            "reason": refusal.reason,
        }
        for refusal in refused for name in refusal.layers
    ]  # fmt: skip


def _report(
    facts: Row, refused: tuple[Refusal, ...], changes: tuple[Change, ...] | None = None, out: Path | None = None
) -> Report:
    """Return the refusals (after a repair: those that are left) and the changes; the exit code says whether any are."""
    title, count = target(str(facts["target"])).title, len({name for refusal in refused for name in refusal.layers})
    parts: list[str | Table] = []
    if changes is not None:
        parts.append(f"changed {len(changes)} layers of “{facts['plan']}”, wrote {out}")
        rows = [
            {"layer": change.layer, "before": _spelled(change.before), "after": _spelled(change.after)}
            for change in changes
        ]
        parts += [Table(key="changes", rows=rows, columns="layer | before | after")] if rows else []
        facts = {"changes": [], **facts}
    parts.append(f"{title} runs “{facts['plan']}”" if not count else f"{title} refuses {count} layers")
    if count:
        shown = facts["refused"] if changes is None else facts["left"]
        assert isinstance(shown, list)
        parts.append(Table(rows=shown, columns="layer | scheme | inputs | reason=why"))
    return Report(facts=facts, parts=parts, exit_code=1 if count else 0)


def _spelled(pair: Pair) -> str:
    return pair[0] if pair[1] is None else f"{pair[0]} with inputs {pair[1]}"


CHECK = Command(
    name="check",
    help="Lists what a target refuses of a plan, or repairs the plan.",
    example="check plan.json --session S.qwb --target vllm --repair --out vllm-plan.json",
    add_flags=_add_flags,
    run=_run,
)
