"""Arrays under the names of forward's arguments: several inputs, encoder-decoders, images' positions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.models.sources.test_huggingface import save
from tests.zoo.architectures import save as save_tiny
from workbench.errors import DataError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.divergence import sample_divergence
from workbench.measurement.evaluate import evaluate
from workbench.models.data.datasets import open_dataset
from workbench.models.layer import LayerKind
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind

IDS = np.arange(2, 14).reshape(2, 6)
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
LABELS = np.array([[5, 6, 7, 1, -100, -100], [8, 1, -100, -100, -100, -100]])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, torch.nn.Module]:
    """A tiny T5."""
    from transformers import T5Config

    folder = tmp_path_factory.mktemp("t5")
    config = T5Config(vocab_size=48, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, decoder_start_token_id=0)
    return folder, save(folder, "T5ForConditionalGeneration", config)


def test_an_encoder_decoder_is_measured_on_its_labels(tmp_path: Path, pair: tuple[Path, torch.nn.Module]) -> None:
    folder, plain = pair
    np.savez(tmp_path / "pairs.npz", input_ids=IDS, attention_mask=MASK, labels=LABELS)
    model = open_model(folder)
    data = open_dataset(tmp_path / "pairs.npz", model)
    metrics = evaluate(model, model.with_weights({}), data)
    inputs = {"input_ids": torch.from_numpy(IDS), "attention_mask": torch.from_numpy(MASK)}
    with torch.no_grad():
        logits = plain(**inputs, labels=torch.from_numpy(LABELS)).logits
    loss = F.cross_entropy(logits.flatten(0, 1), torch.from_numpy(LABELS).flatten(), ignore_index=-100)
    assert metrics["perplexity"].baseline == pytest.approx(loss.exp().item(), rel=1e-5)
    assert metrics["perplexity"].weights.tolist() == [4, 2]
    assert metrics["kl"].value == 0


def test_each_end_of_an_encoder_decoder_has_its_own_padding(tmp_path: Path, pair: tuple[Path, torch.nn.Module]) -> None:
    """Both ends are equally long and equally shaped, and yet each layer is observed on its own end's tokens."""
    np.savez(tmp_path / "pairs.npz", input_ids=IDS, attention_mask=MASK, labels=LABELS)
    model = open_model(pair[0])
    statistics = calibrate(model, open_dataset(tmp_path / "pairs.npz", model)).statistics
    assert statistics["encoder.block.1.layer.0.SelfAttention.q", "output"].count == 16 * MASK.sum()
    assert statistics["decoder.block.1.layer.0.SelfAttention.q", "output"].count == 16 * (LABELS >= 0).sum()
    assert statistics["decoder.block.1.layer.1.EncDecAttention.k", "output"].count == 16 * MASK.sum()
    assert statistics["lm_head", "output"].count == 48 * (LABELS >= 0).sum()


def test_what_the_forward_needs_and_the_data_lack_is_named(tmp_path: Path, pair: tuple[Path, torch.nn.Module]) -> None:
    np.savez(tmp_path / "half.npz", input_ids=IDS)
    with pytest.raises(DataError, match=r"also needs decoder_input_ids \(samples x decoder tokens\), or labels"):
        open_dataset(tmp_path / "half.npz", open_model(pair[0]))
    np.savez(tmp_path / "uneven.npz", input_ids=IDS, labels=LABELS[:1])
    with pytest.raises(DataError, match="their rows are input_ids 2, labels 1"):
        open_dataset(tmp_path / "uneven.npz", open_model(pair[0]))
    np.savez(tmp_path / "empty.npz", input_ids=IDS, labels=LABELS, attention_mask=MASK * [[1], [0]])
    with pytest.raises(DataError, match="is 0 all through in 1 of 2 samples, the first is 1"):
        open_dataset(tmp_path / "empty.npz", open_model(pair[0]))


def test_a_picture_without_a_real_pixel_is_told(tmp_path: Path) -> None:
    save_tiny(tmp_path / "model", "MaskFormerForInstanceSegmentation")
    model, mask = open_model(tmp_path / "model"), np.ones((2, 64, 64), bool)
    batch = model.sample(2)
    assert batch is not None
    pixels = batch["pixel_values"].numpy()
    np.savez(tmp_path / "whole.npz", pixel_values=pixels, pixel_mask=255 * mask)
    data = open_dataset(tmp_path / "whole.npz", model)
    assert data.tensors["pixel_mask"].tolist() == mask.astype(int).tolist()
    assert data.notes == ("whole.npz: the pixel mask holds 255, which is taken for 1",)
    mask[1] = False
    np.savez(tmp_path / "empty.npz", pixel_values=pixels, pixel_mask=mask)
    with pytest.raises(DataError, match="the pixel mask is 0 all through in 1 of 2 samples, the first is 1"):
        open_dataset(tmp_path / "empty.npz", model)


def test_speech_goes_into_an_encoder_decoder(tmp_path: Path) -> None:
    from transformers import WhisperConfig

    config = WhisperConfig(
        vocab_size=60, num_mel_bins=8, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_source_positions=10, pad_token_id=0,
        max_target_positions=12, decoder_start_token_id=1, bos_token_id=1, eos_token_id=2, suppress_tokens=None,
        begin_suppress_tokens=None,
    )  # fmt: skip
    plain = save(tmp_path, "WhisperForConditionalGeneration", config)
    features = np.random.default_rng(0).standard_normal((3, 8, 20)).astype(np.float32)
    np.savez(tmp_path / "speech.npz", input_features=features, decoder_input_ids=np.arange(12).reshape(3, 4) + 3)
    model = open_model(tmp_path)
    (batch,) = open_dataset(tmp_path / "speech.npz", model).batches(3)
    with torch.no_grad():
        expected = plain(input_features=torch.from_numpy(features), decoder_input_ids=batch["decoder_input_ids"]).logits
    torch.testing.assert_close(model.run(batch), expected)


TWO = """
import torch

class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = torch.nn.Linear(3, 4), torch.nn.Linear(5, 4)
    def forward(self, price, text, *, scale=None):
        return (self.left(price) + self.right(text)) * (1 if scale is None else scale[:, None])

build = Two
"""


def test_a_network_of_several_inputs_takes_them_by_name(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO)
    model = open_model(tmp_path / "two.py", trust=True)
    arrays = {"price": np.ones((4, 3)), "text": np.ones((4, 5)), "scale": np.full(4, 2.0)}
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez(tmp_path / "b.npz", price=arrays["price"], text=arrays["text"])
    twice, once = (model.run(*open_dataset(tmp_path / name, model).batches(4)) for name in ("a.npz", "b.npz"))
    torch.testing.assert_close(twice, 2 * once)
    np.savez(tmp_path / "c.npz", price=arrays["price"])
    with pytest.raises(DataError, match="holds price; the model also needs text"):
        open_dataset(tmp_path / "c.npz", model)


GRAPH = """
import torch

class Graph(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Parameter(torch.randn(9, 32) / 3)
        self.second = torch.nn.Parameter(torch.randn(32, 32) / 6)
        self.out = torch.nn.Linear(32, 4)
    def forward(self, x, relations):
        x = torch.relu(relations @ x @ self.first)
        return self.out(torch.relu(relations @ x @ self.second).mean(1))

build = Graph
"""


def test_the_layers_of_a_network_of_several_inputs_are_those_that_run(tmp_path: Path) -> None:
    """A weight whose outputs come last is known by its product alone; its files were of the transposed one."""
    for name, text in (("two", GRAPH), ("one", GRAPH.replace(", relations", "").replace("relations @ ", ""))):
        (tmp_path / f"{name}.py").write_text(text)
        layers = open_model(tmp_path / f"{name}.py", trust=True).summary.layers
        assert [(layer.kind, layer.matrix) for layer in layers] == [
            (LayerKind.LINEAR, (32, 9)), (LayerKind.LINEAR, (32, 32)), (LayerKind.LINEAR, (4, 32))
        ]  # fmt: skip


PADDED = """
import torch

class Padded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 32)
        self.block = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.out = torch.nn.Linear(32, 5)
    def forward(self, tokens, padding):
        return self.out(self.block(self.words(tokens), src_key_padding_mask=padding).mean(1))

build = Padded
"""


def test_truth_values_stay_truth_values(tmp_path: Path) -> None:
    (tmp_path / "padded.py").write_text(PADDED)
    model = open_model(tmp_path / "padded.py", trust=True)
    np.savez(tmp_path / "a.npz", tokens=np.ones((3, 6), np.int64), padding=np.arange(6)[None] >= [[3], [4], [6]])
    (batch,) = open_dataset(tmp_path / "a.npz", model).batches(3)
    assert batch["padding"].dtype == torch.bool
    own = model.body.network
    torch.testing.assert_close(model.run(batch), own(batch["input_ids"], batch["padding"]), rtol=1e-5, atol=1e-6)


SEVERAL = """
import torch

class Several(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Conv2d(3, 6, 3), torch.nn.Conv2d(6, 8, 3)
    def forward(self, x):
        first = self.one(x)
        second = self.two(first)
        return RETURNED

build = Several
"""


def test_a_network_of_several_outputs_says_which_counts(tmp_path: Path) -> None:
    (tmp_path / "maps.py").write_text(SEVERAL.replace("RETURNED", "[first, second]"))
    (note,) = open_model(tmp_path / "maps.py", trust=True).notes
    assert note.startswith("the network returns 2 tensors (samples x 6 x 30 x 30, 8 x 28 x 28), of which the first is")
    objects = "[{'boxes': each, 'labels': each, 'scores': each} for each in second]"
    (tmp_path / "objects.py").write_text(SEVERAL.replace("RETURNED", objects))
    model = open_model(tmp_path / "objects.py", trust=True)
    with pytest.raises(DataError, match=r"list of 2 dictionaries \(boxes, labels, scores\).*OUTPUT = \"detections\""):
        model.run({"inputs": torch.zeros(2, 3, 32, 32)})


PAIRS = """
import torch

class Pairs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.others = torch.nn.Embedding(50, 16), torch.nn.Embedding(60, 16)
        self.out = torch.nn.Linear(16, 60)
    def forward(self, source, target):
        return self.out(self.words(source).mean(1, keepdim=True) + self.others(target))

build = Pairs
"""


def test_the_second_text_of_a_network_of_two_has_a_class_for_each_token(tmp_path: Path) -> None:
    (tmp_path / "pairs.py").write_text(PAIRS)
    assert open_model(tmp_path / "pairs.py", trust=True).summary.output is OutputKind.TOKEN_CLASSES


PIXELS = """
import torch

class Pixels(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Conv2d(3, 6, 3, padding=1)
    def forward(self, x):
        return self.one(x)

build = Pixels
"""


def test_a_segmentation_is_compared_along_its_classes(tmp_path: Path) -> None:
    images = np.random.default_rng(1).standard_normal((2, 3, 4, 5)).astype(np.float32)
    np.save(tmp_path / "images.npy", images)
    (tmp_path / "plain.py").write_text(PIXELS)
    model = open_model(tmp_path / "plain.py", trust=True)
    (batch,) = open_dataset(tmp_path / "images.npy", model).batches(2)
    assert model.summary.output is OutputKind.POSITION_CLASSES, "6 numbers for each pixel of 3 channels"
    assert "taken for the logits of 6 classes at every pixel" in model.notes[0]
    (tmp_path / "restored.py").write_text(PIXELS.replace("(3, 6", "(3, 3"))
    with pytest.raises(DataError, match=r"returned \(2, 3, 4, 5\), class logits are samples x classes"):
        open_model(tmp_path / "restored.py", trust=True).run(batch)
    (tmp_path / "pixels.py").write_text(PIXELS + 'OUTPUT = "position_classes"\n')
    model = open_model(tmp_path / "pixels.py", trust=True)
    other = model.with_weights({"one": 1.1 * model.weight("one")})
    with torch.no_grad():
        images, own = batch["inputs"], model.body.network.one
        p = torch.log_softmax(F.conv2d(images, own.weight, own.bias, padding=1), 1)
        q = torch.log_softmax(F.conv2d(images, 1.1 * own.weight, own.bias, padding=1), 1)
        measured = sample_divergence(model.run(batch), other.run(batch), batch, OutputKind.POSITION_CLASSES)
    expected = (p.exp() * (p - q)).sum(dim=(1, 2, 3))
    torch.testing.assert_close(measured.float(), expected, rtol=1e-4, atol=1e-6)
    metrics = evaluate(model, other, open_dataset(tmp_path / "images.npy", model))
    assert metrics["kl"].value == pytest.approx(expected.mean().item(), rel=1e-4)
    agree = (p.argmax(1) == q.argmax(1)).float().mean().item()
    assert metrics["top1_agreement"].value == pytest.approx(100 * agree)


@pytest.mark.parametrize("mask", [(MASK - 1.0) * 1e4, MASK * 0.5])
def test_a_mask_that_is_added_to_scores_is_refused(
    tmp_path: Path, pair: tuple[Path, torch.nn.Module], mask: np.ndarray
) -> None:
    np.savez(tmp_path / "added.npz", input_ids=IDS, labels=LABELS, attention_mask=mask)
    with pytest.raises(DataError, match=r"give 1 for what is real and 0 for padding|holds fractions"):
        open_dataset(tmp_path / "added.npz", open_model(pair[0]))
    from transformers import BertConfig

    save(tmp_path / "bert", "BertModel", BertConfig(vocab_size=48, hidden_size=16, num_hidden_layers=1,
                                                    num_attention_heads=2, intermediate_size=24))  # fmt: skip
    np.savez(tmp_path / "added.npz", input_ids=IDS, attention_mask=mask)
    with pytest.raises(DataError, match=r"attention mask holds numbers from .* give 1 for what is real and 0 for"):
        open_dataset(tmp_path / "added.npz", open_model(tmp_path / "bert"))


def test_a_model_that_chooses_takes_several_texts_a_sample(tmp_path: Path) -> None:
    """Ids are samples x choices x tokens, and what is padding counts in no statistics."""
    from transformers import BertConfig

    config = BertConfig(
        vocab_size=48, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=16,
    )  # fmt: skip
    save(tmp_path / "bert", "BertForMultipleChoice", config)
    ids, mask = np.arange(2, 38).reshape(2, 3, 6), np.ones((2, 3, 6), np.int64)
    mask[:, 1, 4:] = 0
    np.savez(tmp_path / "a.npz", input_ids=ids, attention_mask=mask, labels=np.array([0, 2]))
    model = open_model(tmp_path / "bert")
    data = open_dataset(tmp_path / "a.npz", model)
    statistics = calibrate(model, data).statistics
    assert statistics["bert.encoder.layer.0.intermediate.dense", "input"].count == 16 * mask.sum()
    assert "accuracy" in evaluate(model, model.with_weights({}), data)
    np.savez(tmp_path / "b.npz", input_ids=ids[:, 0])
    with pytest.raises(DataError, match=r"input_ids: samples x choices x tokens"):
        calibrate(model, open_dataset(tmp_path / "b.npz", model))
