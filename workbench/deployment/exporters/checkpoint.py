"""What the exporters of quantized checkpoints share: each is written as its Method says."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.deployment.checkpoints.write import Method
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


class CheckpointExporter:
    """An exporter of a folder; ``stored_by`` is the Method of that, by its place in ``deployment/checkpoints``."""

    __slots__ = ()
    needs_model: ClassVar = True
    stored_by: ClassVar[str]

    def method(self, quantized: QuantizedModel) -> Method:
        """Return how ``quantized``, which may hold no values yet, is stored."""
        module, _, name = self.stored_by.partition(".")
        made: Method = getattr(import_module(f"workbench.deployment.checkpoints.{module}"), name)()
        return made

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        from workbench.deployment.checkpoints.write import refuse_checkpoint

        refuse_checkpoint(self.method(planned), planned, model)

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, read back by another reader, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        from workbench.deployment.checkpoints.write import write_checkpoint

        return write_checkpoint(self.method(quantized), quantized, model, out, progress)
