"""A step that runs out of memory runs again in smaller batches, and then fails with a named error."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import workbench as wb
from tests.gui import sessions
from workbench.engine.failure import portable
from workbench.errors import DataError, MemoryLimitError, ModelError, first_line
from workbench.memory import available_memory, limit
from workbench.models.placement import Placement
from workbench.models.summary import ModelSource
from workbench.progress import Progress
from workbench.steps.step import Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the step."""

    batch_size: int = 8
    samples: int = 3


def step(fits: int, error: type[Exception], sizes: list[int]) -> Step[Options, int]:
    def run(context: Context, options: Options) -> int:
        sizes.append(options.batch_size)
        if options.batch_size > fits:
            raise error("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4398046511104 bytes")
        return options.batch_size * options.samples

    return Step(name="fills", title="Fill the memory", summary="", options=Options, run=run, document=False)


@pytest.mark.parametrize("error", [MemoryError, RuntimeError, torch.OutOfMemoryError])
def test_batches_are_halved_until_they_fit(error: type[Exception]) -> None:
    sizes, notes = list[int](), list[str]()
    assert step(2, error, sizes)(None, Options(), notes=notes) == 6
    assert sizes == [8, 4, 2]
    assert notes[-1] == "Fill the memory: the memory ran out, so it ran with batches of 2"


def test_what_does_not_fit_at_all_is_one_line() -> None:
    sizes = list[int]()
    with pytest.raises(MemoryLimitError, match="^Fill the memory: the memory ran out; use fewer") as caught:
        step(0, MemoryError, sizes)(None, Options())
    assert sizes == [8, 4, 2, 1, 1, 1], "and then in smaller rooms"
    assert str(portable(caught.value, "")) == str(caught.value)


def test_no_data_are_blamed_for_the_memory() -> None:
    """A network's errors are told as errors of the batch that it was given."""

    def run(context: Context, options: Options) -> int:
        try:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8388608 bytes")
        except RuntimeError as error:
            raise DataError("the model cannot run the batch; give data of the shape that it was made for") from error

    blaming = Step(name="fills", title="Fill", summary="", options=Options, run=run, document=False)
    with pytest.raises(MemoryLimitError, match="^Fill: the memory ran out; use fewer .*DefaultCPUAllocator"):
        blaming(None, Options())


@pytest.mark.parametrize("wrapped", [False, True])
def test_what_has_no_batches_runs_in_smaller_rooms(wrapped: bool) -> None:
    received, notes = list[int | None](), list[str]()

    def run(context: Context, options: Options) -> int:
        received.append(limit())
        if len(received) < 3:
            try:
                raise MemoryError
            except MemoryError as error:
                if wrapped:
                    raise ModelError(f"the library cannot do it: {first_line(error)}") from error
                raise
        return available_memory()

    whole = Step(name="fills", title="Fill", summary="", options=Options, run=run, document=False)
    assert whole(None, Options(batch_size=1), notes=notes) == 0
    assert received[0] is None and received[2] == 1 and 1 < (received[1] or 0) < 10**12 and limit() is None
    assert notes[-1] == "Fill: the memory ran out, so it ran with the smallest pieces, and the rest on the disk"


@pytest.mark.parametrize("which", ["model.safetensors", "notes.txt", "out.gguf"])
def test_a_model_file_that_changes_during_a_step_is_told(which: str, tmp_path: Path) -> None:
    for name in ("model.safetensors", "notes.txt", "out.gguf"):
        (tmp_path / name).write_bytes(b"before")
    blank = sessions.full(1)
    summary = replace(blank.model, source=ModelSource(kind="huggingface", path=str(tmp_path)))

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Written(Options):
        out: str = str(tmp_path / "out.gguf")

    def run(context: Context, options: Written) -> int:
        (tmp_path / which).write_bytes(b"another one")
        return 1

    reads = Step(name="reads", title="Read", summary="", options=Written, run=run, runs_model=True)
    session = replace(blank, model=summary)
    if which == "model.safetensors":
        with pytest.raises(ModelError, match=r"Read: .*model\.safetensors changed while it was read.*open the model"):
            reads(session, Written())
    else:
        assert reads(session, Written()) == 1


MEANWHILE: dict[str, Callable[[Path, wb.Model, wb.Session, wb.Plan, Progress], object]] = {
    "calibrate": lambda folder, model, session, plan, progress: wb.calibrate(
        model, folder / "tokens.npy", batch_size=2, progress=progress
    ),
    "evaluate": lambda folder, model, session, plan, progress: wb.evaluate(
        session, plan, model=model, data=folder / "tokens.npy", batch_size=2, progress=progress
    ),
    "score": lambda folder, model, session, plan, progress: wb.score(
        session, model=model, schemes=["int4", "int8"], progress=progress
    ),
    "quantize": lambda folder, model, session, plan, progress: wb.quantize(
        model, plan, session=session, progress=progress
    ),
    "apply": lambda folder, model, session, plan, progress: wb.apply(
        model, plan, "state-dict", folder / "written.pt", session=session, progress=progress
    ),
    "export": lambda folder, model, session, plan, progress: wb.export(
        session, "safetensors", folder / "written.safetensors", plan=plan, model=model, progress=progress
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANWHILE)
def test_from_python_it_is_told_that_the_model_file_changed_meanwhile(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=32
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    np.save(tmp_path / "tokens.npy", np.random.default_rng(0).integers(0, 32, (8, 16)))
    model = wb.open(tmp_path)
    session = wb.calibrate(model, tmp_path / "tokens.npy", batch_size=2)
    layers = [layer for layer in session.model.stored if "layers" in layer.name]

    def progress(fraction: float, text: str, partial: object = None) -> None:
        if fraction > 0.8 and file.stat().st_mtime != 1:  # while it is written, where that is what is done
            os.utime(file, (1, 1))

    with pytest.raises(ModelError, match=r": .*model\.safetensors changed while it was read"):
        MEANWHILE[name](tmp_path, model, session, wb.Plan.uniform(layers, "int4-g32", algorithm="gptq"), progress)
    assert not list(tmp_path.glob("written*"))


@pytest.mark.parametrize("name", ["calibrate", "score", "quantize", "evaluate", "apply", "train"])
def test_a_model_file_that_changed_since_it_was_opened_is_told_before_anything_runs(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=32
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    np.save(tmp_path / "tokens.npy", np.random.default_rng(0).integers(0, 32, (8, 16)))
    (tmp_path / "out.safetensors").write_bytes(b"of an earlier export")
    model = wb.open(tmp_path / "config.json")
    session = wb.calibrate(model, tmp_path / "tokens.npy", batch_size=2)
    plan = wb.Plan.uniform(session.model.stored, "int8-channel")
    calls = {
        "calibrate": lambda: wb.calibrate(model, tmp_path / "tokens.npy"),
        "score": lambda: wb.score(session, model=model),
        "quantize": lambda: wb.quantize(model, plan, session=session),
        "evaluate": lambda: wb.evaluate(session, plan, model=model, data=tmp_path / "tokens.npy", samples=4),
        "apply": lambda: wb.apply(model, plan, "safetensors", tmp_path / "out.safetensors", session=session),
        "train": lambda: wb.train(session, plan, model=model, steps=1),
    }
    calls[name]()
    calls[name]()  # what was written into the model's folder is no weight of it
    with (tmp_path / "model.safetensors").open("r+b") as file:  # in place: what is mapped changes with it
        file.seek(-64, os.SEEK_END)
        file.write(b"\1" * 64)
    with pytest.raises(ModelError, match=r"model\.safetensors has changed since the model was opened.*open the model"):
        calls[name]()


def test_the_limit_of_a_placement_holds_in_the_step() -> None:
    received = list[int | None]()

    def run(context: Context, options: Options) -> int:
        received.append(limit())
        return 0

    Step(name="sees", title="See", summary="", options=Options, run=run, document=False)(
        None, Options(), placement=Placement(memory=5 * 10**9)
    )
    assert received == [5 * 10**9] and limit() is None


def test_other_faults_are_not_tried_again() -> None:
    sizes = list[int]()
    with pytest.raises(ValueError, match="allocate"):
        step(0, ValueError, sizes)(None, Options())
    assert sizes == [8]
