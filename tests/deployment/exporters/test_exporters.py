"""Every exporter: listed, light to import, refuses what it cannot hold, and leaves nothing broken behind."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.deployment.exporters.models import plan_of, quantized, tensor_model
from workbench.deployment.exporters import EXPORTERS, REGISTRY, Exporter, exporter, exporter_options
from workbench.errors import CancelledError, ExportError, FingerprintMismatchError
from workbench.planning.plan import Plan
from workbench.progress import silent

FOLDERS = ("huggingface", "gguf", "tensor-types", "compressed-tensors", "gptq", "mlx", "torchao", "onnx", "onnx-genai")
FILES = [each for each in EXPORTERS if each.name not in FOLDERS]


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import workbench.deployment.exporters, sys; "
        "print(*(m for m in ('torch', 'h5py', 'transformers') if m in sys.modules))"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == ""


@pytest.mark.parametrize("each", EXPORTERS, ids=lambda each: each.name)
def test_an_exporter_keeps_the_contract(each: Exporter) -> None:
    assert isinstance(each, Exporter) and exporter(each.name) is each
    assert each.description and not each.description.endswith(".") and each.title
    assert exporter_options(each).keys().isdisjoint({"name", "title", "description", "needs_model"})
    with pytest.raises((AttributeError, TypeError)):  # TypeError: slots in Python 3.11
        each.name = "other"  # type: ignore[misc]


def test_an_unknown_kind_is_told_with_the_nearest_and_all() -> None:
    with pytest.raises(ExportError, match="'safetensor'; the closest are safetensors.*plan, script, safetensors"):
        exporter("safetensor")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """An exporter with options."""

    name: ClassVar = "notes"
    title: ClassVar = "Notes"
    description: ClassVar = "the plan's name"
    needs_model: ClassVar = False
    author: str = "nobody"
    copies: int = 1
    dated: bool = False

    def export(self, quantized: Any, model: Any, out: Path, progress: Any) -> tuple[Path, ...]:
        out.write_text(f"{quantized.plan.name} by {self.author}\n" * self.copies)
        return (out,)


def test_the_fields_of_an_exporter_are_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(REGISTRY, "_members", {**REGISTRY._members, "notes": Notes()})
    assert exporter_options(exporter("notes")) == {"author": "nobody", "copies": 1, "dated": False}
    chosen = exporter("notes", ("author=Ada=B", "copies=2", "dated=true"))
    assert chosen == Notes(author="Ada=B", copies=2, dated=True)
    for setting, message in (("autor=x", "author"), ("copies=x", "number such as 1"), ("dated=1", "true or false")):
        with pytest.raises(ExportError, match=message):
            exporter("notes", (setting,))
    with pytest.raises(ExportError, match="plan has no option 'author'; it has no options"):
        exporter("plan", ("author=x",))


@pytest.mark.parametrize("each", FILES, ids=lambda each: each.name)
def test_writes_one_file_and_reports_progress(each: Exporter, tmp_path: Path) -> None:
    model, observed = tensor_model(), []
    plan = plan_of(odd="int4-g32-asym", embed="int8-channel")

    def progress(fraction: float, text: str, partial: Any = None) -> None:
        observed.append(fraction)

    out = tmp_path / "out"
    written = each.export(quantized(model, plan), model if each.needs_model else None, out, progress)
    assert written == (out,) and os.listdir(tmp_path) == [out.name]
    assert observed[-1] == 1.0 and observed == sorted(observed) and observed[0] >= 0


@pytest.mark.parametrize("each", FILES, ids=lambda each: each.name)
def test_a_full_disk_leaves_what_was_there(each: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tensor_model()
    out = tmp_path / "out"
    out.write_text("before", encoding="utf-8")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExportError, match="the disk is full"):
        each.export(quantized(model, plan_of(odd="int8-channel")), model, out, silent)
    assert out.read_text(encoding="utf-8") == "before" and os.listdir(tmp_path) == ["out"]


NEED_MODEL = [each for each in EXPORTERS if each.needs_model]


@pytest.mark.parametrize("each", NEED_MODEL, ids=lambda each: each.name)
def test_another_model_is_refused(each: Exporter, tmp_path: Path) -> None:
    model = tensor_model()
    other = dataclasses.replace(model.summary, fingerprint="sha256:" + "0" * 64)
    with pytest.raises(FingerprintMismatchError):
        each.export(quantized(model, Plan()), dataclasses.replace(model, summary=other), tmp_path / "out", silent)
    with pytest.raises(ExportError, match="open the model"):
        each.export(quantized(model, Plan()), None, tmp_path / "out", silent)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("each", NEED_MODEL, ids=lambda each: each.name)
def test_a_plan_that_was_not_carried_out_is_refused(each: Exporter, tmp_path: Path) -> None:
    model = tensor_model()
    bare = dataclasses.replace(quantized(model, plan_of(odd="int8-channel")), tensors={})
    with pytest.raises(ExportError, match="odd the scheme int8-channel, but it was not quantized"):
        each.export(bare, model, tmp_path / "out", silent)


@pytest.mark.parametrize("name", ["safetensors", "state-dict"])
def test_a_cancelled_export_leaves_nothing(name: str, tmp_path: Path) -> None:
    model = tensor_model()

    def cancelling(fraction: float, text: str, partial: Any = None) -> None:
        if fraction > 0.2:
            raise CancelledError("stop")

    with pytest.raises(CancelledError):
        exporter(name).export(quantized(model, plan_of(odd="int8-channel")), model, tmp_path / "out", cancelling)
    assert not os.listdir(tmp_path)


def test_quantized_inputs_do_not_fit_a_state_dict(tmp_path: Path) -> None:
    model = tensor_model()
    plan = plan_of(inputs="int8-token", odd="int8-channel")
    with pytest.raises(ExportError, match="quantizes the inputs of 1 layer,"):
        exporter("state-dict").export(quantized(model, plan), model, tmp_path / "out", silent)


def test_huggingface_refuses_other_sources(tmp_path: Path) -> None:
    model = tensor_model()
    with pytest.raises(ExportError, match="comes from safetensors.*export to state-dict"):
        exporter("huggingface").export(quantized(model, Plan()), model, tmp_path / "out", silent)
