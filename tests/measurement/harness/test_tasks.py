"""Tasks of lm-evaluation-harness from local files: the harness's own figures, on both models, with paired intervals."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from workbench.errors import BackendUnavailableError, DataError, TrustRequiredError
from workbench.measurement.harness import tasks
from workbench.measurement.harness.tasks import TaskFiles, evaluate_tasks
from workbench.measurement.paired import against_baseline
from workbench.models.data import tokenizing
from workbench.models.data.text import tokenizer_of
from workbench.models.model import Model
from workbench.models.sources import open_model

WORDS = 48
CHOICES = """
task: choices
dataset_path: json
dataset_kwargs: {data_files: {test: choices.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
"""
TEXTS = """
task: texts
dataset_path: json
dataset_kwargs: {data_files: {test: texts.jsonl}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list:
  - {metric: word_perplexity}
  - {metric: bits_per_byte}
"""
SAMPLED = """
task: sampled
dataset_path: json
dataset_kwargs: {data_files: {test: texts.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{text}}"
doc_to_target: "w1"
generation_kwargs: {do_sample: true, temperature: 0.7, until: ["w2"]}
metric_list:
  - {metric: exact_match}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WORDS, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=16, initializer_range=0.5, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    vocabulary = {f"w{number}": number for number in range(WORDS) if number not in (1, 2)} | {"<s>": 1, "</s>": 2}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return open_model(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)

    def words(count: int) -> str:
        return " ".join(f"w{number}" for number in generator.integers(3, WORDS, count))

    rows = [{"question": words(4), "choices": [words(2) for _ in range(4)], "answer": int(generator.integers(4))}
            for _ in range(30)]  # fmt: skip
    (tmp_path / "choices.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps({"text": words(40)}) for _ in range(5)))
    (tmp_path / "choices.yaml").write_text(CHOICES)
    (tmp_path / "texts.yaml").write_text(TEXTS)
    return tmp_path


def other(model: Model) -> Model:
    torch.manual_seed(1)
    names = [name for name in model.summary.by_name if name.endswith("down_proj")]
    return model.with_weights({n: w + 0.3 * torch.randn_like(w) for n in names for w in [model.weight(n)]})


def likelihood(model: Model, ids: list[int], count: int) -> float:
    """The log-likelihood of the last ``count`` ids."""
    with torch.no_grad():
        logits = model.run({"input_ids": torch.tensor([ids[:-1]])})[0].double().log_softmax(-1)
    return float(logits[-count:].gather(1, torch.tensor(ids[-count:])[:, None]).sum())


def ids_of(text: str) -> list[int]:
    return [int(word[1:]) for word in text.split()]


def test_both_models_answer_the_same_questions(model: Model, folder: Path) -> None:
    pytest.importorskip("lm_eval")
    candidate = other(model)
    before, notes = Path.cwd(), list[str]()
    figures = evaluate_tasks(model, candidate, TaskFiles.at(folder, trust=True), notes=notes)
    assert Path.cwd() == before and not notes
    assert set(figures) == {"choices:acc", "texts:word_perplexity", "texts:bits_per_byte"}
    rows = [json.loads(line) for line in (folder / "choices.jsonl").read_text().splitlines()]
    accuracy = figures["choices:acc"]
    for each, own in ((model, accuracy.baseline_per_sample), (candidate, accuracy.per_sample)):
        right = [
            int(np.argmax([likelihood(each, ids_of(row["question"]) + ids_of(c), 2) for c in row["choices"]]))
            == row["answer"] for row in rows
        ]  # fmt: skip
        assert own is not None and own.tolist() == [float(value) for value in right]
    difference = against_baseline(accuracy)
    assert difference is not None and difference.low <= difference.value <= difference.high
    texts = [ids_of(json.loads(line)["text"]) for line in (folder / "texts.jsonl").read_text().splitlines()]
    total = 0.0
    for ids in texts:  # windows of 16 tokens side by side, the first one after BOS
        stream = [1, *ids]
        starts = range(0, len(ids), 16)
        for start in starts:
            end = min(start + 16, len(ids))
            total += likelihood(model, stream[max(0, end - 16) : end + 1], end - start)
    words = sum(map(len, texts))
    assert figures["texts:word_perplexity"].baseline == pytest.approx(math.exp(-total / words), rel=1e-4)


@dataclass
class Request:
    args: tuple[Any, ...]


class Elsewhere:
    """A tokenizer that works in other processes alone."""

    def __init__(self, own: Any) -> None:
        self._own, self._process = own, os.getpid()

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._own, name)

        def work(*arguments: Any, **options: Any) -> Any:
            assert os.getpid() != self._process, name
            return own(*arguments, **options)

        return work if callable(own) else own


def asked(model: Model) -> Any:
    from workbench.measurement.harness.language_model import LanguageModel

    assert model.inputs.tokenizer is not None
    tokenizer = tokenizer_of(model.inputs, Path("x.yaml"))
    return LanguageModel(model, Elsewhere(tokenizer), model.inputs.tokenizer, 4, lambda count: None)


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_the_tokenizer_of_a_folder_works_in_limited_processes_alone(model: Model) -> None:
    pytest.importorskip("lm_eval")
    language = asked(model)
    pairs = [("w5 w6 ", "w7"), ("", "w8 w9"), ("", "<s> w9"), ("w10", " w11 w12")]
    ids = [([5, 6], [7]), ([1], [8, 9]), ([1], [9]), ([10], [11, 12])]
    answers = language.loglikelihood([Request(pair) for pair in pairs])
    assert [answer for answer, _ in answers] == pytest.approx(
        [likelihood(model, context + ending, len(ending)) for context, ending in ids], rel=1e-5
    )
    (rolling,) = language.loglikelihood_rolling([Request(("w3 w4 w5",))])
    assert rolling == pytest.approx(likelihood(model, [1, 3, 4, 5], 3), rel=1e-5)
    known = [20, 21]
    for _ in range(6):
        known.append(int(model.run({"input_ids": torch.tensor([known])})[0, -1].argmax()))
    words = [f"w{number}" for number in known[2:]]
    (whole,) = language.generate_until([Request(("w20 w21", {"max_gen_toks": 6}))])
    assert whole == " ".join(words)
    (cut,) = language.generate_until([Request(("w20 w21", {"max_gen_toks": 6, "until": [words[3]]}))])
    assert cut == whole.split(words[3])[0]


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("place", [0, 11, 30, 39, None])
def test_endings_are_looked_for_in_several_tokens_at_once(
    model: Model, monkeypatch: pytest.MonkeyPatch, place: int | None
) -> None:
    """Each look takes a process; tokens behind the ending, which nobody asked for, are not in the answer."""
    pytest.importorskip("lm_eval")
    from workbench.measurement.harness import language_model

    language, plan, looks = asked(model), [3 + number for number in range(40)], list[int]()

    def counted(decode: Any, folder: Path, rows: Any) -> list[str]:
        looks.append(len(rows))
        return tokenizing.texts_of(decode, folder, rows)

    monkeypatch.setattr(language_model, "texts_of", counted)
    monkeypatch.setattr(language_model, "continued", partial(planned, plan))
    ending = "never" if place is None else f"w{plan[place]}"
    (answer,) = language.generate_until([Request(("w20", {"max_gen_toks": 40, "until": [ending]}))])
    assert answer.split() == [f"w{number}" for number in plan[:place]]
    assert sum(looks[:-1]) <= 40 and len(looks) < 26


def planned(plan: list[int], model: Model, ids: Any, *, most: int, kept: Any) -> list[int]:
    """Continue with the tokens of ``plan``, as a model would."""
    for length in range(most + 1):
        if (count := kept(plan[:length], length == most)) is not None:
            return plan[: int(count)]
    raise AssertionError("kept says how many when told that they are the last")


def test_a_tokenizer_that_never_ends_on_a_text_is_one_line(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lm_eval")
    monkeypatch.setattr(tokenizing, "SECONDS", 1.0)
    assert model.inputs.tokenizer is not None
    shutil.copytree(model.inputs.tokenizer, tmp_path / "m")
    tokenizer = Tokenizer.from_file(str(tmp_path / "m" / "tokenizer.json"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(w+)+$"), "removed")
    tokenizer.save(str(tmp_path / "m" / "tokenizer.json"))
    language = asked(open_model(tmp_path / "m"))
    for ask, words in (("loglikelihood", ("a", "w" * 40 + "!")), ("generate_until", ("w" * 40 + "!", {}))):
        with pytest.raises(DataError, match="^the tokenizer in .* (cannot be used|takes more)"):
            getattr(language, ask)([Request(words)])


def test_fewer_documents_are_taken_where_a_bound_is_given(model: Model, folder: Path) -> None:
    pytest.importorskip("lm_eval")
    figures = evaluate_tasks(model, model, TaskFiles.at(folder / "choices.yaml", trust=True), samples=7)
    assert list(figures) == ["choices:acc"] and figures["choices:acc"].samples == 7
    assert figures["choices:acc"].value == figures["choices:acc"].baseline


@pytest.mark.parametrize(
    ("text", "reason"),
    [(SAMPLED, "draws its answers at random"), ("task: x\nno: [", "cannot be run"),
     (CHOICES.replace("choices.jsonl", "missing.jsonl"), "cannot be run: .*missing"),
     (CHOICES.replace("{{question}}", "{{question"), "cannot be run"),
     (CHOICES.replace("dataset_path: json", "dataset_path: nobody/nothing"), "cannot be run")],
)  # fmt: skip
def test_what_cannot_be_asked_is_said_in_one_sentence(model: Model, folder: Path, text: str, reason: str) -> None:
    pytest.importorskip("lm_eval")
    (folder / "bad.yaml").write_text(text)
    with pytest.raises(DataError, match=reason) as caught:
        evaluate_tasks(model, model, TaskFiles.at(folder / "bad.yaml", trust=True))
    assert "\n" not in str(caught.value)


def test_tasks_need_trust_a_file_the_harness_and_a_language_model(
    model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TrustRequiredError, match=r"choices.yaml run as programs; allow it \(--trust\)"):
        TaskFiles.at(folder / "choices.yaml")
    with pytest.raises(DataError, match="there is no task file at .*nothing.yaml"):
        TaskFiles.at(folder / "nothing.yaml", trust=True)
    with pytest.raises(DataError, match="there is no task file"):
        TaskFiles.at(folder / "choices.jsonl", trust=True)
    files = TaskFiles.at(folder, trust=True)
    (folder / "texts.yaml").write_text(TEXTS + "\n")
    assert TaskFiles.at(folder, trust=True).content_hash != files.content_hash
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'quantization-workbench\[tasks\]'"):
        evaluate_tasks(model, model, files)


def test_git_is_not_asked_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It complains on the terminal outside of a repository, and its answer is not used."""
    asked = [0]
    evaluator = SimpleNamespace(get_git_commit_hash=lambda: asked.append(1))
    monkeypatch.setitem(sys.modules, "lm_eval", SimpleNamespace(evaluator=evaluator))
    with tasks._within(tmp_path):
        assert Path.cwd() == tmp_path and not evaluator.get_git_commit_hash()
    assert asked == [0] and evaluator.get_git_commit_hash() is None and asked == [0, 1]


def test_models_that_generate_no_text_are_refused(folder: Path) -> None:
    from tests.models.networks import convolutions

    with pytest.raises(DataError, match="is not a causal language model"):
        evaluate_tasks(convolutions(0), convolutions(0), TaskFiles.at(folder, trust=True))
