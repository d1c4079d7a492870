"""Exports an ONNX file for ONNX Runtime, OpenVINO and TensorRT: weights and inputs in the form that the plan says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.atomic import replacing_with_data
from workbench.deployment.failed import keeping_failed
from workbench.deployment.tensors import check
from workbench.errors import ExportError
from workbench.progress import Progress, part_of
from workbench.readable import few

if TYPE_CHECKING:
    from workbench.deployment.onnx.file import Content
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Onnx:
    """One graph, its tensors beside it in ``<name>.data`` above 1 GB or where ``external``.

    ``accuracy`` is how MatMulNBits computes: 1 in float32, as it was evaluated; 4 rounds its inputs to 8 bits.
    ``standard``: ONNX's own operators alone, for TensorRT: blocks behind DequantizeLinear in place of MatMulNBits.
    """

    name: ClassVar = "onnx"
    title: ClassVar = "ONNX"
    description: ClassVar = "a graph for ONNX Runtime, OpenVINO and TensorRT, with the plan's own codes"
    needs_model: ClassVar = True
    external: bool = False
    accuracy: int = 1
    standard: bool = False

    def preparing(self, model: Model) -> float:
        """Return the seconds that capturing the network takes; an ONNX file's own graph is written."""
        from workbench.deployment.onnx.capture_cost import capture_seconds
        from workbench.models.sources.onnx_file import OnnxModel

        return 0.0 if isinstance(model, OnnxModel) else capture_seconds(model)

    def refuse(self, planned: QuantizedModel, model: Model) -> None:
        """See :class:`workbench.deployment.exporters.Refuses`."""
        self._content(planned, model)

    def left_out(self, model: Model) -> list[str]:
        """See :class:`workbench.deployment.exporters.LeavesOut`."""
        from workbench.deployment.onnx.capture import capture
        from workbench.models.sources.onnx_file import OnnxModel

        held = set() if isinstance(model, OnnxModel) else {*capture(model).weights}
        held |= {layer.name for layer in model.summary.layers if layer.parameter in held}
        shared = {layer.tied_to for layer in model.summary.tied if layer.name in held}
        return [layer.name for layer in model.summary.stored if held and layer.name not in held | shared]

    def remarks(self, quantized: QuantizedModel, model: Model, out: Path) -> list[str]:
        """See :class:`workbench.deployment.exporters.Remarks`."""
        from workbench.deployment.onnx.capture import capture, fixed_inputs, guessed_inputs
        from workbench.deployment.onnx.frequencies import trained_length
        from workbench.models.execution.network import NetworkModel
        from workbench.models.sources.onnx_file import OnnxModel

        if isinstance(model, OnnxModel):
            return []
        graph, network = capture(model), quantized.summary.name
        longest = trained_length(model.body.network) if isinstance(model, NetworkModel) else None
        scaled = [] if longest is None else [
            f"the graph has the rotary frequencies of texts of up to {longest:,} tokens; {network} computes others for "
            "longer ones (dynamic NTK), which a graph cannot"
        ]  # fmt: skip
        return scaled + [
            f"the graph takes {few([f'{name} of {shape}' for name, shape in inputs.items()], 4)} alone: {reason}"
            for inputs, reason in (
                (fixed_inputs(graph), f"torch could not capture {network} for other numbers of samples and tokens"),
                (guessed_inputs(model, graph), "no data say which, so these were tried; a calibrated session does"),
            ) if inputs
        ]  # fmt: skip

    def _content(self, quantized: QuantizedModel, model: Model | None) -> Content:
        from workbench.deployment.onnx.capture import require_onnx
        from workbench.deployment.onnx.file import content_of, require_accuracy

        require_onnx()
        require_accuracy(self.accuracy)
        return content_of(quantized, check(quantized, model), accuracy=self.accuracy, standard=self.standard)

    def export(self, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress) -> tuple[Path, ...]:
        """Write, read back by the package onnx, compare; see :class:`workbench.deployment.exporters.Exporter`."""
        from workbench.deployment.onnx.file import LARGE

        progress(0.0, "capturing the network")
        content = self._content(quantized, model)
        is_large, place = self.external or content.nbytes > LARGE, Path(os.path.realpath(out))
        with replacing_with_data(out, ExportError, "the ONNX file") as (temporary, data):
            _write(temporary, data if is_large else None, content, out, part_of(progress, 0.3, 1.0))
        progress(1.0, f"wrote {out.name}")
        return (place, place.with_name(data.name)) if is_large else (out,)


def _write(path: Path, data: Path | None, content: Content, out: Path, progress: Progress) -> None:
    """Write and prove; what fails its proof is kept under ``.failed``."""
    from workbench.deployment.onnx.file import prove, write

    write(path, content, data, part_of(progress, 0.0, 0.6))
    with keeping_failed(path if data is None else path.parent, out):
        prove(path, content, part_of(progress, 0.6, 1.0), graph=True)
