"""How a folder says that texts become embeddings, and that its network is evaluated and exported so."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from workbench.errors import ExportError, NotAModelError
from workbench.models.readers.pooling import Pooling, evaluated_pooling, module_files, pooling_of
from workbench.models.sources.heads.outputs import pooled


def state(folder: Path, settings: dict[str, Any], *behind: str) -> Path:
    later = {f"{place}_{kind}": kind for place, kind in enumerate(behind, 2)}
    kinds = {"": "Transformer", "1_Pooling": "Pooling", **later}
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": place} for place, kind in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(("settings", "pooling"), [
    ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, Pooling.FIRST),
    ({"pooling_mode": "lasttoken"}, Pooling.LAST), ({"pooling_mode_mean_tokens": True}, Pooling.MEAN),
])  # fmt: skip
def test_a_folder_says_how_it_pools(settings: dict[str, Any], pooling: Pooling, tmp_path: Path) -> None:
    assert evaluated_pooling(tmp_path) == (Pooling.MEAN, [])
    assert evaluated_pooling(state(tmp_path, settings, "Normalize")) == (pooling, [])


def test_what_is_not_computed_is_said(tmp_path: Path) -> None:
    state(tmp_path, {"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": True}, "Dense")
    pooling, (several, behind) = evaluated_pooling(tmp_path)
    assert pooling is Pooling.MEAN
    assert "pools tokens by max_tokens and mean_tokens" in several
    assert "2_Dense behind the network" in behind
    dense = tmp_path / "2_Dense"
    dense.mkdir()
    (dense / "pytorch_model.bin").touch()
    assert evaluated_pooling(tmp_path)[1][2].startswith("the weights of 2_Dense are pickled (pytorch_model.bin)")
    (dense / "model.safetensors").touch()
    assert len(evaluated_pooling(tmp_path)[1]) == 2
    (tmp_path / "modules.json").write_text("[3]")
    with pytest.raises(NotAModelError, match=r"modules\.json"):
        evaluated_pooling(tmp_path)
    with pytest.raises(ExportError, match=r"modules\.json"):
        pooling_of(tmp_path, ExportError)


def test_a_pooling_of_the_folders_own_is_said(tmp_path: Path) -> None:
    kinds = {"": "sentence_transformers.models.Transformer", "1_Own": "pooling_of_ours.GemPooling"}
    modules = [{"type": kind, "path": place} for place, kind in kinds.items()]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    assert evaluated_pooling(tmp_path) == (
        Pooling.MEAN,
        ["modules.json has GemPooling and no Pooling: the model is evaluated by the mean of its tokens"],
    )


def test_a_place_outside_of_the_folder_is_not_read(tmp_path: Path) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    state(tmp_path, {"pooling_mode": "cls"})
    (inside / "modules.json").write_text(json.dumps([{"type": "Pooling", "path": "../1_Pooling"}]))
    stated = pooling_of(inside, NotAModelError)
    assert stated is not None and stated.pooling is None and stated.lacks == "../1_Pooling/config.json"
    assert evaluated_pooling(inside)[1] == [
        "../1_Pooling/config.json, which modules.json names, is missing: the model is evaluated by the mean of its "
        "tokens"
    ]


@pytest.mark.parametrize("place", ["1_Pooling", "a" * 5000, "nul\0", "modules.json"])
def test_a_place_without_settings_is_said(place: str, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "Pooling", "path": place}]))
    pooling, notes = evaluated_pooling(tmp_path)
    assert pooling is Pooling.MEAN and "is missing" in notes[0]
    assert module_files(tmp_path, ExportError) == []


def test_the_mean_is_the_default(tmp_path: Path) -> None:
    for settings in ({}, {"pooling_mode_mean_tokens": False}):
        assert evaluated_pooling(state(tmp_path, settings)) == (Pooling.MEAN, [])


def test_an_older_folder_lists_its_modules_above_the_network(tmp_path: Path) -> None:
    network, other = tmp_path / "0_Transformer", tmp_path / "other"
    network.mkdir(), other.mkdir()
    state(tmp_path, {"pooling_mode_cls_token": True})
    listed = json.loads((tmp_path / "modules.json").read_text())
    listed[0]["path"] = "0_Transformer"
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    assert evaluated_pooling(network) == (Pooling.FIRST, [])
    assert evaluated_pooling(other) == (Pooling.MEAN, [])
    (tmp_path / "modules.json").write_text('{"a program": "of someone"}')
    assert evaluated_pooling(network) == (Pooling.MEAN, [])


def test_what_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: Path) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    state(tmp_path, {})
    monkeypatch.setattr("workbench.models.readers.pooling.read_json", refuse)
    with pytest.raises(NotAModelError, match=r"modules\.json cannot be read: Permission denied"):
        evaluated_pooling(tmp_path)


def test_padding_is_passed_over_on_both_sides() -> None:
    states = torch.arange(24.0).reshape(2, 4, 3)
    mask = torch.tensor([[1, 1, 1, 0], [0, 0, 1, 1]])
    assert pooled(states, mask, Pooling.FIRST).equal(torch.stack([states[0, 0], states[1, 2]]))
    assert pooled(states, mask, Pooling.LAST).equal(torch.stack([states[0, 2], states[1, 3]]))
    assert pooled(states, mask, Pooling.MEAN).equal(torch.stack([states[0, :3].mean(0), states[1, 2:].mean(0)]))
    assert pooled(states, None, Pooling.FIRST).equal(states[:, 0])
    assert pooled(states, None, Pooling.LAST).equal(states[:, -1])
