"""The floating-point model's outputs on a data set, batch by batch: from the disk where an earlier run left them.

So the second plan on the same data costs one pass.  A fingerprint knows tensors and not what a network does with them:
the first sample is run again and compared before anything from the disk is used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import torch

from workbench.errors import DataError
from workbench.measurement.finite_batches import all_finite
from workbench.measurement.metrics.logits import next_tokens
from workbench.measurement.reference.cache import ArrayCache
from workbench.measurement.reference.coded_logits import decoded, encoded
from workbench.models.data.batches import NOISE, Data, output_mask
from workbench.models.model import Batch, Model
from workbench.models.placement import ran_on
from workbench.models.summary import OutputKind

VERSION = 2

CODED_FROM = 1 << 26
"""Values of all outputs together from which logits of tokens are coded: 256 MB in float32."""


@dataclass(slots=True, kw_only=True)
class ReferenceOutputs:
    """Runs ``model`` on batches of ``data``, or reads what it gave.

    Logits of many tokens come as :mod:`workbench.measurement.reference.coded_logits` stores them, the first time too:
    figures do not depend on what is on the disk.  All other outputs are exact.  ``stores``: what runs is kept there.
    """

    model: Model
    data: Data
    batch_size: int
    cache: ArrayCache
    stores: bool = True

    def run(self, number: int, batch: Batch) -> torch.Tensor:
        """Return the output for batch ``number``, without gradients, on the model's device, in float32 or wider."""
        agreed = self.cache.agreed.get(self._network, self.cache.agreed.get(self.key))
        known = None if agreed is False or not self.model.is_original else self._known(number, batch)
        if known is not None and agreed is None:
            agreed = self.cache.agreed[self._network] = self._agrees(known, batch)
            if not agreed:
                self.cache.discard(self.key)
        if known is not None and agreed:
            return known.to(self.model.device)
        with torch.no_grad():
            output = _wide(self.model.run(batch))
        if not self.stores or not all_finite(output):
            return output
        arrays = self._arrays(output, batch)
        if self.model.is_original:
            if not number and agreed is None:  # nothing there was compared: all of it will be this run's
                self.cache.discard(self.key)
                self.cache.agreed[self.key] = True
            self.cache.store(self.key, f"{number:06}", arrays)
        return decoded(arrays).to(output.device) if "distances" in arrays else output

    @property
    def compared(self) -> bool:
        """Whether outputs came from the disk, and the model was seen to give the same again."""
        return bool(self.cache.agreed.get(self._network))

    @property
    def key(self) -> str:
        """What the outputs depend on, as far as it has a name."""
        return json.dumps([self._network, self.data.record.content_hash, self.batch_size, len(self.data)])

    @property
    def _network(self) -> str:
        return network_key(self.model)

    def _known(self, number: int, batch: Batch) -> torch.Tensor | None:
        arrays = self.cache.load(self.key, f"{number:06}")
        if arrays is None:
            return None
        try:
            output = decoded(arrays) if "distances" in arrays else torch.from_numpy(arrays["output"])
        except (KeyError, ValueError, RuntimeError, IndexError):
            return None
        return output if len(output) == len(next(iter(batch.values()))) else None

    def _agrees(self, known: torch.Tensor, batch: Batch) -> bool:
        """Return whether the model still gives for the first sample what it gave, but for noise."""
        first = _wide(first_output(self.model, batch))
        known = known[:1].to(first.device)
        if first.shape[1:] != known.shape[1:] or not bool(first.isfinite().all()):
            return False
        mask = output_mask({name: tensor[:1] for name, tensor in batch.items()}, known)
        apart, spread = (first - known).abs(), float(first.std()) if first.numel() > 1 else float(first.abs().max())
        if mask is not None:
            apart = apart * mask.reshape(*mask.shape, *[1] * (apart.ndim - mask.ndim))
        return float(apart.max()) <= NOISE * spread

    def _arrays(self, output: torch.Tensor, batch: Batch) -> dict[str, np.ndarray]:
        several = output.numel() * -(-len(self.data) // len(output)) >= CODED_FROM
        if not (self.model.summary.output.per_token and output.ndim == 3 and several):
            return {"output": output.detach().cpu().contiguous().numpy()}
        exact = None
        if self.model.summary.output is OutputKind.TOKEN_LOGITS:
            real = torch.ones(output.shape[:2], dtype=torch.bool, device=output.device)
            ids, _ = next_tokens(batch, real)
            exact = torch.zeros(output.shape[:2], dtype=torch.int64)
            exact[:, : ids.shape[1]] = ids.cpu()[:, : exact.shape[1]].clamp(0, output.shape[-1] - 1)
        return encoded(output, exact)


def network_key(model: Model) -> str:
    """Return what a model's outputs depend on, but for the data."""
    summary = model.summary
    facts = [VERSION, summary.fingerprint, str(summary.output), str(model.inputs.pooling), torch.__version__]
    return json.dumps([*facts, torch.get_num_threads(), ran_on(model)])


def _wide(output: torch.Tensor) -> torch.Tensor:
    """Return an output in float32 at least."""
    return output.float() if output.dtype.itemsize < 4 else output


def first_output(model: Model, batch: Batch) -> torch.Tensor:
    """Return what the model gives for the batch's first sample, ``[1, ...]``, without gradients."""
    with torch.no_grad():
        try:
            return model.run({name: tensor[:1] for name, tensor in batch.items()})
        except DataError:  # a program for batches of one size
            return model.run(batch)[:1]
