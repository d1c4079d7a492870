"""Pictures as they come: by the processor in the model's folder, deep, turned, transparent, animated."""

from __future__ import annotations

import json
import resource
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from tests.models.data.test_datasets import model
from workbench.errors import DataError
from workbench.models.data.datasets import open_dataset
from workbench.models.sources.huggingface import _image_inputs

PROCESSORS: dict[str, dict[str, Any]] = {
    "stretched": {"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 20}},
    "old name": {"feature_extractor_type": "ViTFeatureExtractor", "size": 16, "image_mean": [0.1, 0.2, 0.3]},
    "cropped, bicubic, its class's own mean": {
        "image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 16},
        "crop_size": {"height": 16, "width": 16},
    },
    "cropped by a share": {
        "image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 16}, "crop_pct": 0.875,
    },
    "blue first, not normalised": {
        "image_processor_type": "MobileViTImageProcessor", "size": {"shortest_edge": 18},
        "crop_size": {"height": 16, "width": 16}, "do_flip_channel_order": True,
    },
    "not normalised": {"image_processor_type": "ViTImageProcessor", "size": 16, "do_normalize": False},
    "to -1 to 1": {
        "image_processor_type": "EfficientNetImageProcessor", "size": {"height": 16, "width": 16},
        "rescale_factor": 1 / 127.5, "rescale_offset": True,
    },
}  # fmt: skip


def folder_with(folder: Path, settings: dict[str, Any], labels: dict[str, int] | None = None) -> Path:
    folder.mkdir()
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({"model_type": "vit", "label2id": labels or {}}))
    return folder


def pictures(folder: Path, sizes: tuple[tuple[int, int], ...] = ((40, 30), (25, 50), (16, 16))) -> list[Image.Image]:
    """Save random pictures (height x width) and return them."""
    folder.mkdir()
    made = [Image.fromarray(np.random.default_rng(number).integers(0, 256, (*size, 3), dtype=np.uint8))
            for number, size in enumerate(sizes)]  # fmt: skip
    for number, picture in enumerate(made):
        picture.save(folder / f"{number}.png")
    return made


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_processor_of_the_folder_makes_the_inputs(tmp_path: Path, name: str) -> None:
    from transformers import AutoImageProcessor

    folder = folder_with(tmp_path / "model", PROCESSORS[name])
    made = pictures(tmp_path / "data")
    loader: Any = AutoImageProcessor
    expected = loader.from_pretrained(str(folder), backend="pil")(made, return_tensors="np")["pixel_values"]
    (batch,) = open_dataset(tmp_path / "data", model(tokens=False, channels=3, folder=folder)).batches(8)
    np.testing.assert_allclose(batch["inputs"].numpy(), expected, atol=1e-5)


def test_pictures_that_are_filled_up_come_with_their_mask(tmp_path: Path) -> None:
    settings = {"image_processor_type": "DetrImageProcessor", "size": {"shortest_edge": 24, "longest_edge": 48}}
    spec = {"tokens": False, "channels": 3, "folder": folder_with(tmp_path / "model", settings)}
    pictures(tmp_path / "data")
    (batch,) = open_dataset(tmp_path / "data", model(**spec, takes=("pixel_values", "pixel_mask"))).batches(8)
    assert batch["inputs"].shape[0] == 3 and batch["inputs"].shape[2:] == batch["pixel_mask"].shape[1:]
    assert 0 < float(batch["pixel_mask"].float().mean()) < 1
    assert "pixel_mask" not in open_dataset(tmp_path / "data", model(**spec, takes=("pixel_values",))).tensors


def test_arrays_of_bytes_are_normalised_as_the_processor_does(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "model", PROCESSORS["cropped, bicubic, its class's own mean"])
    pixels = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", images=pixels)
    (batch,) = open_dataset(tmp_path / "a.npz", model(tokens=False, channels=3, folder=folder)).batches(8)
    mean, std = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    expected = ((pixels / 255 - mean) / std).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(batch["inputs"].numpy(), expected, atol=1e-5)
    np.savez(tmp_path / "a.npz", images=pixels[:, :8])
    with pytest.raises(DataError, match="8 x 16 pixels, the model takes 16 x 16"):
        next(open_dataset(tmp_path / "a.npz", model(tokens=False, channels=3, folder=folder)).batches(8))


def test_a_processor_that_transformers_lacks_is_named(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "model", {"image_processor_type": "NoSuchProcessor"})
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    pictures(tmp_path / "data")
    with pytest.raises(DataError, match=r"the image processor in .*model cannot be used: .*preprocessor_config.json"):
        open_dataset(tmp_path / "data", model(tokens=False, folder=folder))


def opened(folder: Path, channels: int = 3, size: tuple[int, int] | None = None) -> torch.Tensor:
    """Return the first picture of a folder, channels x height x width in 0 to 255."""
    (batch,) = open_dataset(folder, model(tokens=False, channels=channels, size=size)).batches(1)
    return (batch["inputs"][0] * 255).round()


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_sixteen_bits_are_scaled_and_not_cut_off(tmp_path: Path, suffix: str) -> None:
    values = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / f"a.{suffix}")
    assert opened(tmp_path).tolist() == [[[0, 1, 128, 255]]] * 3
    assert opened(tmp_path, channels=1).tolist() == [[[0, 1, 128, 255]]]


def test_a_picture_of_floats_is_scaled(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 0.5, 1]], dtype=np.float32)).save(tmp_path / "a.tiff")
    assert opened(tmp_path).tolist() == [[[0, 128, 255]]] * 3


def test_a_turned_picture_stands_upright(tmp_path: Path) -> None:
    picture = Image.fromarray(np.array([[[10] * 3, [200] * 3]], dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right when it is shown
    picture.save(tmp_path / "a.png", exif=exif)
    assert opened(tmp_path)[0].tolist() == [[10], [200]]


@pytest.mark.parametrize("orientation", range(10))
def test_pictures_are_turned_as_pillow_turns_them(tmp_path: Path, orientation: int) -> None:
    picture = Image.fromarray(np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 14)
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture.save(tmp_path / "a.png", exif=exif)
    with Image.open(tmp_path / "a.png") as stored:
        upright = np.asarray(ImageOps.exif_transpose(stored)).transpose(2, 0, 1)
    assert np.array_equal(opened(tmp_path).numpy(), upright)


def test_nothing_but_the_orientation_is_read_of_exif(tmp_path: Path) -> None:
    """A turned picture's EXIF was written again, tag by tag: eight megabytes took seconds, and odd tags failed."""
    picture = Image.fromarray(np.array([[[10] * 3, [200] * 3]], dtype=np.uint8))
    tags = [(0x0112, 3, 1, 6), (0x83BB, 12, 1, 8)]  # a text that is a number
    exif = b"II*\0\x08\0\0\0\x02\0" + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(80)
    picture.save(tmp_path / "a.png", exif=exif)
    with Image.open(tmp_path / "a.png") as stored, pytest.raises(TypeError):
        ImageOps.exif_transpose(stored)
    assert opened(tmp_path)[0].tolist() == [[10], [200]]


def test_a_png_file_of_very_many_chunks_is_named(tmp_path: Path) -> None:
    Image.new("L", (3, 2)).save(tmp_path / "a.png")
    whole = (tmp_path / "a.png").read_bytes()
    chunk = bytes(4) + b"abCd" + zlib.crc32(b"abCd").to_bytes(4, "big")
    for count in (10_000, 20_000):
        (tmp_path / "a.png").write_bytes(whole[:33] + chunk * count + whole[33:])
        if count == 10_000:
            assert opened(tmp_path).shape == (3, 2, 3)
    with pytest.raises(DataError, match="too many pieces for a file of its size"):
        opened(tmp_path)


def test_grey_palette_transparent_and_animated_pictures_are_read(tmp_path: Path) -> None:
    for number, mode in enumerate(("1", "L", "LA", "P", "RGBA", "CMYK")):
        picture = Image.new("RGB", (3, 2), (255, 255, 255)).convert(mode)
        folder = tmp_path / str(number)
        folder.mkdir()
        picture.save(folder / f"a.{'tiff' if mode == 'CMYK' else 'png'}")
        assert opened(folder).tolist() == [[[255] * 3] * 2] * 3, mode
    first, second = (Image.new("L", (3, 2), value) for value in (255, 0))
    (tmp_path / "animated").mkdir()
    first.save(tmp_path / "animated" / "a.gif", save_all=True, append_images=[second])
    assert opened(tmp_path / "animated").tolist() == [[[255] * 3] * 2] * 3


def test_an_empty_picture_file_is_named(tmp_path: Path) -> None:
    pictures(tmp_path / "data")
    (tmp_path / "data" / "9.png").write_bytes(b"")
    with pytest.raises(DataError, match="9.png cannot be read as an image"):
        opened(tmp_path / "data", size=(4, 4))


def test_a_picture_that_its_file_cannot_hold_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("1", (9000, 9000)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image.Image, "convert", None)
    with pytest.raises(DataError, match=r"bomb.png cannot be read .* has 9,000 x 9,000 pixels, .* may have 67,.*scale"):
        opened(tmp_path, size=(4, 4))


def test_class_folders_are_the_models_own_classes(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "model", PROCESSORS["stretched"], {"dog": 0, "cat": 1, "owl": 2})
    (tmp_path / "data").mkdir()
    for name in ("cat", "dog"):
        pictures(tmp_path / "data" / name)
    data = open_dataset(tmp_path / "data", model(tokens=False, channels=3, folder=folder))
    assert data.tensors["labels"].tolist() == [1, 1, 1, 0, 0, 0]
    pictures(tmp_path / "data" / "yak")
    with pytest.raises(DataError, match="the model has no class 'yak'; its classes are dog, cat, owl"):
        open_dataset(tmp_path / "data", model(tokens=False, channels=3, folder=folder))


@pytest.mark.parametrize(
    "settings",
    [
        {"size": {"height": 40000, "width": 40000}}, {"size": {"height": 2**40, "width": 2**40}},
        {"do_pad": True, "pad_size": {"height": 10**6, "width": 10**6}}, {"size": {"height": -1, "width": -1}},
        {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 60000}},
        {"image_processor_type": "Pix2StructImageProcessor", "max_patches": 10**9},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_processor_of_endless_pictures_is_named(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Their first picture took gigabytes."""
    folder = folder_with(tmp_path / "model", {"image_processor_type": "ViTImageProcessor", **settings})
    pictures(tmp_path / "data")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match=r"^the image processor in .*model ") as caught:
        open_dataset(tmp_path / "data", model(tokens=False, folder=folder))
    assert "\n" not in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 19  # KB: half a gigabyte


@pytest.mark.parametrize("folder", ["evil/repository", "/tmp"])
def test_a_processor_asks_nothing_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    looked_up = list[str]()
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *_, **__: looked_up.append(host) or [])
    settings = {"image_processor_type": "OneFormerImageProcessor", "repo_path": folder, "class_info_file": "x.json"}
    model_folder = folder_with(tmp_path / "model", settings)
    pictures(tmp_path / "data")
    with pytest.raises(DataError, match="cannot be used"):
        open_dataset(tmp_path / "data", model(tokens=False, folder=model_folder))
    assert not looked_up


@pytest.mark.parametrize(("size", "sides"), [
    (16, (16, 16)), ([16, 20], (16, 20)), ({"height": 16, "width": 20}, (16, 20)), ({"shortest_edge": 16}, (16, 16)),
    (40000, None), (-1, None), (0, None), (True, None), ("16", None), ([16], None), ({"longest_edge": 16}, None),
    ({"height": [1], "width": {}}, None), (2.5, None), (None, None), (10**400, None),
])  # fmt: skip
def test_sizes_that_are_no_pictures_are_not_known(tmp_path: Path, size: Any, sides: tuple[int, int] | None) -> None:
    inputs = _image_inputs(folder_with(tmp_path / "model", {"size": size, "image_mean": 0.5, "image_std": "x"}), {})
    assert inputs.size == sides and inputs.mean == (0.5,) and inputs.std is None


def test_formats_that_start_programs_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they are called: Pillow hands EPS to Ghostscript, where that is installed."""
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin.EpsImageFile, "_open", lambda self: pytest.fail("it was taken for EPS"))
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 16 16\n%%EndComments\nshowpage\n%%EOF\n"
    (tmp_path / "x.png").write_bytes(eps)
    with pytest.raises(DataError, match=r"x\.png cannot be read as an image: cannot identify"):
        next(iter(open_dataset(tmp_path, model(tokens=False, channels=3)).batches(1)))


def test_masks_are_not_taken_for_a_class_of_pictures(tmp_path: Path) -> None:
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (4, 4)).save(tmp_path / name / "x.png")
    with pytest.raises(DataError, match=r"masks holds masks.*npz of pixel_values, and labels"):
        open_dataset(tmp_path, model(tokens=False, channels=3))


def test_pictures_of_numbers_beyond_16_bits_are_told(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    Image.fromarray(np.full((4, 4), 1 << 30, np.int32)).save(tmp_path / "deep" / "a.tif")
    with pytest.raises(DataError, match=r"it holds numbers up to 1,073,741,824; save it with 8 or 16 bits"):
        open_dataset(tmp_path / "deep", model(tokens=False, channels=3))


def test_folders_of_splits_with_classes_in_them_are_named(tmp_path: Path) -> None:
    for split in ("train", "val"):
        (tmp_path / split / "cat").mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / split / "cat" / "a.png")
    with pytest.raises(DataError, match="pictures in the folders of train, val; give one of these"):
        open_dataset(tmp_path, model(tokens=False, channels=3))


def test_a_folder_that_says_nothing_of_its_pictures_is_told(tmp_path: Path) -> None:
    """One of timm's in transformers' wrapper, without ``pretrained_cfg``: pictures went in as they came, silently."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": "timm_wrapper"}))
    pictures(tmp_path / "pictures", ((16, 16),))
    known = model(tokens=False, folder=tmp_path / "model", channels=3)
    (note,) = open_dataset(tmp_path / "pictures", known).notes
    assert "says nothing of how its pictures are made" in note and "pretrained_cfg" in note and "as they come" in note
