"""The commands: those of the steps with their reports, and the few that are more than a step."""

from __future__ import annotations

from workbench.console.bench import BENCH
from workbench.console.check import CHECK
from workbench.console.command import Command, of_step
from workbench.console.demo import DEMO
from workbench.console.flags import ALL, most
from workbench.console.launch import GUI
from workbench.console.models import APPLY, CALIBRATE, INFO, INSPECT, REPORT, exported
from workbench.console.plan import PLAN
from workbench.console.repair import REPAIR
from workbench.console.reports.checks import audited, budgeted, compared, judged
from workbench.console.reports.evaluations import evaluated
from workbench.console.reports.plans import explained, listed, side_by_side
from workbench.console.reports.runtimes import ran
from workbench.console.reports.tables import refined, scored
from workbench.console.tensors import CHANNELS, OUTLIERS, RANGES
from workbench.steps import REGISTRY
from workbench.steps.checks.audit import AUDIT
from workbench.steps.checks.error_budget import ERROR_BUDGET
from workbench.steps.checks.quality import QUALITY
from workbench.steps.checks.refine import REFINE
from workbench.steps.checks.runtime import RUNTIME
from workbench.steps.compare import COMPARE
from workbench.steps.evaluate import EVALUATE
from workbench.steps.explain import EXPLAIN
from workbench.steps.files.export import EXPORT
from workbench.steps.front import FRONT
from workbench.steps.score import SCORE
from workbench.steps.targets import TARGETS
from workbench.steps.train import TRAIN

_OWN = (
    GUI, DEMO, INSPECT, CALIBRATE,
    of_step(SCORE, "S.qwb --metric predicted-kl", scored, saves="to --out"),
    PLAN,
    of_step(EXPLAIN, "S.qwb --layer '*.mlp.*'", explained, with_plan=True),
    of_step(FRONT, "S.qwb --points 12", listed, most("plans", "points", 20)),
    of_step(TARGETS, "S.qwb --bits-per-weight 4.5", side_by_side),
    RANGES,
    of_step(EVALUATE, "S.qwb --plan plan.json", evaluated, most("changed tokens", "worst"), with_plan=True),
    of_step(AUDIT, "S.qwb --plan plan.json --samples 16", audited, most("layers"), with_plan=True),
    of_step(QUALITY, "S.qwb", judged, most("tensors")),
    of_step(REFINE, "S.qwb --bits-per-weight 4.5", refined, saves="to --out"),
    of_step(ERROR_BUDGET, "S.qwb --plan plan.json", budgeted, most("layers"), with_plan=True),
    of_step(RUNTIME, "S.qwb --plan plan.json --runtime llama.cpp --file model.gguf", ran, with_plan=True),
    OUTLIERS,
    of_step(COMPARE, "A.qwb B.qwb", compared, ALL),
    APPLY,
    of_step(
        TRAIN, "S.qwb --plan plan.json --steps 1000 --to safetensors --out trained.safetensors", exported,
        with_plan=True,
    ),
    of_step(EXPORT, "S.qwb --to script --out replay.py", exported, with_plan=True),
    REPORT, BENCH, CHECK, CHANNELS, INFO, REPAIR,
)  # fmt: skip

OF_THE_WINDOW = frozenset({
    "open", "open-session", "save-session", "keep-recovery", "browse-samples", "compare-plans", "before-after",
    "channel-errors", "time-kernels", "time-candidates", "sweep-batches", "devices", "places",
})  # fmt: skip
"""Steps that only the window asks for, or that another command covers."""

_NAMES = OF_THE_WINDOW | {command.name for command in _OWN}

COMMANDS: tuple[Command, ...] = (
    *_OWN,
    *(of_step(step, "S.qwb", with_plan=True) for step in REGISTRY if step.name not in _NAMES),
)
"""Every command; a step without one of its own gets one from its options, with a plain report."""
