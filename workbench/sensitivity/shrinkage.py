"""A layer's losses by few samples, drawn towards what all of its schemes say together.

Few samples tell little of the loss of one rounding error, and the search picks those that they make too small.  But the
errors of a layer's schemes differ in little else than their size and where it lies, which the Kronecker form knows: the
quotients of both forms scatter by chance, mostly.  So much of their scatter as the samples explain is taken out
(empirical Bayes; Efron and Morris, "Data analysis using Stein's estimator", JASA 1975).  Many samples explain none.
numpy only.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from workbench.sensitivity.interaction import by_sample

FEWEST_SCHEMES = 4
"""With fewer schemes there is nothing to gain (Stein), and no scatter to speak of."""


def shrunk(
    losses: Mapping[str, float], separable: Mapping[str, float], slopes: Mapping[str, np.ndarray], samples: int
) -> dict[str, float]:  # fmt: skip
    """Return a layer's ``losses`` by scheme, each with the share of chance in its quotient to ``separable`` taken out.

    ``separable`` are the losses of the Kronecker form, in any unit; ``slopes`` float32 ``[draws]``, two of a sample
    side by side, of some or all of ``samples``.  Schemes without a loss, or without slopes, stay as they are.
    """
    names = [
        name for name, drawn in slopes.items()
        if 0 < losses[name] < np.inf and 0 < separable[name] < np.inf and np.isfinite(drawn).all() and drawn.any()
    ]  # fmt: skip
    shrinkable = dict(losses)
    if len(names) < FEWEST_SCHEMES:
        return shrinkable
    squares = by_sample(np.square(np.array([slopes[name] for name in names], np.float64)))
    count = squares.shape[1]
    if count < 2:
        return shrinkable
    shares = squares / squares.mean(axis=1, keepdims=True)
    own = (shares - shares.mean(axis=0)).var(axis=1, ddof=1)  # what moves all schemes alike scatters no quotient
    chance = float(own.sum()) / (len(names) - 1) / max(samples, count)
    quotients = np.log([losses[name] / separable[name] for name in names])
    scatter = float(quotients.var(ddof=1))
    if scatter > 0:
        drawn = (quotients.mean() - quotients) * min(chance / scatter, 1.0)
        shrinkable.update(zip(names, np.exp(drawn) * [losses[name] for name in names], strict=True))
    return {name: float(loss) for name, loss in shrinkable.items()}
