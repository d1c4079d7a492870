"""Networks of torchvision and timm through the whole journey: ``WORKBENCH_VISION=FOLDER pytest -m slow`` of this file.

On its own, as transformers takes other image processors once torchvision is there.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

from tests.zoo.flow import HIGH, JUDGED, LOW, ROUNDING, Row, run
from tests.zoo.pictures import NAMES, importable, loaded, samples, save
from tests.zoo.test_zoo import show_at_the_end
from workbench.deployment.exporters import exporter
from workbench.models.layer import LayerKind
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

pytestmark = [
    pytest.mark.slow, pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not importable(), reason="torchvision and timm are in no folder that WORKBENCH_VISION names"),
]  # fmt: skip
SAMPLES = 128
HEAVY = ("levit", "vovnet", "tv-mnasnet")
"""A sample or two of random pictures make most of a layer's loss: the median is judged."""

ROWS: list[Row] = []


@pytest.fixture(scope="module", autouse=True)
def table(request: pytest.FixtureRequest) -> None:
    show_at_the_end(request, ROWS)


@pytest.mark.parametrize("name", NAMES)
def test_a_network_of_pictures(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    save(folder, name)
    row = run(folder, tmp_path / "out", SAMPLES, samples(name, SAMPLES), partial(loaded, folder))
    ROWS.append(row)
    assert not row.refusal or row.refusal.startswith("no plan fits"), row.refusal  # rows too short for 4.5 bits
    assert row.seen == row.matter > 0
    assert row.judged >= JUDGED, row.line()
    assert row.difference <= ROUNDING
    assert LOW <= sorted(row.ratios.values())[len(row.ratios) // 2] <= HIGH, row.ratios
    assert name in HEAVY or row.within >= 0.85, row.ratios


def test_nine_layers_in_ten_are_predicted() -> None:
    assert ROWS, "the networks were not run; this test judges what they left"
    ratios = [ratio for row in ROWS for ratio in row.ratios.values()]
    assert sum(LOW <= ratio <= HIGH for ratio in ratios) >= 0.9 * len(ratios)


@pytest.mark.parametrize("name", ["test_vit", "test_efficientnet", "test_nfnet"])
def test_a_folder_of_timm(tmp_path: Path, name: str) -> None:
    """What is exported opens in timm and in transformers; pictures are made as timm makes them."""
    import numpy as np
    import timm
    from PIL import Image
    from safetensors.torch import save_file
    from timm.models._hub import save_config_for_hf
    from transformers import AutoModelForImageClassification

    from workbench.models.data.pictures.processor import picture_processor
    from workbench.models.readers.timm_config import timm_pictures

    folder, out = tmp_path / name, tmp_path / "out"
    folder.mkdir()
    network = timm.create_model(name, num_classes=10)
    save_file({key: each.contiguous() for key, each in network.state_dict().items()}, folder / "model.safetensors")
    save_config_for_hf(network, str(folder / "config.json"))
    model = open_model(folder)
    quantized = quantize(model, Plan.uniform(model.summary.layers, "int6-channel"))
    exporter("huggingface").export(quantized, model, out, silent)
    batch = model.sample(2)
    assert batch is not None
    with torch.no_grad():
        expected = quantized.bind(model).run(batch)
        plain = timm.create_model(f"local-dir:{out}", pretrained=True).eval()(batch["pixel_values"])
        other = AutoModelForImageClassification.from_pretrained(out).eval()(**batch).logits
    assert torch.equal(plain, expected) and torch.equal(other, expected)
    linear = [layer.name for layer in model.summary.stored if layer.kind is LayerKind.LINEAR and not layer.keep]
    packed = quantize(model, Plan().assign(linear, weights="int8-channel", algorithm="rtn"))
    with torch.no_grad():
        expected = packed.bind(model).run(batch)
        for form in ("compressed-tensors", "torchao"):
            exporter(form).export(packed, model, tmp_path / form, silent)
            assert exporter(form).remarks(packed, model, tmp_path / form) == []
            other = AutoModelForImageClassification.from_pretrained(tmp_path / form).eval()(**batch).logits
            torch.testing.assert_close(other, expected)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (211, 325, 3), dtype=np.uint8))
    for changes in ({}, {"crop_mode": "squash"}, {"crop_mode": "border"}, {"crop_mode": "border", "crop_pct": 1.3},
                    {"input_size": (3, 96, 131)}, {"input_size": (3, 131, 96), "crop_mode": "border"},
                    {"input_size": (3, 96, 131), "crop_mode": "squash", "interpolation": "lanczos"},
                    {"input_size": (1, 97, 97), "mean": (0.2,), "std": (0.3,)}):  # fmt: skip
        settings = network.pretrained_cfg | changes
        transform = timm.data.create_transform(**timm.data.resolve_data_config({}, pretrained_cfg=settings))
        pictures = timm_pictures({"pretrained_cfg": settings})
        assert pictures is not None
        shown = picture.convert("L") if pictures.channels == 1 else picture
        np.testing.assert_allclose(pictures([shown])["pixel_values"][0], transform(shown).numpy(), atol=1e-6)
    processor = picture_processor(model.inputs)
    assert processor is not None and processor.compact and processor.size == model.inputs.size
