"""Samples as people read them: the tokenizer's own text, thumbnails that keep brightness, numbers in words."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.errors import DataError
from workbench.models.data.datasets import Dataset
from workbench.models.data.inputs import InputSpec
from workbench.models.data.record import DataRecord
from workbench.models.data.samples import MOST_PIXELS, decoder, read_samples, thumbnail


def test_text_comes_back_as_the_tokenizer_reads_it() -> None:
    from workbench.models.data.text import encode
    from workbench.models.sources.bundled import bundled_folder

    folder = bundled_folder("language-model")
    spec = InputSpec(tokens=True, tokenizer=folder)
    text = "def quantize(weight):\n    return round(weight / 3)"
    assert decoder(spec)([encode(text, spec, folder), []]) == [text, ""]


def test_without_a_tokenizer_the_ids_are_shown() -> None:
    numbers, many = decoder(InputSpec())([[3, 1, 4], list(range(40))])
    assert numbers == "3 1 4" and many.endswith("… (40 tokens)")


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 1), (8, 8, 3), (3, 8, 8), (1, 8, 8)])
def test_thumbnails_of_every_layout(shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    picture = thumbnail(pixels)
    assert picture is not None and picture.shape == (8, 8, 3) and picture.dtype == np.uint8
    if shape == (3, 8, 8):
        assert np.array_equal(picture, np.moveaxis(pixels, 0, -1))


def test_large_pictures_are_averaged() -> None:
    pixels = np.zeros((400, 200), np.uint8)
    pixels[::2, ::2] = 200
    picture = thumbnail(pixels)
    assert picture is not None and max(picture.shape) <= MOST_PIXELS
    assert abs(float(picture.mean()) - float(pixels.mean())) < 6


def test_floats_are_spread_and_what_is_no_image_has_no_picture() -> None:
    picture = thumbnail(np.linspace(-1, 1, 16).reshape(4, 4))
    assert picture is not None and picture.min() == 0 and picture.max() == 255
    constant = thumbnail(np.full((4, 4), np.nan))
    assert constant is not None and not constant.any()
    assert thumbnail(np.zeros(7)) is None and thumbnail(np.zeros((5, 6, 7))) is None


def test_a_page_of_images_with_labels() -> None:
    import torch

    from workbench.models.data.datasets import Dataset
    from workbench.models.data.record import DataRecord

    record = DataRecord(name="d", path="d", split="all", samples=5, seed=0, content_hash="sha256:0")
    tensors = {"inputs": torch.arange(5 * 16).reshape(5, 4, 4).to(torch.uint8), "labels": torch.arange(5) % 2}
    page = read_samples(Dataset(record=record, tensors=tensors), InputSpec(), 3, 10)
    assert [(item.index, item.label) for item in page] == [(3, 1), (4, 0)]
    assert page[0].text == "4 × 4 values from 48 to 63" and page[0].picture is not None
    with pytest.raises(DataError, match="from -1"):
        read_samples(Dataset(record=record, tensors=tensors), InputSpec(), -1, 10)


@pytest.mark.parametrize("shape", [(3, 8, 8), (5, 3, 8, 8)], ids=["one", "tiles"])
def test_texts_with_pictures_show_both(shape: tuple[int, ...]) -> None:
    pixels = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0))
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    record = DataRecord(name="a", path="a", split="all", samples=2, seed=0, content_hash="")
    page = read_samples(Dataset(record=record, tensors={"input_ids": ids, "pixel_values": pixels}), InputSpec(), 0, 2)
    assert [sample.tokens for sample in page] == [3, 3]
    whole = pixels if pixels.ndim == 4 else pixels[:, -1]
    for sample, array in zip(page, whole.numpy(), strict=True):
        assert sample.picture is not None
        np.testing.assert_array_equal(sample.picture, thumbnail(array))
