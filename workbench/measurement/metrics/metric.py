"""One record for each evaluation metric: what it is called, what it means, how a batch is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workbench.measurement.bootstrap import Transform, identity
from workbench.models.model import Batch
from workbench.models.summary import OutputKind

if TYPE_CHECKING:
    import torch

    from workbench.measurement.divergence import Comparison
    from workbench.models.data.text import Transcriber


class Sums(NamedTuple):
    """Sums over each sample's units, ``[samples]`` each: of the quantized model, of the baseline, number of units."""

    values: torch.Tensor
    baselines: torch.Tensor
    units: torch.Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Outputs:
    """What both models return for one batch; ``kind`` says what the outputs are, ``text`` how frames become text."""

    reference: torch.Tensor
    quantized: torch.Tensor
    batch: Batch
    kind: OutputKind
    text: Transcriber | None = None

    @cached_property
    def tokens(self) -> torch.Tensor:
        """Which tokens of token logits are real, bool ``[samples, tokens]``."""
        from workbench.models.data.batches import token_mask

        return self._mask(token_mask(self.batch))

    @cached_property
    def counted(self) -> torch.Tensor:
        """At which of them the answers count, bool ``[samples, tokens]``: not before the places of pictures, nor
        in frames after the end of a sound."""
        from workbench.models.data.batches import output_mask

        return self._mask(output_mask(self.batch, self.reference))

    def _mask(self, mask: torch.Tensor | None) -> torch.Tensor:
        import torch

        shape = self.reference.shape[:2]
        every = torch.ones(shape, dtype=torch.bool, device=self.reference.device)
        return every if mask is None or mask.shape != shape else mask

    @cached_property
    def kl(self) -> torch.Tensor:
        """KL in nats of each token (0 where none counts) or sample, float64 ``[samples, tokens]`` or ``[samples]``."""
        from workbench.measurement.divergence import sample_divergence

        if self.kind is OutputKind.DETECTIONS:
            return sample_divergence(self.reference, self.quantized, self.batch, self.kind)
        per_sample = self.kind is OutputKind.CLASS_LOGITS
        return self.compared.divergence if per_sample else self.compared.divergence * self.counted

    @cached_property
    def compared(self) -> Comparison:
        """Both outputs compared, where they are logits."""
        from workbench.measurement.divergence import compare_logits

        return compare_logits(self.reference, self.quantized)

    @cached_property
    def ones(self) -> torch.Tensor:
        """One unit for each sample."""
        import torch

        return torch.ones(self.reference.shape[0], device=self.reference.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationMetric:
    """A figure of the quantized model beside the floating-point baseline.

    ``measure`` returns the sums of one batch, None where the metric does not apply (other outputs, no labels);
    ``transform`` maps the mean over units to the figure.  Where the figure is not a mean, ``statistic`` computes it
    from the values of all samples (float64 ``[samples, numbers]``), which ``measure`` returns in place of sums.
    ``compares_models`` is true where the figure itself compares the two models, so that the baseline is a constant.
    """

    name: str
    title: str
    unit: str
    meaning: str
    higher_is_better: bool
    measure: Callable[[Outputs], Sums | None]
    compares_models: bool = False
    transform: Transform = identity
    statistic: Callable[[np.ndarray], float] | None = None
