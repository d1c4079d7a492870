"""The metrics that people quote, against SciPy, scikit-learn and naive loops; and what cannot be measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.metrics import jaccard_score
from torch import nn

from tests.models.networks import Rows, model_of
from tests.models.sources.test_huggingface import save
from workbench.errors import DataError
from workbench.measurement.bootstrap import pseudo_values
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.data.datasets import open_dataset
from workbench.models.data.reading import Reading
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind

VOCABULARY = ["<pad>", "<s>", "</s>", "<unk>", "|", "A", "B", "C", "D"]


def test_pseudo_values_scatter_as_the_statistic_does() -> None:
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((300, 2)) @ np.array([[1.0, 0.7], [0.0, 0.7]])
    values = pseudo_values(samples, lambda rows: float(spearmanr(rows[:, 0], rows[:, 1]).statistic))
    assert values.mean() == pytest.approx(spearmanr(samples[:, 0], samples[:, 1]).statistic)
    draws = [samples[rng.integers(0, 300, 300)] for _ in range(400)]
    scatter = np.std([spearmanr(each[:, 0], each[:, 1]).statistic for each in draws])
    assert values.std() / np.sqrt(300) == pytest.approx(scatter, rel=0.15)


def test_pairs_of_texts_are_ranked(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig

    plain = save(tmp_path, "BertModel", BertConfig(vocab_size=48, hidden_size=16, intermediate_size=24,
                 num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=32))  # fmt: skip
    tokenizer = Tokenizer(models.WordLevel({f"w{number}": number for number in range(48)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    rng = np.random.default_rng(1)
    rows = [(rng.integers(1, 48, 3 + n % 4), rng.integers(1, 48, 2 + n % 5), n / 5) for n in range(25)]
    lines = [",".join([*(" ".join(f"w{i}" for i in ids) for ids in row[:2]), str(row[2])]) for row in rows]
    (tmp_path / "pairs.csv").write_text("\n".join(["sentence1,sentence2,score", *lines]))
    model = open_model(tmp_path)
    other = model.with_weights({"encoder.layer.0.output.dense": 3 * model.weight("encoder.layer.0.output.dense")})
    metric = evaluate(model, other, open_dataset(tmp_path / "pairs.csv", model), batch_size=5)["spearman"]
    with torch.no_grad():
        cosines = [
            torch.cosine_similarity(*(plain(torch.from_numpy(ids)[None])[0].mean(1) for ids in row[:2])).item()
            for row in rows
        ]
    assert metric.baseline == pytest.approx(spearmanr(cosines, [row[2] for row in rows]).statistic, abs=1e-6)
    assert metric.samples == 25
    assert metric.low <= metric.value <= metric.high


class Pixels(nn.Module):
    """Four classes at half the resolution."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(3, 4, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.one(x)
        return out


def test_segmentation_is_scored_by_intersection_over_union() -> None:
    torch.manual_seed(0)
    model = model_of(Pixels(), OutputKind.POSITION_CLASSES)
    images, labels = torch.randn(5, 3, 8, 12), torch.randint(0, 4, (5, 8, 12))
    labels[:, :2] = 255
    metric = evaluate(model, model.with_weights({}), Rows(inputs=images, labels=labels), batch_size=2)["mean_iou"]
    with torch.no_grad():
        logits = nn.functional.interpolate(model.body.network(images), (8, 12), mode="bilinear")
    counted = labels != 255
    expected = jaccard_score(labels[counted], logits.argmax(1)[counted], average="macro")
    assert metric.value == metric.baseline == pytest.approx(100 * expected)
    with pytest.raises(DataError, match="the labels are 0 to 7, the model has the classes 0 to 3"):
        evaluate(model, model, Rows(inputs=images, labels=labels.clamp(max=7)))


def speech(folder: Path, rate: int) -> Path:
    """Write four sounds of different lengths and a table of them with transcripts; returns the table."""
    soundfile = pytest.importorskip("soundfile")
    rng, lines = np.random.default_rng(2), ["file_name,transcription"]
    for number in range(4):
        wave = np.stack([0.1 * rng.standard_normal(rate // 10 + 300 * number)] * 2, axis=1)
        soundfile.write(folder / f"{number}.wav", wave, rate)
        lines.append(f"{number}.wav,{['AB CD', 'B', 'A A D', 'DC BA'][number]}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    return folder / "metadata.csv"


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Wav2Vec2 with its processor and tokenizer."""
    from transformers import Wav2Vec2Config

    folder = tmp_path_factory.mktemp("listener")
    config = Wav2Vec2Config(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        conv_dim=(8, 8), conv_stride=(10, 8), conv_kernel=(10, 8), num_conv_pos_embeddings=4, pad_token_id=0,
        num_conv_pos_embedding_groups=2, num_feat_extract_layers=2, do_stable_layer_norm=True,
        feat_extract_norm="layer",
    )  # fmt: skip
    save(folder, "Wav2Vec2ForCTC", config)
    settings = {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": 8000, "do_normalize": True,
                "padding_value": 0.0, "return_attention_mask": True, "feature_size": 1}  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(VOCABULARY)}))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "Wav2Vec2CTCTokenizer"}')
    return folder


@pytest.mark.parametrize("rate", [8000, 16000])
def test_words_are_counted_as_jiwer_counts_them(tmp_path: Path, listener: Path, rate: int) -> None:
    import jiwer
    from transformers import Wav2Vec2CTCTokenizer, Wav2Vec2ForCTC

    model = open_model(listener)
    data = open_dataset(speech(tmp_path, rate), model)
    metrics = evaluate(model, model.with_weights({}), data, batch_size=3)
    tokenizer = Wav2Vec2CTCTokenizer.from_pretrained(listener)
    with torch.no_grad():
        (batch,) = data.batches(4)
        output, points = model.run(batch), batch["attention_mask"].sum(dim=1)
        ends = Wav2Vec2ForCTC.from_pretrained(listener)._get_feat_extract_output_lengths(points).tolist()
        frames = [row[:end].argmax(-1).tolist() for row, end in zip(output, ends, strict=True)]
        decoded = map(tokenizer.decode, frames)  # to skip special tokens would skip blanks before runs are joined
        heard = [re.sub("<.*?>", "", text) for text in decoded]
    assert metrics["wer"].baseline == pytest.approx(100 * jiwer.wer(["AB CD", "B", "A A D", "DC BA"], heard))
    resampled = f"metadata.csv: resampled from {rate} to 8000 Hz, the model's rate"
    mixed = "metadata.csv: the channels of 4 of 4 sounds are mixed to one, their mean"
    assert data.notes == ((resampled,) if rate != 8000 else ()) + (mixed,)
    assert batch["inputs"].shape == (4, 800 + 900 * 8000 // rate)


def test_frames_after_the_end_of_a_sound_count_for_nothing(tmp_path: Path, listener: Path) -> None:
    """Sounds cost beside longer ones what they cost alone."""
    from workbench.measurement.gradients import drawn_gradient

    model, table = open_model(listener), speech(tmp_path, 8000)
    soundfile = pytest.importorskip("soundfile")
    rng = np.random.default_rng(2)
    for number, frames in enumerate((10, 13, 17, 21)):
        soundfile.write(tmp_path / f"{number}.wav", 0.1 * rng.standard_normal(80 * frames), 8000)
    data, name = open_dataset(table, model), "wav2vec2.encoder.layers.0.feed_forward.output_dense"
    other = model.with_weights({name: 3 * model.weight(name)})
    figures = evaluate(model, other, data, batch_size=4)
    alone = []
    for number, batch in enumerate(data.batches(1)):
        end = int(batch["attention_mask"].sum())
        cut = {"inputs": batch["inputs"][:, :end], "attention_mask": batch["attention_mask"][:, :end]}
        assert model.run(cut).shape[1] == (10, 13, 17, 21)[number]
        alone.append(evaluate(model, other, Rows(**cut)))
    for metric in ("kl", "top1_agreement"):
        own = [float(each[metric].per_sample[0]) for each in alone]
        assert figures[metric].per_sample == pytest.approx(own, rel=1e-3, abs=1e-6)
    (batch,) = data.batches(4)
    generators = [torch.Generator().manual_seed(number) for number in range(4)]
    drawn = drawn_gradient(model.run(batch).detach(), batch, model.summary.output, generators)
    assert [int(row.abs().sum(dim=-1).count_nonzero()) for row in drawn] == [10, 13, 17, 21]


@pytest.mark.parametrize(("head", "column"), [("text,audio", ""), ("sentence,path", ""), ("wav,said", "wav,said")])
def test_sounds_and_their_transcripts_have_usual_names(tmp_path: Path, listener: Path, head: str, column: str) -> None:
    model, table = open_model(listener), speech(tmp_path, 8000)
    plain = open_dataset(table, model)
    lines = [line.split(",") for line in table.read_text().splitlines()[1:]]
    rows = [",".join(line if column else line[::-1]) for line in lines]
    table.write_text("\n".join([head, *rows]) + "\n")
    data = open_dataset(Reading(column=column).after(str(table)), model)
    assert torch.equal(data.tensors["labels"], plain.tensors["labels"])
    assert torch.equal(data.tensors["inputs"], plain.tensors["inputs"])
    table.write_text("text\nAB CD\nB\n")
    text = r"the column text holds 'AB CD', which is not a file beside the table.*--column"
    with pytest.raises(DataError, match=text):
        open_dataset(table, model)


def test_folders_of_sounds_have_classes(tmp_path: Path, listener: Path) -> None:
    speech(tmp_path, 8000)
    for name, number in (("cat", 0), ("ant", 1), ("cat", 2)):
        (tmp_path / "sounds" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{number}.wav").rename(tmp_path / "sounds" / name / f"{number}.wav")
    data = open_dataset(tmp_path / "sounds", open_model(listener))
    assert data.tensors["labels"].tolist() == [0, 1, 1]
    (tmp_path / "sounds" / "cat" / "3.wav").write_text("no sound")
    with pytest.raises(DataError, match="3.wav cannot be read as a sound"):
        open_dataset(tmp_path / "sounds", open_model(listener))


def test_masks_with_an_axis_of_channels_and_empty_ones() -> None:
    torch.manual_seed(0)
    model = model_of(Pixels(), OutputKind.POSITION_CLASSES)
    images, labels = torch.randn(5, 3, 8, 12), torch.randint(0, 4, (5, 8, 12))
    plain, deep = (evaluate(model, model, Rows(inputs=images, labels=each)) for each in (labels, labels[:, None]))
    assert deep["mean_iou"].value == plain["mean_iou"].value
    notes: list[str] = []
    empty = evaluate(model, model, Rows(inputs=images, labels=torch.full_like(labels, 255)), notes=notes)
    assert "mean_iou" not in empty and "kl" in empty
    assert len(notes) == 1 and notes[0].startswith("rows gives no figure for Mean IoU: its labels are empty")
    with pytest.raises(DataError, match=r"the label 1.5 is not a class"):
        evaluate(model, model, Rows(inputs=images, labels=labels + 0.5))


def test_speech_without_words_has_no_word_error_rate(tmp_path: Path, listener: Path) -> None:
    import soundfile

    soundfile.write(tmp_path / "a.wav", np.zeros(4000), 16000)
    (tmp_path / "a.jsonl").write_text('{"audio": "a.wav", "transcription": ""}\n' * 3)
    model, notes = open_model(listener), list[str]()
    assert "wer" not in evaluate(model, model, open_dataset(tmp_path / "a.jsonl", model), notes=notes)
    assert "a.jsonl gives no figure for Word error rate" in notes[0]


class Forced(nn.Module):
    """Dropout that evaluation does not switch off."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.one(nn.functional.dropout(x, 0.3, training=True))
        return out


@pytest.mark.parametrize("run", [calibrate, lambda model, data: evaluate(model, model, data)])
def test_a_random_forward_pass_is_told_and_not_scored(run: Any) -> None:
    model = model_of(Forced(), OutputKind.CLASS_LOGITS)
    with pytest.raises(DataError, match="Forced is random: run twice on the same samples"):
        run(model, Rows(inputs=torch.randn(5, 6)))


class Rarely(nn.Module):
    """A step that the network takes by chance, as when layers are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.one(x)
        return out + (torch.rand(()) < 0.3)


@pytest.mark.parametrize("run", [calibrate, lambda model, data: evaluate(model, model, data)])
@pytest.mark.parametrize("seed", range(4))
def test_a_chance_that_is_rare_is_told(run: Any, seed: int) -> None:
    torch.manual_seed(seed)
    with pytest.raises(DataError, match="Rarely is random: run twice on the same samples"):
        run(model_of(Rarely(), OutputKind.CLASS_LOGITS), Rows(inputs=torch.randn(5, 6)))


def test_random_numbers_that_change_nothing_are_no_chance() -> None:
    class Draws(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.rand(())
            return super().forward(x)

    data = Rows(inputs=torch.randn(5, 6))
    assert calibrate(model_of(nn.Sequential(Draws(6, 3)), OutputKind.CLASS_LOGITS), data).samples == 5


@pytest.mark.parametrize("run", [calibrate, lambda model, data: evaluate(model, model, data)])
@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        (OutputKind.CLASS_LOGITS, [0, 1, 3]),
        (OutputKind.CLASS_LOGITS, [0, -1, 2]),
        (OutputKind.TOKEN_CLASSES, [[0, -100, 3]] * 3),
        (OutputKind.TOKEN_LOGITS, [[0, 255, 1]] * 3),
        (OutputKind.POSITION_CLASSES, [[[0, 255, 5]]] * 3),
    ],
)
def test_labels_outside_the_classes_are_told(run: Any, kind: OutputKind, labels: list[Any]) -> None:
    network = nn.Sequential(nn.Linear(6, 3)) if kind is not OutputKind.POSITION_CLASSES else Pixels()
    classes = 2 if kind is not OutputKind.POSITION_CLASSES else 3
    shape = {1: (3, 6), 2: (3, 3, 6), 3: (3, 3, 2, 6)}[torch.tensor(labels).ndim]
    with pytest.raises(DataError, match=f"the model has the classes 0 to {classes}; give labels"):
        run(model_of(network, kind), Rows(inputs=torch.randn(shape), labels=torch.tensor(labels)))


def test_labels_of_another_form_are_not_called_missing() -> None:
    model, notes = model_of(nn.Sequential(nn.Linear(6, 3)), OutputKind.CLASS_LOGITS), list[str]()
    evaluate(model, model, Rows(inputs=torch.randn(3, 6), labels=torch.eye(3)), notes=notes)
    (note,) = notes
    assert note.startswith("rows has labels of the shape (3, 3), and not a class for each sample, so there is no acc")


def test_fractions_are_no_classes() -> None:
    model = model_of(nn.Sequential(nn.Linear(6, 3)), OutputKind.CLASS_LOGITS)
    with pytest.raises(DataError, match=r"the label 0.5 is not a class; give the number of a class, 0 to 2"):
        evaluate(model, model, Rows(inputs=torch.randn(3, 6), labels=torch.tensor([0.5, 1, 2])))
