"""Pages of the session's data, as they were recorded; what is missing is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.errors import MissingResultError
from workbench.models.data.files import EVALUATION
from workbench.models.data.text import encode
from workbench.models.sources.catalog import bundled_folder
from workbench.steps import session_data, tasks
from workbench.steps.calibration_data import sample_page

DEMO = "demo:language-model"


def test_a_page_is_the_recorded_text(tmp_path: Path) -> None:
    from dataclasses import replace

    model = tasks.open(DEMO)
    session = tasks.start(model)
    with pytest.raises(MissingResultError, match="names no evaluation data"):
        sample_page(session, EVALUATION, model=model)
    data = session_data.for_evaluation(model, session, None, samples=6, seed=1)
    session = replace(session, evaluation=data.record)
    page = sample_page(session, EVALUATION, 4, 5, model=model)
    assert (page.start, page.total, [one.index for one in page.samples]) == (4, 6, [4, 5])
    again = encode(page.samples[0].text, model.inputs, bundled_folder("language-model"))
    assert again[1:-1] == data.tensors["input_ids"][4].tolist()[1:-1]
