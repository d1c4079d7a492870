"""The name of an export is not another form's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gui import sessions
from workbench.errors import ExportError
from workbench.steps.files.export import export


@pytest.mark.parametrize(("kind", "name"), [("huggingface", "replay.py"), ("plan", "model.safetensors")])
def test_the_name_of_another_form_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    with pytest.raises(ExportError, match=rf"{name} ends in \.\w+, which {kind} does not write; give "):
        export(sessions.opened(), kind, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_plan_goes_where_the_user_says(tmp_path: Path) -> None:
    for name in ("plan.json", "plan", "plan.v2"):
        assert export(sessions.opened(), "plan", tmp_path / name)[0].is_file()
