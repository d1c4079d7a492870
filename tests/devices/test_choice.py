"""Which device is used, what is said where it is missing or too small, and sessions that move between devices."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import workbench as wb
from tests.devices.conftest import Case
from workbench.cli import main
from workbench.engine.model_cache import ModelCache
from workbench.errors import BackendUnavailableError, DataError, DeviceError
from workbench.models import placement
from workbench.models.placement import Placement, described, devices, find_device
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.evaluate import EVALUATE, EvaluateOptions

LAYER = "model.layers.1.mlp.up_proj"

OWN_TENSORS = """
import torch
from torch import nn

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)
    def forward(self, x):
        return self.linear(x + torch.ones(8))

build = Network
"""


def test_what_exists_is_named_where_a_device_is_missing(accelerator: str) -> None:
    assert [each.name for each in devices()][:1] == ["cpu"]
    assert accelerator in [each.name for each in devices()]
    kind = accelerator.partition(":")[0]
    assert str(find_device(kind)) == accelerator
    for name in ("cuda:7", f"{kind}:1", "gpu", "tpu:0", "", "meta", "cuda:x"):
        there = rf"there is no device '{name}' here, there is cpu.*{accelerator}"
        with pytest.raises(BackendUnavailableError, match=there):
            find_device(name)
    with pytest.raises(BackendUnavailableError, match="no dtype 'int8'"):
        Placement("cpu", "int8").resolved()


def test_automatic_is_the_cpu_without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert str(find_device("auto")) == "cpu"


def test_a_device_that_is_too_old_is_named_and_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    old = placement.Device(name="cuda:0", text="cuda:0 (K40)", fault="is too old: its compute capability is 3.5")
    new = placement.Device(name="cuda:1", text="cuda:1 (H100)")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(placement, "devices", lambda: (placement.Device(name="cpu", text="cpu"), old, new))
    assert str(find_device("auto")) == "cuda:1"
    with pytest.raises(BackendUnavailableError, match=r"cuda:0 \(K40\) is too old: its compute capability is 3\.5"):
        find_device("cuda")


def test_float32_is_float32_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN's default for convolutions and recurrent layers is TF32, whose 10 bits would be in every result."""
    there = placement.Device(name="cpu", text="cpu"), placement.Device(name="cuda:0", text="cuda:0 (H100)")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(placement, "devices", lambda: there)
    libraries = torch.backends.cudnn, torch.backends.cuda.matmul
    before = [each.allow_tf32 for each in libraries]
    try:
        for each in libraries:
            each.allow_tf32 = True
        assert str(Placement("cuda", "float32").resolved()) == "cuda:0"
        assert not any(each.allow_tf32 for each in libraries)
    finally:
        for each, value in zip(libraries, before, strict=True):
            each.allow_tf32 = value


def test_own_dtype_on_a_device_and_float32_on_the_cpu(cases: dict[str, Case], accelerator: str) -> None:
    path = cases["half"].path
    assert wb.open(path, device=accelerator).dtype == torch.bfloat16
    assert wb.open(path, device="cpu").dtype == torch.float32
    assert wb.open(path, device=accelerator, dtype="float32").dtype == torch.float32


def test_weights_that_the_dtype_does_not_hold_stay_exact(llama: Path, tmp_path: Path, accelerator: str) -> None:
    """A file of bfloat16 matrices and float32 norms runs in bfloat16 and is read, and exported, as it is."""
    import shutil

    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(llama, tmp_path / "mixed"))
    stored = load_file(folder / "model.safetensors")
    stored = {name: tensor.bfloat16() if tensor.ndim == 2 else tensor + 0.001 for name, tensor in stored.items()}
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    model = wb.open(folder, device=accelerator, dtype="stored")
    name = "model.layers.0.input_layernorm.weight"
    assert model.body.network.get_parameter(name).dtype == torch.bfloat16
    assert torch.equal(model.other(name).cpu(), stored[name])


def test_tied_weights_stay_tied(tmp_path: Path, accelerator: str) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=64, tie_word_embeddings=True, **sizes)).save_pretrained(tmp_path)
    network = wb.open(tmp_path, device=accelerator).body.network
    assert network.lm_head.weight is network.model.embed_tokens.weight


def test_a_recurrent_network_and_a_tensor_that_is_no_parameter_move(tmp_path: Path, accelerator: str) -> None:
    file = tmp_path / "recurrent.py"
    file.write_text(
        "import torch\nfrom torch import nn\n"
        "class Network(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.shift, self.rnn, self.out = torch.ones(6), nn.RNN(6, 8, batch_first=True), nn.Linear(8, 3)\n"
        "    def forward(self, x):\n"
        "        return self.out(self.rnn(x + self.shift)[0][:, -1])\n"
        "build = Network\n"
    )
    batch = {"inputs": torch.randn(2, 5, 6)}
    host, other = (wb.open(file, trust=True, device=device).run(batch) for device in ("cpu", accelerator))
    assert torch.allclose(host, other.cpu(), atol=1e-6)


def test_an_exported_program_moves(tmp_path: Path, accelerator: str) -> None:
    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x + torch.arange(8, device=x.device)) + torch.zeros(4, device=x.device)

    samples = torch.export.Dim("samples")
    program = torch.export.export(Network(), (torch.randn(3, 8),), dynamic_shapes=({0: samples},))
    torch.export.save(program, tmp_path / "network.pt2")
    batch = {"inputs": torch.randn(2, 8)}
    host, other = (wb.open(tmp_path / "network.pt2", device=device).run(batch) for device in ("cpu", accelerator))
    assert str(other.device) == accelerator
    assert torch.allclose(host, other.cpu(), atol=1e-6)


def test_a_network_that_makes_tensors_on_the_cpu_is_named(tmp_path: Path, accelerator: str) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN_TENSORS)
    model = wb.open(file, trust=True, device=accelerator)
    with pytest.raises(DataError, match=r"makes tensors of its own on another device.*--device cpu"):
        model.run({"inputs": torch.randn(2, 8)})


def test_a_session_of_one_device_is_used_on_the_other(cases: dict[str, Case], accelerator: str) -> None:
    case = cases["llama"]
    for first, second in (("cpu", accelerator), (accelerator, "cpu")):
        session = wb.score(case.calibrated(first), model=case.opened(second), schemes=case.schemes)
        session = replace(session, plan=session.plan.assign([LAYER], weights=case.schemes[1], algorithm="gptq"))
        assert wb.evaluate(session, model=case.opened(second), samples=4).metrics["kl"].value > 0


def test_the_place_is_recorded(cases: dict[str, Case], accelerator: str) -> None:
    assert cases["llama"].calibrated("cpu").environment.device == "cpu"
    text = described(torch.device(accelerator))
    assert cases["half"].calibrated(accelerator).environment.device == f"{text}, bfloat16"


def test_the_cache_opens_a_model_again_where_it_is_wanted(cases: dict[str, Case], accelerator: str) -> None:
    cache, summary = ModelCache(), cases["llama"].opened("cpu").summary
    first = cache.get(summary)
    assert cache.get(summary) is first
    moved = cache.get(summary, placement=Placement(accelerator))
    assert str(moved.device) == accelerator
    assert cache.get(summary, placement=Placement(accelerator)) is moved
    assert cache.get(summary).device == find_device("auto")


@pytest.fixture
def limited(accelerator: str):  # type: ignore[no-untyped-def]
    """Sets how many bytes the device has beside those that are taken already."""
    import gc

    if not accelerator.startswith("pretend"):
        pytest.skip("only the pretend accelerator has a limit to the byte")

    def limit(more: int) -> None:
        gc.collect()
        torch.ops.pretend.limit(torch.ops.pretend.held() + more)

    yield limit
    torch.ops.pretend.limit(0)


def test_too_little_memory_for_a_batch_runs_smaller_ones(cases: dict[str, Case], limited, accelerator: str) -> None:  # type: ignore[no-untyped-def]
    case = cases["llama"]
    model, session, notes = case.opened(accelerator), case.calibrated(accelerator), []
    options = EvaluateOptions(samples=8, batch_size=8)
    torch.ops.pretend.peak()
    before = torch.ops.pretend.held()
    whole = EVALUATE(session, options, model=model)
    needed = torch.ops.pretend.peak() - before
    limited(needed * 3 // 4)
    again = EVALUATE(session, options, model=model, notes=notes)
    assert notes and "the memory ran out, so it ran with batches of" in notes[0]
    assert again.metrics["perplexity"].value == pytest.approx(whole.metrics["perplexity"].value, rel=1e-4)


def test_no_memory_for_one_sample_names_what_to_do(cases: dict[str, Case], limited, accelerator: str) -> None:  # type: ignore[no-untyped-def]
    case = cases["llama"]
    model, session = case.opened(accelerator), case.calibrated(accelerator)
    limited(2000)
    text = r"ran out of memory, and fewer samples at once are not possible.*--device cpu"
    with pytest.raises(DeviceError, match=text):
        CALIBRATE(session, CalibrateOptions(data=str(case.data), samples=4, batch_size=4), model=model)


def test_no_memory_for_the_weights_names_what_to_do(cases: dict[str, Case], limited, accelerator: str) -> None:  # type: ignore[no-untyped-def]
    limited(20_000)
    with pytest.raises(DeviceError, match=r"the weights of .* do not fit into the memory of pretend:0.*--device cpu"):
        wb.open(cases["llama"].path, device=accelerator)


def test_the_command_line(
    cases: dict[str, Case], tmp_path: Path, capsys: pytest.CaptureFixture[str], accelerator: str
) -> None:  # fmt: skip
    case, session = cases["half"], str(tmp_path / "s.qwb")
    common = ["--device", accelerator.partition(":")[0], "--json"]
    model = [str(case.path), "--data", str(case.data), "--samples", "4", "--out", session]
    assert main(["calibrate", *model, *common]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == f"{described(torch.device(accelerator))}, bfloat16"
    assert main(["sensitivity", session, "--schemes", "int8-channel", *common]) == 0
    assert main(["evaluate", session, "--samples", "4", *common, "--dtype", "float32"]) == 0
    capsys.readouterr()
    assert main(["evaluate", session, "--samples", "4", "--device", "cuda:3"]) == 1
    assert "there is no device 'cuda:3' here, there is cpu" in capsys.readouterr().err
    assert np.isfinite(wb.Session.load(session).sensitivities["predicted_kl"].score).any()
