"""The dialog that opens models offers the kinds of files that open, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QListView

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.models.onnx import made

WEIGHT = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32)


def _safetensors(path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"up.weight": WEIGHT}, path)


def _torch(path: Path) -> None:
    import torch

    torch.save({"up.weight": torch.from_numpy(WEIGHT)}, path)


def _program(path: Path) -> None:
    import torch

    torch.export.save(torch.export.export(torch.nn.Linear(64, 32), (torch.zeros(1, 64),)), path)


def _gguf(path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(str(path), "some")
    writer.add_tensor("blk.0.ffn_up.weight", WEIGHT)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()


def _onnx(path: Path) -> None:
    from onnx import helper

    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    made.save(path, [node], {"x": (1, ["batch", 64])}, ["y"], {"w": WEIGHT.T.copy()})


def _python(path: Path) -> None:
    path.write_text("from torch import nn\n\ndef build():\n    return nn.Linear(64, 32)\n", encoding="utf-8")


def _plan(path: Path) -> None:
    sessions.full(1).plan.save(path)


MAKERS: dict[str, Callable[[Path], object]] = {
    "*.safetensors": _safetensors, "*.pt": _torch, "*.pth": _torch, "*.pt2": _program, "*.gguf": _gguf, "*.onnx": _onnx,
    "*.py": _python, "*.json": _plan, "*.qwb": lambda path: sessions.full(1).save(path),
}  # fmt: skip


def test_the_dialog_offers_what_opens(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.press(Qt.Key.Key_O, person.window, control=True)
        await person.until(lambda: person.dialog("path"), 10)
        dialog = person.dialog("path")
        assert {*re.findall(r"\*\.\w+", dialog.nameFilters()[0])} == MAKERS.keys()
        await person.act(dialog.reject)

    live(story)


@pytest.mark.parametrize("kind", MAKERS)
def test_what_the_dialog_offers_opens(live: Callable[..., None], tmp_path: Path, kind: str) -> None:
    file = tmp_path / kind.replace("*", "chosen")
    MAKERS[kind](file)

    async def story(person: Person) -> None:
        if kind == "*.json":
            await person.open(sessions.opened(sessions.summary(1)))
        await person.press(Qt.Key.Key_O, person.window, control=True)
        await person.until(lambda: person.dialog("path"), 10)
        dialog = person.dialog("path")
        await person.act(lambda: dialog.setDirectory(str(tmp_path)))
        files = dialog.findChild(QListView, "listView")
        await person.until(lambda: files.model().rowCount(files.rootIndex()) == 1, 10)  # its filter shows the file
        name = dialog.findChild(QLineEdit, "fileNameEdit")
        await person.type(name, str(file))
        await person.press(Qt.Key.Key_Return, name)
        if kind == "*.py":
            await person.until(lambda: person.dialog("form"), 10)
            await person.act(person.dialog("form").accept)
            await person.answer("question", "trust")
        await person.until(lambda: person.state.undo_name or person.state.session or person.dialog("error"), 60)
        assert person.dialog("error") is None, person.context.messages.entries
        layers = len(sessions.summary(1).layers) if kind in ("*.json", "*.qwb") else 1
        assert len(person.state.session.model.layers) == layers

    live(story)
