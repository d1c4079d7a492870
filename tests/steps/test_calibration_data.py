"""Pages of the session's data, as they were recorded; what is missing is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import MissingResultError
from workbench.models.data.files import CALIBRATION, EVALUATION
from workbench.models.data.text import encode
from workbench.models.sources.bundled import bundled_folder
from workbench.steps import session_data
from workbench.steps.browse_samples import BROWSE_SAMPLES, BrowseSamplesOptions

DEMO = "demo:language-model"


def test_a_folder_that_was_calibrated_on_gives_its_other_half(tmp_path: Path) -> None:
    """The record names the table in the folder, or what its shards have in common."""
    from dataclasses import replace

    model, line = wb.open(DEMO), json.dumps({"text": "Numbers are taken as they are. " * 200}) + "\n"
    for names in (["data.jsonl"], ["train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl"]):
        folder = tmp_path / names[0]
        folder.mkdir()
        for name in names:
            (folder / name).write_text(2 * line)
        calibration = session_data.open_dataset(folder, model, split=CALIBRATION, samples=2)
        session = replace(wb.start(model), calibration=calibration.record)
        data = session_data.for_evaluation(model, session, folder, samples=2, seed=0)
        assert (data.record.path, data.record.split) == (calibration.record.path, EVALUATION)
        half = f"{data.record.name} was calibrated on: only its other half is evaluated, 2 samples"
        assert half in data.notes


def test_a_page_is_the_recorded_text(tmp_path: Path) -> None:
    from dataclasses import replace

    model = wb.open(DEMO)
    session = wb.start(model)
    with pytest.raises(MissingResultError, match="names no evaluation data"):
        BROWSE_SAMPLES(session, BrowseSamplesOptions(split=EVALUATION), model=model)
    data = session_data.for_evaluation(model, session, None, samples=6, seed=1)
    session = replace(session, evaluation=data.record)
    page = BROWSE_SAMPLES(session, BrowseSamplesOptions(split=EVALUATION, start=4, count=5), model=model)
    assert (page.start, page.total, [item.index for item in page.samples]) == (4, 6, [4, 5])
    again = encode(page.samples[0].text, model.inputs, bundled_folder("language-model"))
    assert again[1:-1] == data.tensors["input_ids"][4].tolist()[1:-1]
