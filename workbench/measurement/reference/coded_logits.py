"""Logits of many tokens in half the room: float16 distances from the greatest, with the sum of exponentials exact.

    logits = top + distance,     distance = 0 at the most likely entry, float16(logit - top) elsewhere, shifted by one
                                 float32 number a token so that log(sum(exp(logits))) is what it was

The relative error of a distance is at most 2**-11, so the likely entries are nearly exact and the most likely one is
exact.  The divergence of a distribution from its coded self is about half the mean square of these errors: 1e-7 to 1e-6
nats per token where tokens are uncertain.  Entries listed beside it (``exact``: the token that follows) are float32.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

FLOAT16_REACH = 65504.0


def encoded(logits: torch.Tensor, exact: torch.Tensor | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of logits ``[samples, tokens, entries]``: ``distances`` float16, ``top``, ``shift`` float32.

    ``exact`` int64 ``[samples, tokens]`` lists an entry of each token whose distance is stored in float32 too.
    """
    samples, tokens, _ = logits.shape
    distances = torch.empty(logits.shape, dtype=torch.float16)
    top, shift = torch.empty(samples, tokens), torch.empty(samples, tokens)
    chosen = None if exact is None else torch.empty(samples, tokens)
    for number, row in enumerate(logits.detach()):
        row = row.float().cpu()
        top[number] = row.amax(dim=-1)
        own = row - top[number].unsqueeze(-1)
        distances[number] = own.clamp(-FLOAT16_REACH, 0.0).to(torch.float16)
        shift[number] = _shift(torch.logsumexp(own, dim=-1), distances[number])
        if chosen is not None and exact is not None:
            chosen[number] = own.gather(-1, exact[number].cpu().unsqueeze(-1)).squeeze(-1)
    arrays = {"distances": distances.numpy(), "top": top.numpy(), "shift": shift.numpy()}
    if chosen is not None and exact is not None:
        arrays |= {"exact": exact.to(torch.int32).cpu().numpy(), "chosen": chosen.numpy()}
    return arrays


def decoded(arrays: Mapping[str, np.ndarray]) -> torch.Tensor:
    """Return float32 logits ``[samples, tokens, entries]``; raises ValueError where the arrays do not fit together."""
    distances, top, shift = (torch.from_numpy(arrays[name]) for name in ("distances", "top", "shift"))
    if distances.ndim != 3 or top.shape != distances.shape[:2] or shift.shape != top.shape:
        raise ValueError(f"coded logits of shapes {tuple(distances.shape)}, {tuple(top.shape)}, {tuple(shift.shape)}")
    logits = distances.float()
    likeliest = logits == 0
    logits.add_(shift.unsqueeze(-1)).masked_fill_(likeliest, 0.0)
    if "exact" in arrays:
        places = torch.from_numpy(arrays["exact"]).long().unsqueeze(-1)
        logits.scatter_(-1, places, torch.from_numpy(arrays["chosen"]).unsqueeze(-1))
    return logits.add_(top.unsqueeze(-1))


def _shift(whole: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
    """Return what to add to all entries but the most likely, so that their exponentials sum to ``exp(whole)``."""
    sizes = distances.float()
    count = (sizes == 0).sum(dim=-1)
    others = sizes.masked_fill_(sizes == 0, -torch.inf).double().logsumexp(dim=-1)
    target = torch.log((whole.double().exp() - count).clamp_min(0.0))
    shift = target - others
    return torch.where(shift.isfinite() & (shift.abs() < 2.0**-8), shift, torch.zeros_like(shift)).float()
