"""A file of tensor types for llama.cpp's quantizer: the types that the GGUF file of the same plan has."""

from __future__ import annotations

import re
from pathlib import Path

import gguf
import pytest

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    place = tmp_path_factory.mktemp("llama")
    return open_model(folder_of("llama", place, hidden_size=256, intermediate_size=512, head_dim=64))


def test_it_names_the_types_that_the_gguf_file_has(model: Model, tmp_path: Path) -> None:
    names = [layer.name for layer in model.summary.stored]
    plan = Plan().assign(names[1::2], weights="q4_k").assign(names[2::4], weights="q5_1")
    quantized = quantize(model, plan)
    exporter("tensor-types").export(quantized, None, tmp_path / "types.txt", silent)
    exporter("gguf").export(quantized, model, tmp_path / "model.gguf", silent)
    pairs = [line.rsplit("=", 1) for line in (tmp_path / "types.txt").read_text().split()]
    matrices = {
        tensor.name: tensor.tensor_type.name.lower() for tensor in gguf.GGUFReader(tmp_path / "model.gguf").tensors
        if len(tensor.shape) > 1
    }  # fmt: skip
    for name, kind in matrices.items():
        assert [value for pattern, value in pairs if re.search(pattern, name)] == [kind]
    assert len(pairs) == len(matrices)


def test_what_is_no_type_is_refused_and_nothing_is_written(model: Model, tmp_path: Path) -> None:
    names = [layer.name for layer in model.summary.stored]
    for plan, reason in (
        (Plan().assign(names[:2], weights="int4-g32"), "is not a GGUF type"),
        (Plan().assign(names[:2], weights="q4_0", inputs="int8-token"), "schemes of inputs"),
        (Plan(transforms=("fold-norms",)).assign(names[:2], weights="q4_0"), "transforms"),
    ):
        quantized = QuantizedModel(summary=model.summary, plan=plan, tensors={})
        with pytest.raises(ExportError, match=reason):
            exporter("tensor-types").export(quantized, None, tmp_path / "types.txt", silent)
    assert not any(tmp_path.iterdir())
