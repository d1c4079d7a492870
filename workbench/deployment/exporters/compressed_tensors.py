"""Exports a compressed-tensors checkpoint for vLLM and transformers: each layer packed as the plan says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from workbench.deployment.exporters.checkpoint import CheckpointExporter
from workbench.plain_file import read_json
from workbench.planning.plan import resolve
from workbench.readable import few

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedTensors(CheckpointExporter):
    """A folder with config.json, shards under the original's names and the tokenizer.

    The tensors take the plan's bytes, 16 more for each packed integer layer (its shape), and what fills the rows of
    packed codes and of zero points up to four bytes.
    """

    name: ClassVar = "compressed-tensors"
    title: ClassVar = "compressed-tensors folder"
    stored_by: ClassVar = "compressed_tensors.CompressedTensorsMethod"
    description: ClassVar = "a packed checkpoint that vLLM and transformers load"

    def remarks(self, quantized: QuantizedModel, model: Model, out: Path) -> list[str]:
        """See :class:`workbench.deployment.exporters.Remarks`."""
        from workbench.deployment.checkpoints.loading import loads_in_transformers
        from workbench.deployment.targets import target

        runtime, assignments = target("transformers"), resolve(quantized.plan, quantized.summary.layers)
        whole = read_json(out / "config.json").get("quantization_config", {}).get("dequantize", False)
        refused = {
            name: reason for name, assignment in assignments.items() if name in quantized.tensors
            and not (whole and quantized.tensors[name].scheme != "nvfp4")  # which is unpacked to bfloat16
            and (reason := runtime.legal(quantized.summary.by_name[name], assignment.weights, assignment.inputs))
        }  # fmt: skip
        rotated = [
            f"the inputs of {few(quantized.changes.rotated)} are rotated while the model runs: vLLM does so by "
            "config.json; transformers 5 takes a call of compressed_tensors.transform.apply_transform_config"
        ] * bool(quantized.changes.rotated)  # fmt: skip
        remarks = [
            f"{len(refused):,} of the layers do not run in transformers as they were evaluated, beginning with {first} "
            f"({reason}); vLLM has its own rules, and a repair for transformers changes the plan "
            "(--repair of workbench check --target transformers)"
            for first, reason in list(refused.items())[:1]
        ]
        return rotated + (remarks or loads_in_transformers(out, model))
