"""Outputs of detectors: a set of objects, each with a logit of every label and a box.

``[samples, objects, labels + 4]``; a box is its centre's x and y, its width and its height, in parts of the picture.
The order says nothing: a detector may list its objects by rank, and two that change places are the same two objects.
Sets are compared as detectors are trained and judged, by the matching that puts like to like at the least cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

BOX = 4
"""The numbers of a box."""

SCALE = 0.2
"""A box that is off by so much of the picture counts as half a nat for each coordinate, times the object's probability.

Detectors are trained on five times the absolute error of a box beside the classes' loss: the log-likelihood of a
Laplace distribution of this scale (Carion et al., "End-to-End Object Detection with Transformers", ECCV 2020).
"""

CONFIDENT, OVERLAP = 0.5, 0.5
"""The probability from which on an object counts as found, and the IoU from which on two boxes are of one object."""


def labels_of(outputs: torch.Tensor) -> torch.Tensor:
    """Return the labels' logits, ``[samples, objects, labels]``."""
    return outputs[..., :-BOX]


def boxes_of(outputs: torch.Tensor) -> torch.Tensor:
    """Return the boxes, ``[samples, objects, 4]``."""
    return outputs[..., -BOX:]


def certainty_of(outputs: torch.Tensor) -> torch.Tensor:
    """Return each object's probability, that of its likeliest label: ``[samples, objects]``."""
    return labels_of(outputs).amax(dim=-1).sigmoid()


def detection_divergence(reference: torch.Tensor, candidate: torch.Tensor) -> torch.Tensor:
    """Return the divergence of sets from ``reference`` in nats, float64 ``[samples]``.

    The KL of every label's yes or no, and half the squared distance of the boxes in units of SCALE, each times the
    reference's probability of its object, summed over the objects as they match.
    """
    reference, candidate = reference.double(), matched(reference, candidate).double()
    answers = _label_divergence(labels_of(reference), labels_of(candidate))
    apart = (boxes_of(candidate) - boxes_of(reference)).square().sum(dim=-1) / (2 * SCALE**2)
    return answers.sum(dim=(1, 2)) + (certainty_of(reference) * apart).sum(dim=1)


def _label_divergence(reference: torch.Tensor, candidate: torch.Tensor) -> torch.Tensor:
    """Return the KL of each yes or no, as a sum of positive terms, so that small ones keep their digits."""
    import torch

    yes, shift = reference.sigmoid(), candidate - reference
    parts = ((yes, (1 - yes) * shift), (1 - yes, -yes * shift))
    return torch.log1p(sum((p * (torch.expm1(s) - s) for p, s in parts), torch.zeros_like(shift))).clamp_min(0.0)


def detection_root(outputs: torch.Tensor) -> torch.Tensor:
    """Return the square root of the (diagonal) Fisher information of every number of ``outputs``, of their shape."""
    import torch

    probabilities = labels_of(outputs).sigmoid()
    root = (probabilities * (1 - probabilities)).sqrt()
    weight = certainty_of(outputs).sqrt() / SCALE
    return torch.cat([root, weight.unsqueeze(-1).expand(*weight.shape, BOX)], dim=-1)


def matched(reference: torch.Tensor, candidate: torch.Tensor) -> torch.Tensor:
    """Return ``candidate`` with the objects of each sample in the order of those of ``reference`` that they match."""
    import torch

    order = torch.stack([_order(*pair) for pair in zip(reference.detach(), candidate.detach(), strict=True)])
    return candidate.gather(1, order.unsqueeze(-1).expand_as(candidate))


def _order(reference: torch.Tensor, candidate: torch.Tensor) -> torch.Tensor:
    """Return the place in ``candidate`` of each object of ``reference``, int64 ``[objects]``."""
    import torch

    yes = labels_of(reference).double().sigmoid()
    logits = labels_of(candidate).double()
    log_yes, log_no = (torch.nn.functional.logsigmoid(sign * logits) for sign in (1, -1))
    apart = torch.cdist(boxes_of(reference).double(), boxes_of(candidate).double()).square() / (2 * SCALE**2)
    cost = certainty_of(reference).double().unsqueeze(-1) * apart - yes @ log_yes.T - (1 - yes) @ log_no.T
    own = torch.arange(len(cost), device=cost.device)
    if bool((cost.diagonal() <= cost.amin(dim=1)).all()) or not bool(cost.isfinite().all()):
        return own
    from scipy.optimize import linear_sum_assignment

    return torch.from_numpy(linear_sum_assignment(cost.cpu().numpy())[1]).to(own)


def answers_of(outputs: torch.Tensor) -> torch.Tensor:
    """Return everything that ``outputs`` say as logits of "no" and "yes": ``[samples, objects, labels + 4, 2]``."""
    import torch

    boxes = torch.logit(boxes_of(outputs), 1e-6)
    yes = torch.cat([labels_of(outputs), boxes], dim=-1)
    return torch.stack([torch.zeros_like(yes), yes], dim=-1)


def matched_objects(reference: torch.Tensor, candidate: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return how many of the reference's objects the candidate finds too, and how many there are, ``[samples]`` each.

    An object is matched by one of the same label, as likely as CONFIDENT, with a box of the same place (OVERLAP).
    """
    candidate = matched(reference, candidate)
    there = certainty_of(reference) >= CONFIDENT
    same = labels_of(reference).argmax(dim=-1) == labels_of(candidate).argmax(dim=-1)
    near = _overlap(boxes_of(reference), boxes_of(candidate)) >= OVERLAP
    return (there & same & near & (certainty_of(candidate) >= CONFIDENT)).sum(dim=1), there.sum(dim=1)


def _overlap(some: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return the intersection of boxes over their union."""
    import torch

    ends = [(each[..., :2] - each[..., 2:] / 2, each[..., :2] + each[..., 2:] / 2) for each in (some, others)]
    (low, high), (other_low, other_high) = ends
    both = (torch.minimum(high, other_high) - torch.maximum(low, other_low)).clamp_min(0).prod(dim=-1)
    union = some[..., 2:].prod(dim=-1) + others[..., 2:].prod(dim=-1) - both
    return both / union.clamp_min(torch.finfo(union.dtype).tiny)
