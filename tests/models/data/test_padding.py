"""Padding of pictures and sounds counts in nothing: not in what is observed, nor in moments, gradients and losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import nn

from tests.models.networks import Rows, model_of
from tests.models.sources.test_huggingface import save
from tests.zoo.architectures import save as save_tiny
from workbench.measurement.calibrate import calibrate
from workbench.measurement.divergence import sample_divergence
from workbench.measurement.gini_impurity import impurities_of
from workbench.measurement.gradients import drawn_gradients
from workbench.measurement.second_moments import SecondMoments
from workbench.models.data.batches import Padding, output_mask
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind
from workbench.quantization.learning.loop import divergence

SIZES = ((64, 96), (32, 64))


def detector(kind: str, **levels: Any) -> Any:
    """Return a tiny network of the DETR family over a ResNet."""
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 12, 16], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage2", "stage3", "stage4"] if levels else ["stage4"],
    )  # fmt: skip
    sizes = {f"{end}_{name}": value for end in ("encoder", "decoder")
             for name, value in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 24))}  # fmt: skip
    return getattr(transformers, kind)(
        backbone_config=backbone, use_timm_backbone=False, backbone=None, use_pretrained_backbone=False, d_model=32,
        num_queries=4, num_labels=3, **sizes, **levels,
    )  # fmt: skip


def padded_pictures() -> Rows:
    """Return two pictures of other sizes, the second filled up."""
    mask = torch.zeros(len(SIZES), 64, 96, dtype=torch.int64)
    for each, (height, width) in zip(mask, SIZES, strict=True):
        each[:height, :width] = 1
    pixels = torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(0)) * mask[:, None]
    return Rows(inputs=pixels, pixel_mask=mask)


@pytest.fixture
def detr(tmp_path: Path) -> Model:
    save(tmp_path, "DetrForObjectDetection", detector("DetrConfig"))
    return open_model(tmp_path)


def seen_by(model: Model, data: Rows, layer: str) -> torch.Tensor:
    """Return the input of a layer."""
    inputs: list[torch.Tensor] = []
    with torch.no_grad():
        model.run(next(data.batches(2)), tap=lambda name, x, y: inputs.append(x), layers=(layer,))
    return inputs[0]


def test_pixels_that_fill_a_picture_up_are_not_observed(detr: Model) -> None:
    data = padded_pictures()
    result = calibrate(detr, data, batch_size=2)
    mask, checked = data.tensors["pixel_mask"].float()[None], 0
    convolutions = [layer.name for layer in detr.summary.layers if layer.kind.is_convolution]
    for layer in (*convolutions, "model.encoder.layers.0.mlp.fc1"):
        x = seen_by(detr, data, layer)
        flat = x.ndim == 3  # the places of the last picture, which is 2 x 3 of 64 x 96
        coarse = F.interpolate(mask, (2, 3) if flat else x.shape[2:], mode="nearest")[0].bool()
        real = x[coarse.flatten(1)] if flat else x.movedim(1, -1)[coarse]
        assert real.numel() < x.numel()
        observed = result.statistics[layer, "input"]
        assert observed.count == real.numel()
        np.testing.assert_allclose(observed.channel_absmax, real.abs().amax(dim=0), rtol=1e-5)
        checked += 1
    assert checked == len(convolutions) + 1 > 5
    assert result.curvature["model.encoder.layers.0.mlp.fc1"].count == 6 + 2


def test_moments_of_convolutions_are_those_of_real_places(detr: Model) -> None:
    data = padded_pictures()
    known = calibrate(detr, data, batch_size=2).curvature
    layer = next(each for each in detr.summary.layers if "layer.1.convolution" in each.name)
    x = seen_by(detr, data, layer.name)
    columns = F.unfold(x, 3, padding=1).transpose(1, 2)
    coarse = F.interpolate(data.tensors["pixel_mask"].float()[None], x.shape[2:], mode="nearest")[0].bool()
    real = columns[coarse.flatten(1)].double()
    full = SecondMoments(detr, data, known, batch_size=2)[layer.name].full
    assert full is not None
    np.testing.assert_allclose(full[0], (real.T @ real / len(real)).numpy(), rtol=1e-4, atol=1e-6)


def test_levels_of_a_picture_follow_each_other(tmp_path: Path) -> None:
    """Deformable DETR's encoder reads several sizes of a picture in a row."""
    save(tmp_path, "DeformableDetrForObjectDetection", detector("DeformableDetrConfig", num_feature_levels=4))
    model, data = open_model(tmp_path), padded_pictures()
    x = seen_by(model, data, "model.encoder.layers.0.mlp.fc1")
    mask, sizes = data.tensors["pixel_mask"].float()[None], ((8, 12), (4, 6), (2, 3), (1, 2))
    expected = torch.cat([F.interpolate(mask, size, mode="nearest")[0].bool().flatten(1) for size in sizes], dim=1)
    found = Padding.of(next(data.batches(2))).mask(x)
    assert found is not None and torch.equal(found, expected)


def test_pictures_in_a_row_are_told_apart_from_those_that_are_empty() -> None:
    """Idefics3 leaves pictures out of which no pixel is real."""
    mask = torch.zeros(2, 2, 32, 32, dtype=torch.int64)
    mask[0, 0], mask[0, 1, :16, :24], mask[1, 0, :32, :8] = 1, 1, 1
    batch = {"pixel_values": torch.randn(2, 2, 3, 32, 32), "pixel_attention_mask": mask}
    found = Padding.of(batch).mask(torch.randn(3, 16, 8))
    assert found is not None and found.sum(dim=1).tolist() == [16, 6, 4]
    given = Padding.of({"pixel_values in a row": torch.randn(2, 2, 3, 32, 32), "pixel_attention_mask in a row": mask})
    same = given.mask(torch.randn(3, 16, 8))
    assert same is not None and torch.equal(same, found)
    patches = Padding.of({"pixel_values": torch.randn(2, 9, 12), "pixel_attention_mask": mask[0, :, :1, :9].flatten(1)})
    rows = patches.mask(torch.randn(2, 9, 8))
    assert rows is None, "all of them are real"


class Pixels(nn.Module):
    """Classes of pixels at half the size."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.head = nn.Conv2d(3, 8, 2, stride=2), nn.Conv2d(8, 4, 1)

    def forward(self, pixel_values: torch.Tensor, pixel_mask: torch.Tensor | None = None) -> torch.Tensor:
        logits: torch.Tensor = self.head(torch.relu(self.enter(pixel_values)))
        return logits


def test_losses_count_real_pixels_alone() -> None:
    model = model_of(Pixels(), OutputKind.POSITION_CLASSES)
    pictures = padded_pictures().tensors
    kind, output = OutputKind.POSITION_CLASSES, model.run(pictures).detach()
    batch, real = pictures, pictures["pixel_mask"][:, ::2, ::2].flatten(1).bool()
    mask = output_mask(batch, output)
    assert mask is not None and torch.equal(mask, real)
    other = torch.where(real[..., None], output, output + torch.randn_like(output))
    assert float(divergence(other, output, batch, kind)) < 1e-7
    assert float(sample_divergence(output, other, batch, kind).abs().max()) < 1e-9
    for gradient in drawn_gradients(output, batch, kind, [torch.Generator(), torch.Generator()], 1):
        assert not gradient[~real].any() and gradient[real].any()


@pytest.fixture
def speech(tmp_path: Path) -> Model:
    save_tiny(tmp_path, "Wav2Vec2ForCTC", feat_extract_norm="layer")
    return open_model(tmp_path)


def test_frames_are_real_where_the_network_says_so(speech: Model) -> None:
    """A convolution's frame that reaches into the padding is none; rounding the proportion up took it for one."""
    lengths = [1600, 810, 805, 804]
    mask = (torch.arange(1600) < torch.tensor(lengths)[:, None]).long()
    batch = speech.on_device({"inputs": torch.randn(4, 1600) * mask, "attention_mask": mask})
    network: Any = speech.body.network  # type: ignore[attr-defined]
    output = speech.run(batch)
    expected = network._get_feature_vector_attention_mask(output.shape[1], mask)
    for found in (output_mask(batch, output), Padding.of(batch).mask(torch.randn(4, output.shape[1], 8))):
        assert found is not None and torch.equal(found, expected)
    again = speech.on_device(batch)
    assert again.keys() == batch.keys()


def test_impurities_and_what_is_learnt_leave_frames_of_padding_out(speech: Model) -> None:
    mask = (torch.arange(1600) < torch.tensor([1600, 810])[:, None]).long()
    batch = speech.on_device({"inputs": torch.randn(2, 1600) * mask, "attention_mask": mask})
    kind, output = speech.summary.output, speech.run(batch).detach()
    real = output_mask(batch, output)
    assert real is not None
    other = torch.where(real[..., None], output, output + 3 * torch.randn_like(output))
    assert float(divergence(other, output, batch, kind)) < 1e-7
    np.testing.assert_allclose(impurities_of(speech, other, batch), impurities_of(speech, output, batch), rtol=1e-6)
