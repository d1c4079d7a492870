"""Pages of the session's data, as they were recorded; what is missing is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import workbench as wb
from tests.deployment.exporters.llamas import folder_of
from tests.models.readers.test_pooling import state
from workbench.errors import DataError, MissingResultError
from workbench.models.data.files import CALIBRATION, EVALUATION
from workbench.models.data.text import encode
from workbench.models.readers.pooling import Pooling
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


def test_a_session_knows_how_its_texts_were_pooled(tmp_path: Path) -> None:
    """Its table would describe another embedding than evaluations do."""
    folder, file = folder_of("bert", tmp_path / "model"), tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"text": f"Text number {number} is short."}) + "\n" for number in range(8)))
    wb.calibrate(wb.open(state(folder, {"pooling_mode": "cls"})), file).save(tmp_path / "s.qwb")
    session, model = wb.Session.load(tmp_path / "s.qwb"), wb.open(folder)
    assert session.calibration is not None and session.calibration.pooling is Pooling.FIRST
    assert len(session_data.for_evaluation(model, session, None, samples=None, seed=0)) == 4
    changed = wb.open(state(folder, {"pooling_mode": "mean"}))
    for data in (None, file):
        with pytest.raises(DataError, match=r"were run with first pooling, the model has mean pooling now"):
            session_data.for_evaluation(changed, session, data, samples=None, seed=0)
    again = wb.calibrate(changed, file, session=session)
    assert session_data.recorded(changed, again.calibration).record.pooling is Pooling.MEAN


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
