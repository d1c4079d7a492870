"""Networks that run without their weights being read do with them what they do when these are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.zoo.architectures import save
from workbench.models.execution import unread as module
from workbench.models.execution.unread import Unread, unread
from workbench.models.sources import open_model, roles

NAMES = (
    "LlamaForCausalLM", "GPT2LMHeadModel", "MixtralForCausalLM", "Qwen3MoeForCausalLM", "GptOssForCausalLM",
    "DeepseekV3ForCausalLM", "Mamba2ForCausalLM", "JambaForCausalLM", "GemmaForCausalLM", "BertModel",
    "T5ForConditionalGeneration", "CLIPModel", "WhisperForConditionalGeneration", "ConvNextForImageClassification",
)  # fmt: skip


@pytest.fixture(params=[1 << 23, 256], ids=["made up", "large results are not"])
def nothing_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST", 1)
    monkeypatch.setattr(module, "MOST_NOISE", request.param)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_layers_and_taps_are_those_of_a_run_that_reads(
    name: str, tmp_path: Path, nothing_read: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / name, name)
    known = open_model(tmp_path / name)
    monkeypatch.setattr(roles, "MOST_READ", 0)
    found = open_model(tmp_path / name)
    assert found.summary == known.summary
    for taps in ("hooks", "functions", "experts"):
        assert getattr(found.body, taps) == getattr(known.body, taps)  # type: ignore[attr-defined]


class Parts(nn.Module):
    """A table, a matrix that is used transposed and in part, and one that is scaled first."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.linear = nn.Embedding(512, 256), nn.Linear(256, 512)
        self.matrix = nn.Parameter(torch.full((512, 512), float("nan")))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.linear(self.table(ids))
        x = x @ self.matrix.T + nn.functional.linear(x, self.matrix[:, :512] * 2)
        return x[..., :256] @ self.matrix.view(2, 256, 512)[0]


def test_only_what_is_picked_out_of_a_table_is_read() -> None:
    network, ids = Parts(), torch.tensor([[1, 2, 3]])
    held = dict(network.named_parameters())
    with torch.no_grad(), unread(network):
        assert isinstance(network.matrix, Unread) and "Unread" in repr(network.matrix)
        assert torch.equal(network.table(ids), held["table.weight"][ids])
        answer = network(ids)
    assert answer.shape == (1, 3, 512) and answer.isfinite().all() and not isinstance(answer, Unread)
    assert all(held[name] is parameter for name, parameter in network.named_parameters())


def test_what_depends_on_the_numbers_is_computed() -> None:
    network = nn.Linear(256, 256, bias=False)
    nn.init.zeros_(network.weight)
    with torch.no_grad(), unread(network):
        assert network.weight.nonzero().shape == (0, 2)
        assert not (network.weight != 0).any()


def test_large_results_take_no_memory() -> None:
    network = nn.Linear(1 << 12, 1 << 12, bias=False)
    with torch.no_grad(), unread(network):
        gathered = network.weight[torch.zeros(1 << 13, dtype=torch.long)]
    assert isinstance(gathered, Unread) and gathered.shape == (1 << 13, 1 << 12)
