"""What a session says of itself."""

from __future__ import annotations

from dataclasses import replace

from tests.session.sessions import full_session


def test_a_notebook_shows_what_a_session_holds_and_no_numbers() -> None:
    full = full_session()
    shown = repr(full)
    assert shown.startswith(f"<Session of 'ein Modell': {len(full.model.stored)} layers, calibrated on ")
    assert f"{len(full.evaluations)} evaluations" in shown and all(name in shown for name in full.sensitivities)
    assert len(shown) < 400 and "array" not in shown
    assert "not calibrated" in repr(replace(full, calibration=None))
    metric = next(iter(full.evaluations[0].metrics.values()))
    assert f"value={metric.value}" in repr(metric) and "per_sample" not in repr(metric)
