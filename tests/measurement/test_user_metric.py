"""A person's own metric: it needs trust, gives one number a sample, and stands beside the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models.networks import decoder, tokens
from workbench.errors import DataError, TrustRequiredError
from workbench.measurement.evaluate import evaluate
from workbench.measurement.user_metric import load_metric

TEXT = """
def metric(outputs, batch):
    return outputs.float().mean(dim=(1, 2))

def confidence(outputs, batch):
    return outputs.softmax(-1).amax(-1).mean(-1)

confidence.unit = "share"
confidence.higher_is_better = False

def wrong(outputs, batch):
    return outputs.mean()

def kl(outputs, batch):
    return outputs.mean(dim=(1, 2))

def broken(outputs, batch):
    return batch["no such thing"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "task.py"
    path.write_text(TEXT)
    return path


def test_it_is_computed_for_both_models(file: Path) -> None:
    own = load_metric(f"{file}:confidence", trust=True)
    assert (own.name, own.unit, own.higher_is_better) == ("confidence", "share", False)
    reference, candidate, data = decoder(0), decoder(1), tokens()
    result = evaluate(reference, candidate, data, batch_size=3, user_metrics=(own,))["confidence"]
    batch = {"input_ids": data.tensors["input_ids"]}
    for model, values in ((reference, result.baseline_per_sample), (candidate, result.per_sample)):
        by_hand = model.run(batch).softmax(-1).amax(-1).mean(-1).detach().numpy()
        np.testing.assert_allclose(values, by_hand, rtol=1e-5)
    assert result.low <= result.value <= result.high and result.unit == "share"
    assert load_metric(file, trust=True).name == "metric"


def test_what_is_wrong_is_told(file: Path, tmp_path: Path) -> None:
    with pytest.raises(TrustRequiredError, match="--trust") as refused:
        load_metric(file)
    assert refused.value.file == str(file)
    with pytest.raises(DataError, match="no function 'confidenc'; the closest are confidence"):
        load_metric(f"{file}:confidenc", trust=True)
    with pytest.raises(DataError, match="no Python file"):
        load_metric(tmp_path / "nothing.py", trust=True)
    for name, message in (("wrong", "one number for each sample"), ("broken", "KeyError"), ("kl", "computed already")):
        with pytest.raises(DataError, match=message):
            evaluate(decoder(), decoder(1), tokens(), user_metrics=(load_metric(f"{file}:{name}", trust=True),))
    file.write_text("1 / 0")
    with pytest.raises(DataError, match="ZeroDivisionError"):
        load_metric(file, trust=True)
