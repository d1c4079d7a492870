"""The zoo, through the whole journey; ``-m slow`` runs all of it and prints its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.zoo.architectures import NAMES, save
from tests.zoo.flow import HEADING, HIGH, JUDGED, LOW, ROUNDING, Row, run

QUICK = ("GemmaForCausalLM", "Mamba2ForCausalLM", "MixtralForCausalLM", "BertModel", "MBartForConditionalGeneration",
         "ViTForImageClassification", "CLIPModel", "ModernBertForMaskedLM")  # fmt: skip
REFUSALS = {"Blip2ForConditionalGeneration": "does not accept a batch of pixel_values"}
"""What is refused, and a part of the sentence."""

MOST = 0.6
"""The least share of one network's layers that are predicted within LOW to HIGH; of all layers it is nine in ten."""

NEAR = ("MarianMTModel", "PegasusForConditionalGeneration", "BartForConditionalGeneration",
        "T5ForConditionalGeneration")  # fmt: skip
MOST_OF_PAIRS = 0.9
"""The least share in encoder-decoders, whose positions are not taken for independent."""

SINGLE = ("MiniCPM3ForCausalLM",)
"""The logits are in the hundreds, and the few tokens with two likely answers make a loss: the median is judged."""

ALL = [name for group in NAMES.values() for name in group]
ROWS: list[Row] = []


def show_at_the_end(request: pytest.FixtureRequest, rows: list[Row]) -> None:
    """Print the table of ``rows`` once the module's tests have run."""

    def show() -> None:
        capture = request.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            print("\n" + "\n".join([HEADING, *(row.line() for row in rows)]))

    request.addfinalizer(show)


@pytest.fixture(scope="module", autouse=True)
def table(request: pytest.FixtureRequest) -> None:
    show_at_the_end(request, ROWS)


def check(name: str, folder: Path, count: int) -> None:
    save(folder / name, name)
    row = run(folder / name, folder / "out", count)
    ROWS.append(row)
    if name in REFUSALS:
        assert REFUSALS[name] in row.refusal
        return
    assert not row.refusal or row.refusal.startswith("no plan fits"), row.refusal  # rows too short for 4.5 bits
    assert row.seen == row.matter
    assert row.judged >= JUDGED, row.line()
    assert row.difference <= ROUNDING
    if name in SINGLE:
        assert LOW <= sorted(row.ratios.values())[len(row.ratios) // 2] <= HIGH, row.ratios
        return
    assert not row.ratios or row.within >= (MOST_OF_PAIRS if name in NEAR else MOST), row.ratios


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUICK)
def test_the_quick_zoo(tmp_path: Path, name: str) -> None:
    check(name, tmp_path, 48)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in ALL if name not in QUICK])
def test_the_whole_zoo(tmp_path: Path, name: str) -> None:
    check(name, tmp_path, 256)


@pytest.mark.slow
def test_nine_layers_in_ten_are_predicted() -> None:
    assert ROWS, "the networks were not run; this test judges what they left"
    ratios = [ratio for row in ROWS for ratio in row.ratios.values()]
    assert sum(LOW <= ratio <= HIGH for ratio in ratios) >= 0.9 * len(ratios)
