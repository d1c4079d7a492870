"""What running a plan in a runtime gave."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.errors import ExportError

SUMS = 1e-4
"""Runtimes add in another order, and look functions up in tables; more nats than this are something else."""

LUCK = 4.0
"""Two ways to round inputs differ by luck: by this many times what one of them costs at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeProof:
    """One plan in one runtime.

    ``plan_loss`` is how far our evaluation lies from the floating-point model, ``runtime_loss`` how far the runtime's
    answers do, ``difference`` how far these lie from our evaluation: mean KL divergences in ``unit`` nats over
    ``positions`` tokens or samples (classes of positions are summed over a sample), or the mean of 1 - cosine of
    embeddings.  ``agreement`` is the share of positions at which
    the runtime's likeliest token is that of our evaluation.  ``tokens`` says whether the runtime splits a text into the
    same tokens.  Speeds are tokens per second.  ``rounding`` is how far our own evaluation moves when inputs are
    rounded as llama.cpp does on its own account, or are not where the plan rounds them: what may explain the
    difference; NaN in sessions from before it was measured.  ``repeat`` and ``repeat_agreement`` compare our evaluation
    with itself after a change of 1e-7 in one layer's weights, as sums in another order make it: where a plan rounds
    inputs, no two implementations agree better; NaN where it rounds none.  ``layers`` says where the runtime's answers
    begin to differ and ``apart_by_layer`` by how much one layer does that is fed the evaluation's inputs, relative to
    its largest number ("" and NaN: not looked at).
    """

    runtime: str
    plan: str
    plan_name: str
    file_bytes: int
    tensor_bytes: int
    plan_loss: float
    runtime_loss: float
    difference: float
    agreement: float
    unit: str
    positions: int
    prompt_speed: float
    generation_speed: float
    peak_bytes: int
    tokens: str
    data: str
    rounding: float = float("nan")
    repeat: float = float("nan")
    repeat_agreement: float = float("nan")
    layers: str = ""
    apart_by_layer: float = float("nan")


def require_as_evaluated(proof: RuntimeProof, program: str, summed: int = 1) -> RuntimeProof:
    """Return ``proof``, whose figures are over ``summed`` positions of each sample; raises ExportError if ``program``
    computed something else than was evaluated."""
    if not proof.difference <= max(SUMS * summed, LUCK * proof.rounding):
        raise ExportError(
            f"{program} computes something other than what was evaluated: its outputs are {proof.difference:.3g} "
            f"{proof.unit} from the evaluation, of which its rounding of inputs explains {proof.rounding:.3g}"
            f"{f' ({proof.layers})' if proof.layers else ''}; please report"
        )
    return proof
