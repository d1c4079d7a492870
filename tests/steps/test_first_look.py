"""What is shown before the network is loaded agrees with what the network says afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.numerics.statistics.same import same
from workbench.engine.model_cache import ModelCache
from workbench.insight.layer_facts import why_unseen
from workbench.models import contents
from workbench.models.sources import stored
from workbench.session.session import Session
from workbench.steps.files.first_session import STILL_LOADING, first_look, is_first_look
from workbench.steps.files.open_model import OPEN, OpenModelOptions

DEMO = "demo:language-model"


def test_the_look_agrees_with_the_opened_model() -> None:
    looks: list[Session] = []

    def progress(fraction: float, text: str, partial: object = None) -> None:
        if isinstance(partial, Session):
            looks.append(partial)

    opened = OPEN.request(None, OpenModelOptions(path=DEMO)).run(ModelCache(), progress)
    (look,) = looks
    assert is_first_look(look) and look.model.cannot_run == STILL_LOADING
    assert not is_first_look(opened) and not is_first_look(None)
    assert (look.model.name, look.model.fingerprint) == (opened.model.name, opened.model.fingerprint)
    assert look.model.source == opened.model.source
    stored = {layer.name: layer for layer in opened.model.stored}
    assert {layer.name for layer in look.model.layers} == stored.keys()
    for layer in look.model.layers:
        whole = stored[layer.name]
        assert (layer.shape, layer.dtype, layer.kind, layer.block) == (
            whole.shape, whole.dtype, whole.kind, whole.block,
        )  # fmt: skip
    for (name, tap), observed in look.statistics.items():
        assert same(observed, opened.statistics[name, tap]), name


@pytest.mark.parametrize("path", ["demo:digits-classifier", "demo:nothing", "/no/such/folder"])
def test_no_look_where_there_is_nothing_to_gain(path: str) -> None:
    assert first_look(path) is None


def test_of_large_files_the_headers_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"model.layers.10.a.weight": torch.ones(4, 8), "model.layers.2.a.weight": torch.ones(4, 8)}
    save_file(state, tmp_path / "model.safetensors")
    path = str(tmp_path / "model.safetensors")
    assert first_look(path) is None  # nothing to gain
    monkeypatch.setattr(contents, "LARGE", 100)
    monkeypatch.setattr(stored, "_read", lambda store: pytest.fail("the weights were read"))
    for each in (path, DEMO):
        look = first_look(each)
        assert is_first_look(look) and look is not None and not look.statistics and not look.model.fingerprint
        assert why_unseen(look, look.model.layers[0].name, "weight") == "The weights are still being read."
    look = first_look(path)
    assert look is not None and [layer.name for layer in look.model.layers] == ["model.layers.2.a", "model.layers.10.a"]


def test_no_look_at_what_opening_refuses(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "auto_map": {"AutoModel": "code.py"}}))
    assert first_look(str(tmp_path)) is None
