"""What a user can ask for, one file each: options, function, how the result joins the session, title, Python.

A new step is its file and a line in STEPS; third parties publish theirs as a ``workbench.steps`` entry point.
"""

from __future__ import annotations

from workbench.errors import WorkbenchError
from workbench.registry import Registry
from workbench.steps.browse_samples import BROWSE_SAMPLES
from workbench.steps.calibrate import CALIBRATE
from workbench.steps.checks.audit import AUDIT
from workbench.steps.checks.compare_plans import COMPARE_PLANS
from workbench.steps.checks.error_budget import ERROR_BUDGET
from workbench.steps.checks.quality import QUALITY
from workbench.steps.checks.reconstruction import RECONSTRUCTION
from workbench.steps.checks.refine import REFINE
from workbench.steps.checks.runtime import RUNTIME
from workbench.steps.compare import COMPARE
from workbench.steps.devices import DEVICES, PLACES
from workbench.steps.evaluate import EVALUATE
from workbench.steps.explain import EXPLAIN
from workbench.steps.files.export import EXPORT
from workbench.steps.files.keep_recovery import KEEP_RECOVERY
from workbench.steps.files.open_model import OPEN
from workbench.steps.files.open_session import OPEN_SESSION
from workbench.steps.files.save_session import SAVE_SESSION
from workbench.steps.front import FRONT
from workbench.steps.layer.before_after import BEFORE_AFTER
from workbench.steps.layer.channel_errors import CHANNEL_ERRORS
from workbench.steps.score import SCORE
from workbench.steps.search import SEARCH
from workbench.steps.step import AnyStep, Step
from workbench.steps.targets import TARGETS
from workbench.steps.timing.candidates import TIME_CANDIDATES
from workbench.steps.timing.kernels import TIME_KERNELS
from workbench.steps.timing.sweep import SWEEP_BATCHES
from workbench.steps.train import TRAIN

STEPS: tuple[AnyStep, ...] = (
    OPEN, OPEN_SESSION, SAVE_SESSION, KEEP_RECOVERY, CALIBRATE, BROWSE_SAMPLES, QUALITY, SCORE, SEARCH, EXPLAIN,
    FRONT, TARGETS, EVALUATE, COMPARE_PLANS, AUDIT, REFINE, ERROR_BUDGET, RECONSTRUCTION, BEFORE_AFTER,
    CHANNEL_ERRORS, TIME_KERNELS, TIME_CANDIDATES, SWEEP_BATCHES, TRAIN, EXPORT, RUNTIME, COMPARE,
    DEVICES, PLACES,
)  # fmt: skip

REGISTRY: Registry[AnyStep] = Registry(STEPS, "workbench.steps", kind="step", error=WorkbenchError, member_type=Step)
