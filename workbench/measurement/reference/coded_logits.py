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

from workbench.numerics.logits.rows import decode_rows, encode_rows


def encoded(logits: torch.Tensor, exact: torch.Tensor | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of logits ``[samples, tokens, entries]``: ``distances`` float16, ``top``, ``shift`` float32.

    ``exact`` int64 ``[samples, tokens]`` lists an entry of each token whose distance is stored in float32 too.
    """
    distances, top, shift = encode_rows(logits)
    arrays = {"distances": distances, "top": top, "shift": shift}
    if exact is not None:
        chosen = logits.detach().gather(-1, exact.to(logits.device).unsqueeze(-1)).squeeze(-1).float().cpu().numpy()
        arrays |= {"exact": exact.to(torch.int32).cpu().numpy(), "chosen": chosen - top}
    return arrays


def decoded(arrays: Mapping[str, np.ndarray]) -> torch.Tensor:
    """Return float32 logits ``[samples, tokens, entries]``; raises ValueError where the arrays do not fit together."""
    distances, top, shift = (arrays[name] for name in ("distances", "top", "shift"))
    if distances.ndim != 3 or top.shape != distances.shape[:2] or shift.shape != top.shape:
        raise ValueError(f"coded logits of shapes {distances.shape}, {top.shape}, {shift.shape}")
    types = [each.dtype.str[1:] for each in (distances, top, shift)]
    if types != ["f2", "f4", "f4"]:
        raise ValueError(f"coded logits of types {', '.join(types)}")
    logits = decode_rows(distances, top, shift)
    if "exact" in arrays:
        places = torch.from_numpy(arrays["exact"]).long().unsqueeze(-1)
        logits.scatter_(-1, places, torch.from_numpy(arrays["chosen"] + top).unsqueeze(-1))
    return logits
