"""Exports the calibration's input statistics as an importance matrix for llama.cpp's own quantizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from workbench.atomic import replacing
from workbench.errors import ExportError, MissingResultError
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceMatrix:
    """A file for ``llama-quantize --imatrix FILE model.gguf out.gguf q4_k_m``; the older form for a name in ``.dat``.

    Tensors have llama.cpp's names, where it knows the architecture, else those of the model.
    """

    name: ClassVar = "imatrix"
    title: ClassVar = "llama.cpp importance matrix"
    description: ClassVar = "mean squared inputs of the calibration, for llama.cpp's quantizer (--imatrix)"
    needs_model: ClassVar = False

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, read back, compare; MissingResultError without a calibration, ExportError where it does not hold."""
        from workbench.deployment.imatrix import entries_of
        from workbench.models.gguf.imatrix import read_imatrix, write_imatrix, write_legacy

        entries = entries_of(quantized.summary, quantized.curvature)
        if not entries:
            raise MissingResultError(
                "an importance matrix holds the inputs of a calibration, and there is none; calibrate first, then "
                "export from that session",
                command="workbench calibrate ...",
            )
        with replacing(out, ExportError, "the importance matrix") as temporary:
            write = write_legacy if out.suffix.lower() == ".dat" else write_imatrix
            write(temporary, entries, quantized.calibrated_on)
            again = read_imatrix(temporary)
            for name, entry in entries.items():
                means, read = entry.means.reshape(-1), again[name].means.reshape(-1) if name in again else np.zeros(0)
                counted = np.repeat(entry.counts > 0, entry.means.shape[1])
                if read.size != counted.size or not np.allclose(read[counted], means[counted], rtol=1e-5, atol=0):
                    raise ExportError(f"the importance of {name} does not read back as it was written; please report")
        progress(1.0, f"wrote {out.name}")
        return (out,)
