"""Pages of the session's data, as they were recorded; what is missing is said."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import MissingResultError
from workbench.models.data.files import EVALUATION
from workbench.models.data.text import encode
from workbench.models.sources.bundled import bundled_folder
from workbench.steps import session_data
from workbench.steps.browse_samples import BROWSE_SAMPLES, BrowseSamplesOptions

DEMO = "demo:language-model"


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
