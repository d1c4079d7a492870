"""Interrupted steps go on from their finished pieces, with the bits of an uninterrupted run, and leave nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch

from tests.session.sessions import identical
from workbench.errors import CancelledError
from workbench.measurement import calibrate, partial_results
from workbench.measurement.token_outliers import BatchPlaces
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.planning.plan import Plan
from workbench.sensitivity import score
from workbench.sensitivity.checks.plan_checks import PlanChecks
from workbench.session.session import Session
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.files.export import EXPORT, ExportOptions
from workbench.steps.score import SCORE, ScoreOptions, with_table

DATA = "demo:digits-classifier"
OPTIONS = CalibrateOptions(data=DATA, samples=40, batch_size=8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, into which everything is saved at once."""
    monkeypatch.setenv("WORKBENCH_CACHE_FOLDER", str(tmp_path / "cache"))
    monkeypatch.setattr(partial_results, "FIRST", 0.0)
    monkeypatch.setattr(partial_results, "EVERY", 0.0)
    monkeypatch.setattr(partial_results, "SHARE", 0)
    return tmp_path / "cache" / "outputs-unfinished"


def pieces(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))


class Interrupt:
    """Cancels when the text of the progress holds ``words``."""

    def __init__(self, words: str) -> None:
        self.words, self.texts = words, list[str]()

    def __call__(self, fraction: float, text: str, partial: object = None) -> None:
        self.texts.append(text)
        if self.words in text:
            raise CancelledError("cancelled")


def test_values_come_back_as_they_were() -> None:
    places = BatchPlaces(first=3, samples=2, ids=np.arange(6).reshape(2, 3))
    shared = np.array([1.5, np.nan])
    value = {
        ("a", "input"): [places, places], "b": (1, 2.5, None, True, float("inf")), "c": [shared, shared],
        "d": torch.arange(4, dtype=torch.bfloat16).reshape(2, 2), "e": np.float64(0.1), "f": np.zeros((0, 3)),
    }  # fmt: skip
    arrays = partial_results.packed(value, (BatchPlaces,))
    back = partial_results._Unpacking(arrays, {"BatchPlaces": BatchPlaces}).value
    assert identical(list(back), list(value)) and back["b"] == value["b"]
    first, other = back["a", "input"]
    assert first is other and identical(first.ids, places.ids) and back["c"][0] is back["c"][1]
    assert torch.equal(back["d"], value["d"]) and back["e"] == 0.1 and back["f"].shape == (0, 3)
    with pytest.raises(TypeError, match="set cannot be saved"):
        partial_results.packed({1, 2}, ())
    assert partial_results.digest(value, (BatchPlaces,)) == partial_results.digest(value, (BatchPlaces,))


def interrupted(run: Callable[[Any, list[str]], Any], words: str, folder: Path) -> tuple[Any, list[str], list[str]]:
    """Interrupt a run, run it again; returns the result, its notes and the texts of its progress."""
    with pytest.raises(CancelledError):
        run(Interrupt(words), [])
    assert pieces(folder)
    notes, watch = list[str](), Interrupt("nothing")
    result = run(watch, notes)
    assert not pieces(folder)
    return result, notes, watch.texts


@cache
def calibrated() -> Session:
    from workbench.models.sources import open_model
    from workbench.steps.calibrate import calibrate

    return calibrate(open_model(DATA), DATA, samples=16)


def test_calibration_goes_on(folder: Path) -> None:
    start = calibrated()

    def run(progress: Any, notes: list[str]) -> Session:
        return CALIBRATE(start, OPTIONS, progress=progress, notes=notes)

    whole = run(Interrupt("nothing"), [])
    again, notes, _ = interrupted(run, "batch 4 of 5", folder)
    assert notes == ["an interrupted run was found: calibration continues at batch 4 of 5"]
    for name in ("statistics", "curvature", "outliers", "ranges"):
        assert identical(getattr(again, name), getattr(whole, name)), name


def test_pieces_of_other_options_are_not_taken(folder: Path) -> None:
    start = calibrated()
    with pytest.raises(CancelledError):
        CALIBRATE(start, OPTIONS, progress=Interrupt("batch 4 of 5"))
    notes = list[str]()
    CALIBRATE(start, replace(OPTIONS, seed=1), notes=notes)
    assert not notes and pieces(folder)


def test_damaged_pieces_are_not_taken(folder: Path) -> None:
    start, notes = calibrated(), list[str]()
    with pytest.raises(CancelledError):
        CALIBRATE(start, OPTIONS, progress=Interrupt("batch 4 of 5"))
    (piece,) = pieces(folder)
    content = bytearray(piece.read_bytes())
    content[-100] ^= 1
    piece.write_bytes(content)
    again = CALIBRATE(start, OPTIONS, notes=notes)
    assert not notes and identical(again.statistics, CALIBRATE(start, OPTIONS).statistics)


@pytest.mark.parametrize("metric", ["predicted_kl", "measured_kl", "weight_error"])
def test_scoring_goes_on(folder: Path, metric: str) -> None:
    start, options = calibrated(), ScoreOptions(metric=metric, schemes=("int8", "int4-g32"), samples=16)

    def run(progress: Any, notes: list[str]) -> Any:
        return SCORE(start, options, progress=progress, notes=notes)

    whole = run(Interrupt("nothing"), [])
    again, notes, _ = interrupted(run, f"scored {whole.layers[2]}", folder)
    cells = int(notes[0].partition("after ")[2].split()[0])
    assert 0 < cells < whole.score.size
    assert identical(again, whole)


def test_a_table_that_was_whole_but_not_checked_is_checked(folder: Path) -> None:
    """Its warning, and intervals that are left out for it, belong to the result."""
    start, options = calibrated(), ScoreOptions(metric="predicted_kl", schemes=("int8", "int4-g32"), samples=16)

    def run(progress: Any, notes: list[str]) -> Any:
        return SCORE(start, options, progress=progress, notes=notes)

    whole = run(Interrupt("nothing"), [])
    again, notes, texts = interrupted(run, "checking the prediction", folder)
    assert "scoring continues after 12 of 12 cells" in notes[0]
    assert any("checking the prediction" in text for text in texts)
    assert identical(again, whole)


@pytest.mark.parametrize("algorithm", ["gptq", "rtn-clip", pytest.param("learned", marks=pytest.mark.slow)])
def test_export_goes_on_in_the_middle_of_quantizing(folder: Path, tmp_path: Path, algorithm: str) -> None:
    start = calibrated()
    start = replace(start, plan=Plan().assign(["*"], weights="int4-g32", algorithm=algorithm))
    out = tmp_path / "o.safetensors"
    options = ExportOptions(kind="safetensors", out=str(out))

    def run(progress: Any, notes: list[str]) -> bytes:
        EXPORT(start, options, progress=progress, notes=notes)
        return out.read_bytes()

    whole = run(Interrupt("nothing"), [])
    out.unlink()
    again, notes, texts = interrupted(run, "writing", folder)
    assert "an interrupted run was found" in notes[0] and not any("quantizing" in text for text in texts[:-3])
    assert again == whole


def test_pieces_that_a_full_disk_does_not_take_stop_no_step(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer in Rust has an error of its own for that."""
    import safetensors.numpy

    def full(*_: object) -> None:
        raise safetensors.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    start = calibrated()
    whole = CALIBRATE(start, OPTIONS)
    monkeypatch.setattr(safetensors.numpy, "save_file", full)
    again = CALIBRATE(start, OPTIONS)
    assert identical(again.statistics, whole.statistics) and not pieces(folder)


def test_a_table_with_measured_plans_gets_more_columns(folder: Path) -> None:
    options = ScoreOptions(metric="predicted_kl", schemes=("int4-g32", "int3-g32"), samples=16)
    one = np.array([1.0])
    checks = PlanChecks(predicted=one, measured=one, error=one, bits=one, samples=16)
    session = with_table(calibrated(), options, replace(SCORE(calibrated(), options), checks=checks))
    more = SCORE(session, replace(options, schemes=("int4-g32", "int3-g32", "int6")))
    assert np.isfinite(more.score).all() and more.schemes[-1] == "int6-channel"


def records_in(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for each in get_args(hint):
        yield from records_in(each)


@pytest.mark.parametrize("kinds", [calibrate.SAVED, score.SAVED, (QuantizedTensor,)])
def test_every_record_within_a_saved_one_can_be_saved(kinds: tuple[type, ...]) -> None:
    within = {record for kind in kinds for hint in get_type_hints(kind).values() for record in records_in(hint)}
    assert within <= {*kinds}
    parts = {part for kind in kinds for hint in get_type_hints(kind).values() for part in (hint, *parts_of(hint))}
    assert not parts & {set, frozenset}


def parts_of(hint: Any) -> Iterator[Any]:
    """Yield the containers of a hint and what they contain."""
    yield get_origin(hint)
    for each in get_args(hint):
        yield from (each, *parts_of(each))
