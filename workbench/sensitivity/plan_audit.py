"""An audit with the plan that it belongs to, as a session keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.sensitivity.audit import Audit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanAudit:
    """An audit and the plan that it belongs to.

    ``rounded_inputs`` and ``cached`` are how many layers' inputs, and keys or values, the plan rounds besides: an audit
    leaves them as they are.
    """

    plan_name: str
    plan_hash: str
    rounded_inputs: int
    cached: int
    audit: Audit
