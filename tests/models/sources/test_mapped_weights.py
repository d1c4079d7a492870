"""Models that do not fit: their weights stay in the file, and every result is that of the model in memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import workbench
from tests.models.networks import Rows
from tests.models.sources.test_huggingface import SMALL, bert, save
from tests.numerics.statistics.same import same
from workbench import memory
from workbench.errors import MemoryLimitError
from workbench.measurement import gradients
from workbench.measurement.calibrate import Calibration, calibrate
from workbench.measurement.second_moments import SecondMoments
from workbench.memory import limited_to
from workbench.models.execution import saved, unread, widened
from workbench.models.execution.widened import Later, Widened
from workbench.models.layer import LayerKind
from workbench.models.model import Model
from workbench.models.sources import huggingface, open_model, roles, stored
from workbench.planning.plan import Plan


def config(kind: str) -> Any:
    import transformers

    if kind == "BertForMaskedLM":
        return bert()
    if kind == "GPT2LMHeadModel":
        return transformers.GPT2Config(vocab_size=48, n_embd=16, n_layer=2, n_head=2)
    if kind == "GemmaForCausalLM":  # scales its embeddings, ties its head
        return transformers.GemmaConfig(**SMALL, num_key_value_heads=1, head_dim=8)
    if kind == "GPTNeoXForCausalLM":  # one matrix for query, key and value
        return transformers.GPTNeoXConfig(**SMALL)
    if kind == "OlmoeForCausalLM":
        return transformers.OlmoeConfig(**SMALL, num_experts=4, num_experts_per_tok=2)
    return transformers.LlamaConfig(**SMALL, tie_word_embeddings=False)


KINDS = (
    "LlamaForCausalLM", "GPT2LMHeadModel", "BertForMaskedLM", "GemmaForCausalLM", "GPTNeoXForCausalLM",
    "OlmoeForCausalLM",
)  # fmt: skip


@pytest.fixture(params=KINDS)
def both(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Model, Model]:
    """The same checkpoint of two bytes a weight, in memory and in its file, which nothing copies."""
    with torch.random.fork_rng(devices=[]):
        save(tmp_path, request.param, config(request.param), torch.bfloat16)
    whole = open_model(tmp_path)
    monkeypatch.setattr(huggingface, "fits", lambda nbytes: False)
    monkeypatch.setattr(widened, "LEAST", 2)
    return whole, open_model(tmp_path)


IDS = np.random.default_rng(3).integers(0, 48, (6, 12))


def test_outputs_facts_and_weights_are_the_same(both: tuple[Model, Model]) -> None:
    whole, mapped = both
    assert mapped.summary == whole.summary
    batch = {"input_ids": torch.from_numpy(IDS)}
    with torch.no_grad():
        assert torch.equal(mapped.run(batch), whole.run(batch))
    parameters = list(mapped.body.network.parameters())  # type: ignore[attr-defined]
    assert any(isinstance(each, Widened) for each in parameters)
    for layer in whole.summary.layers:
        weight = mapped.weight(layer.name)
        assert weight.dtype == torch.bfloat16 and torch.equal(weight.float(), whole.weight(layer.name).float())


@pytest.fixture
def spilling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Everything that autograd saves lies on the disk."""
    monkeypatch.setenv(memory.SCRATCH_VARIABLE, str(tmp_path / "scratch"))
    monkeypatch.setattr(gradients, "SAVED_SHARE", 0)
    monkeypatch.setattr(saved, "SMALL", 1)
    monkeypatch.setattr(saved, "CHUNK", 1 << 12)  # small ones share a file, others have their own


def observed(model: Model) -> Calibration:
    return calibrate(model, Rows(input_ids=torch.from_numpy(IDS)), batch_size=2, seed=5)


@pytest.mark.usefixtures("spilling")
def test_calibration_gives_the_same_bits(both: tuple[Model, Model], monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[torch.Tensor] = []
    copy = memory.Scratch.copy
    monkeypatch.setattr(memory.Scratch, "copy", lambda self, tensor: (copies.append(tensor), copy(self, tensor))[1])
    whole, mapped = both
    exact = observed(whole)
    assert not copies
    with limited_to(1 << 40):
        result = observed(mapped)
    assert copies and result.curvature.keys() == exact.curvature.keys() and result.curvature
    for name, item in exact.curvature.items():
        np.testing.assert_array_equal(result.curvature[name].rows, item.rows)
        np.testing.assert_array_equal(result.curvature[name].columns, item.columns)
        np.testing.assert_array_equal(result.curvature[name].weighing, item.weighing)
    assert all(same(result.statistics[place], item) for place, item in exact.statistics.items())


@pytest.mark.usefixtures("spilling")
def test_moments_on_the_disk_are_those_in_memory(both: tuple[Model, Model], monkeypatch: pytest.MonkeyPatch) -> None:
    whole, mapped = both
    data, known = Rows(input_ids=torch.from_numpy(IDS)), observed(whole).curvature
    exact = dict(SecondMoments(whole, data, known, batch_size=1))  # as under the smallest limit
    monkeypatch.setattr(memory, "SPILLED", 1)
    with limited_to(1):
        result = dict(SecondMoments(mapped, data, known, nbytes=1 << 30))
    for name, item in exact.items():
        if item.full is not None:
            np.testing.assert_array_equal(result[name].full, item.full)


@pytest.mark.usefixtures("spilling")
def test_a_disk_that_fills_while_a_pass_spills_is_told(
    both: tuple[Model, Model], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left = [5]

    def filling(file: int, nbytes: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory, "reserve", filling)
    with limited_to(1 << 40), pytest.raises(MemoryLimitError, match="No space left on device; free some of it"):
        observed(both[1])
    assert not list((tmp_path / "scratch").rglob("*.scratch"))


def test_what_is_left_of_a_limit_is_looked_at_when_the_class_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.random.fork_rng(devices=[]):
        save(tmp_path, "LlamaForCausalLM", config("LlamaForCausalLM"), torch.bfloat16)
    calls: list[str] = []
    monkeypatch.setattr(huggingface, "_import_class", calls.append)
    monkeypatch.setattr(huggingface, "fits", lambda nbytes: bool(calls) or calls.append("fits") is None)
    with limited_to(1 << 40):
        open_model(tmp_path)
    assert calls == ["LlamaForCausalLM"]


def test_a_weight_may_be_larger_than_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports and forward passes take some of its rows at a time."""
    with torch.random.fork_rng(devices=[]):
        save(tmp_path, "LlamaForCausalLM", config("LlamaForCausalLM"), torch.bfloat16)
    whole = open_model(tmp_path)
    monkeypatch.setattr(stored, "available_memory", lambda: 1000)
    assert open_model(tmp_path).summary == whole.summary


def test_no_room_for_joined_experts_is_said_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.random.fork_rng(devices=[]):
        save(tmp_path, "OlmoeForCausalLM", config("OlmoeForCausalLM"), torch.bfloat16)
    monkeypatch.setattr(huggingface, "fits", lambda nbytes: False)
    monkeypatch.setattr(widened, "LEAST", 2)
    monkeypatch.setattr(memory, "LEFT_ON_DISK", 1 << 60)
    with pytest.raises(MemoryLimitError, match=r"cannot be put on the disk.*no space left; free some"):
        open_model(tmp_path)


def test_experts_of_a_checkpoint_are_not_read_before_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.random.fork_rng(devices=[]):
        save(tmp_path, "OlmoeForCausalLM", config("OlmoeForCausalLM"), torch.bfloat16)
    for module, name in ((huggingface, "fits"), (unread, "LEAST"), (widened, "LEAST"), (roles, "MOST_READ")):
        monkeypatch.setattr(module, name, (lambda nbytes: False) if name == "fits" else 2)
    written, write = list[Later](), Later._write
    monkeypatch.setattr(Later, "_write", lambda self, out: (written.append(self), write(self, out)))
    model = open_model(tmp_path)
    experts = [layer for layer in model.summary.layers if layer.kind is LayerKind.EXPERTS]
    assert len(experts) == 4 and not written
    model.weight(experts[0].name)
    assert len(written) == 3  # gates and ups of all experts, joined to one


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what is resident")
def test_what_was_hashed_and_exported_does_not_stay_resident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config("LlamaForCausalLM")
    settings.vocab_size, settings.hidden_size, settings.intermediate_size, settings.head_dim = 1 << 15, 64, 64, 32
    with torch.random.fork_rng(devices=[]):
        save(tmp_path, "LlamaForCausalLM", settings, torch.bfloat16)
    monkeypatch.setattr(huggingface, "fits", lambda nbytes: False)
    model = open_model(tmp_path)
    plan = Plan.uniform([layer for layer in model.summary.stored if "layers" in layer.name], "q4_0", algorithm="rtn")
    workbench.apply(model, plan, "gguf", tmp_path / "out.gguf")
    lines = Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines()
    places = [number for number, line in enumerate(lines) if f"{tmp_path}/model" in line]
    resident = sum(int(line.split()[1]) for place in places for line in lines[place : place + 5] if "Rss:" in line)
    assert places and resident < 6000  # kB, of the 8,400 that embeddings and head take: the system maps some ahead


@pytest.mark.parametrize(("allowed", "mapped"), [(1.2, True), (1.9, True), (2.1, False)])
def test_under_a_limit_as_much_as_the_weights_take_is_left_for_the_work(
    allowed: float, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "available_memory", lambda: int(allowed * 10**9))
    assert stored.fits(10**9)
    with limited_to(1 << 40):
        assert stored.fits(10**9) is not mapped
