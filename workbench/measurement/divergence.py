"""How far one output lies from another: per sample, in nats where the outputs are logits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from workbench.models.data.batches import output_mask, require_shape
from workbench.models.model import Batch
from workbench.models.summary import OutputKind
from workbench.numerics.bands import tile_elements
from workbench.numerics.detections import detection_divergence
from workbench.numerics.logits.rows import compare_rows, serves

KEPT_BYTES = 1 << 27
"""The most bytes of a reference's probabilities that are kept."""

TILE = 1 << 17
"""Logits that are compared at once, in float64: what a core's cache holds, so that no copy of all of them is made."""


@dataclass(frozen=True, slots=True, eq=False)
class Divergence:
    """The distance of outputs from one reference, whose probabilities are worked out once unless there is one ``only``.

    ``reference`` is the output of ``batch`` (token logits, class logits or anything else, as ``kind`` says).
    """

    reference: torch.Tensor
    batch: Batch
    kind: OutputKind
    only: bool = False
    probabilities: list[torch.Tensor] = field(default_factory=list)

    def of(self, candidate: torch.Tensor) -> torch.Tensor:
        """Return each sample's divergence summed over its units, float64 ``[samples]``; see ``sample_divergence``."""
        require_shape(self.reference, candidate)
        if self.kind is OutputKind.DETECTIONS:
            return detection_divergence(self.reference, candidate)
        if not self.kind.is_logits:
            difference = (candidate.double() - self.reference.double()).reshape(self.reference.shape[0], -1)
            return 0.5 * difference.square().sum(dim=1)
        again = not self.only and not serves(self.reference, candidate)
        if again and not self.probabilities and 8 * self.reference.numel() <= KEPT_BYTES:
            self.probabilities.extend(torch.softmax(logits.double(), dim=-1) for logits in self.reference)
        known: Iterable[torch.Tensor | None] = self.probabilities or [None] * len(self.reference)
        rows = zip(self.reference, candidate, known, strict=True)
        each = torch.stack([logit_divergence(r, c, p) for r, c, p in rows])
        mask = None if self.kind is OutputKind.CLASS_LOGITS else output_mask(self.batch, self.reference)
        if mask is not None:
            each = each * mask
        return each.reshape(each.shape[0], -1).sum(dim=1)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two models' logits along the last axis: ``divergence`` of the second from the first, float64 ``[...]``.

    ``log_sums`` (float64) are the logarithms of their sums of exponentials, ``answers`` (int64) their greatest entries.
    """

    divergence: torch.Tensor
    log_sums: tuple[torch.Tensor, torch.Tensor]
    answers: tuple[torch.Tensor, torch.Tensor]


def compare_logits(reference: torch.Tensor, candidate: torch.Tensor) -> Comparison:
    """Compare logits ``[..., entries]``, on the device where they lie.

    Rows of a thousand entries and more are walked along once on the CPU, where exponentials are float32 and sums
    float64.  Divergences are then within 1e-6 of themselves of those in float64, the logarithms of sums within 5e-7.
    """
    both = reference, candidate
    if not serves(*both):
        sums = tuple(torch.cat([each.double().logsumexp(-1) for each in _tiles(x, x.shape[-1])]) for x in both)
        shape = reference.shape[:-1]
        return Comparison(
            logit_divergence(*both), (sums[0].reshape(shape), sums[1].reshape(shape)),
            (reference.argmax(-1), candidate.argmax(-1)),
        )  # fmt: skip
    facts = torch.from_numpy(compare_rows(*both))
    divergence, reference_sum, candidate_sum, *answers = facts.unbind(-1)
    far = divergence.isnan()
    if bool(far.any()):
        divergence[far] = _divergence(reference[far], candidate[far])
        reference_sum[far], candidate_sum[far] = (each[far].double().logsumexp(-1) for each in both)
    return Comparison(divergence, (reference_sum, candidate_sum), (answers[0].long(), answers[1].long()))


def logit_divergence(reference: torch.Tensor, candidate: torch.Tensor, p: torch.Tensor | None = None) -> torch.Tensor:
    """Return KL(softmax(reference) || softmax(candidate)) along the last axis, float64, never negative.

    See :func:`compare_logits`.  ``p`` is ``softmax(reference)`` in float64 where it is known already; compiled rows do
    without.
    """
    if serves(reference, candidate):
        return compare_logits(reference, candidate).divergence
    return _divergence(reference, candidate, p)


def _divergence(reference: torch.Tensor, candidate: torch.Tensor, p: torch.Tensor | None = None) -> torch.Tensor:
    """Return :func:`logit_divergence` by torch's own operations, in float64.

    With ``s = candidate - reference`` shifted so that its mean under p is 0, ``KL = log(1 + sum p (exp(s) - 1 - s))``:
    a sum of positive terms, so that small divergences keep their digits.  Where ``s`` is too large for that, the plain
    difference of log-probabilities is as good.
    """
    entries = reference.shape[-1] if reference.ndim else 1
    if reference.ndim > 1 and reference.numel() > max(tile_elements(reference.device, TILE), entries):
        own, other, known = (_tiles(each, entries) for each in (reference, candidate, p))
        rows = zip(own, other, known or [None] * len(own), strict=True)
        return torch.cat([_divergence(*row) for row in rows]).reshape(reference.shape[:-1])
    if p is None:
        p = torch.softmax(reference.double(), dim=-1)
    shift = candidate.double().sub_(reference) if candidate.dtype != torch.float64 else candidate - reference
    shift -= torch.linalg.vecdot(p, shift).unsqueeze(-1)
    if float(shift.max()) > 30.0 or float(shift.min()) < -30.0:
        log_ratio = torch.log_softmax(reference.double(), -1) - torch.log_softmax(candidate.double(), -1)
        return (p * log_ratio).sum(dim=-1).clamp_min(0.0)
    return torch.log1p(torch.linalg.vecdot(p, torch.expm1(shift).sub_(shift))).clamp_min(0.0)


def _tiles(logits: torch.Tensor | None, entries: int) -> tuple[torch.Tensor, ...]:
    """Return rows of ``entries``, about TILE numbers at a time, on a device more; none for None."""
    if logits is None:
        return ()
    return torch.split(logits.reshape(-1, entries), max(tile_elements(logits.device, TILE) // entries, 1))


def sample_divergence(reference: torch.Tensor, candidate: torch.Tensor, batch: Batch, kind: OutputKind) -> torch.Tensor:
    """Return each sample's divergence summed over its units, float64 ``[samples]``.

    Token logits: KL summed over real tokens; class logits: KL; detections: that of sets of objects; anything else: half
    the squared distance, which is what the Gauss-Newton form predicts.
    """
    return Divergence(reference, batch, kind, only=True).of(candidate)
