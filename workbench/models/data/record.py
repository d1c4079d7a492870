"""What a session records of a data set: enough to find it again and to notice that it changed."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.models.readers.pooling import Pooling


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRecord:
    """A data set's identity: ``path`` as given (``demo:language-model`` for bundled sets), ``split`` (``calibration``,
    ``evaluation`` or ``all``), the samples taken, the seed they were drawn with and the hash of their content;
    ``pooling``: how the model that they were opened for makes one embedding of a text."""

    name: str
    path: str
    split: str
    samples: int
    seed: int
    content_hash: str
    pooling: Pooling = Pooling.MEAN
