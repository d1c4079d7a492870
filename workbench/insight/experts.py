"""How many tokens each expert of a mixture saw when the session was calibrated."""

from __future__ import annotations

import numpy as np

from workbench.insight.quantities import whole
from workbench.models.layer import Layer
from workbench.session.session import Session


def expert_tokens(session: Session, layer: Layer) -> np.ndarray | None:
    """Return the tokens of each expert of ``layer``, int64 ``[experts]``; None where that is not known."""
    known = session.curvature.get(layer.name) if layer.experts > 1 else None
    return None if known is None or known.counts is None or len(known.counts) != layer.experts else known.counts


def tokens_in_words(counts: np.ndarray) -> str:
    """Return ``counts`` as a clause: how many experts, the fewest and the most tokens, who had the fewest."""
    least, most = int(counts.min()), int(counts.max())
    if least == most:
        return f"{len(counts)} experts saw {whole(least)} tokens each"
    fewest = int(counts.argmin())
    return f"{len(counts)} experts saw {whole(least)} to {whole(most)} tokens, expert {fewest} the fewest"
