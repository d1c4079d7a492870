"""Timing: batch sizes are swept, the roofline stands under measured or estimated ceilings, plans are summed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from workbench_kernels.bench.cuda_layers import OPS as CUDA_LINEAR
from workbench_kernels.catalog import OPS

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.gui.panels.timing.panel import estimate_in_words
from workbench.gui.panels.timing.roofs import estimates, sweep_lines
from workbench.insight.roofline import plan_time, points, word
from workbench.measurement.evaluation import Timing
from workbench.planning.hardware import hardware, plan_estimate
from workbench.planning.plan import resolve
from workbench.session.session import Session
from workbench.steps.timing.ceilings import measure_ceilings
from workbench.steps.timing.kernels import with_timings
from workbench.steps.timing.sweep import sweep_batches, usual_batches


def _timing(shape: tuple[int, int], scheme: str, batch: int, micro: float, base: float, kernel: str = "int8") -> Timing:
    return Timing(
        layer=f"{shape}", scheme=scheme, kernel=kernel, baseline_kernel="fp32", shape=shape, batch=batch,
        device="cpu: a processor", note="", samples=np.full(9, micro), baseline_samples=np.full(9, base),
    )  # fmt: skip


def test_points_count_operations_and_bytes() -> None:
    fp, quantized = points([_timing((256, 512), "int8-channel", 4, 10.0, 20.0)])
    operations = 2 * 4 * 256 * 512
    assert fp.speed == pytest.approx(operations / 20e-6 / 1e9)
    assert fp.intensity == pytest.approx(operations / (4 * 256 * 512 + 4 * 4 * (256 + 512)))
    scales = 256 * 2  # one FP16 scale for each output channel
    assert quantized.intensity == pytest.approx(operations / (256 * 512 + scales + 4 * 4 * (256 + 512)), rel=0.01)
    assert quantized.quantized and not fp.quantized
    stand_in = points([_timing((256, 512), "int3-g32", 4, 10.0, 20.0, kernel="fp32")])
    assert [item.quantized for item in stand_in] == [False], "the FP32 kernel stood in: there is no quantized point"


@pytest.mark.parametrize(
    ("kernel", "size"),
    [("torch fp32 linear", 4), ("onnxruntime int4 group 32 linear", 4), ("torch bf16 linear", 2),
     ("cuda torch fp32 linear", 4), ("cuda torch fp16 linear", 2), ("cuda w4a16 group 32 linear", 2)],
)  # fmt: skip
def test_a_kernels_inputs_have_the_bytes_of_its_own_precision(kernel: str, size: int) -> None:
    assert word(kernel) == size
    known = {op.name for op in (*OPS, *CUDA_LINEAR)}
    assert kernel in known, "a kernel of that name is gone"


def test_sweeps_sum_what_was_timed_at_every_batch() -> None:
    timings = [_timing((8, 8), "int8-channel", batch, 2.0 * batch, 3.0 * batch) for batch in (1, 4)]
    timings += [_timing((16, 8), "int8-channel", batch, 1.0, 1.0) for batch in (1, 4, 16)]
    fp, quantized = sweep_lines(timings)
    assert fp.batches == (1, 4) and fp.median.tolist() == [4, 13]
    assert quantized.median.tolist() == [3, 9]
    assert sweep_lines([]) == []


def test_a_kernel_that_is_faster_today_takes_the_place_of_yesterdays() -> None:
    first = [_timing((8, 8), "int8-channel", batch, 5.0, 3.0, kernel="one") for batch in (1, 4)]
    again = [_timing((8, 8), "int8-channel", 1, 2.0, 3.0, kernel="another")]
    assert with_timings(first, again) == (first[1], again[0]), "rows, bars and sums speak of the same kernels"


def test_a_plans_time_is_the_sum_over_its_layers() -> None:
    model = sessions.summary(1)
    names = [layer.name for layer in model.layers[1:-1]]
    plan = sessions.opened(model).plan.assign(names, weights="int8-channel").assign(names[:1], weights="int3-g32-asym")
    shapes = {layer.matrix for layer in model.layers[1:-1]}
    timings = [_timing(shape, "int8-channel", 1, 2.0, 5.0) for shape in sorted(shapes)]
    result = plan_time(model, resolve(plan, model.layers), timings, 1)
    assert result is not None
    assert (result.layers, result.missing) == (6, 1)
    assert (result.microseconds, result.baseline) == (12.0, 30.0)
    assert plan_time(model, resolve(plan, model.layers), timings, 8) is None


def test_ceilings_are_positive_and_data_sheets_are_marked() -> None:
    here = measure_ceilings()
    assert here.measured and here.bandwidth > 0.1 and here.peak > 0.1 and "measured here" in here.how
    assert all(not item.measured and item.how.startswith("estimate") for item in estimates()) and estimates()


def _one_block() -> Session:
    session = sessions.opened(sessions.summary(1))
    names = [layer.name for layer in session.model.layers[1:3]]
    return replace(session, plan=session.plan.assign(names, weights="int8-channel"))


def test_batch_sizes_are_swept_from_the_panel(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(_one_block())
        await person.act(lambda: person.window.reveal("timing"))
        panel = person.window.panels["timing"]
        await person.tab(panel.tabs, 1)
        await person.press(Qt.Key.Key_Space, panel.sweep.button)
        await person.until(lambda: panel.roof.measured is not None)
        assert {item.batch for item in person.state.session.timings} == set(usual_batches())
        assert [line.batches for line in panel.sweep.plot._lines] == [usual_batches()] * 2
        person.picture("sweep")
        await person.tab(panel.tabs, 2)
        assert "measured here" in panel.roof.words.text() and panel.roof.plot._ceilings.measured
        person.picture("measured")
        await person.press(Qt.Key.Key_Down, panel.roof.roof)
        assert panel.roof.words.text().startswith("estimate:") and not panel.roof.plot._ceilings.measured
        await person.tab(panel.tabs, 0)
        assert panel.device.isVisible() and not panel.untimed.isVisible()
        assert panel.device.text().startswith("<b>This plan at batch 1:")
        await person.press(Qt.Key.Key_End, panel.batch)
        assert panel.device.text().startswith(f"<b>This plan at batch {usual_batches()[-1]}:")
        assert {item.batch for item in panel.table.records.records} == {usual_batches()[-1]}
        person.picture("kernels")
        await person.press(Qt.Key.Key_0, control=True)
        await person.act(
            lambda: person.context.workspace.select([x.name for x in person.state.session.model.layers[1:3]])
        )
        await person.press(Qt.Key.Key_0, control=True)
        await person.act(panel.start_sweep)
        assert person.context.messages.entries[-1].text == "The plan quantizes nothing; give layers a scheme first"

    live(story)


def test_the_targets_data_sheet_stands_beside_the_measurement_as_an_estimate(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        session = _one_block()
        await person.open(session)
        await person.act(lambda: person.window.reveal("timing"))
        panel = person.window.panels["timing"]
        label = panel.untimed
        assert label.isVisible() and "Estimate" not in label.text()
        await person.act(lambda: person.context.workspace.show_target("nvidia-9.0"))
        chip = hardware("nvidia-9.0")
        result = plan_estimate(session.model, person.state.assignments, chip, batch=1)
        words = estimate_in_words(result, chip.devices[0], 1)
        assert words in label.text() and "not measured" in words and chip.devices[0].name in words
        name = session.model.layers[3].name
        plan = session.plan.assign([name], weights="int4-channel")
        await person.act(lambda: person.context.workspace.edit("assign", lambda now: replace(now, plan=plan)))
        assert words not in label.text() and "Estimate for" in label.text()
        await person.act(lambda: person.context.workspace.show_target("vllm"))
        assert "Estimate" not in label.text()

    live(story)


def test_rates_occupancy_and_how_to_profile_are_shown_of_cuda_rows(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        plain = _timing((256, 512), "int8-channel", 1, 10.0, 20.0)
        cuda = replace(
            _timing((256, 512), "int8-channel", 1, 2.0, 5.0, kernel="cuda w8a8 int8 linear"), device="NVIDIA made up",
            read=131_072, occupancy="gemv_int8 75% (registers)",
        )  # fmt: skip
        await person.open(replace(_one_block(), timings=(plain,)))
        await person.act(lambda: person.window.reveal("timing"))
        panel = person.window.panels["timing"]
        assert not panel.ncu.isVisible()
        await person.act(lambda: person.context.workspace.update(lambda now: replace(now, timings=(plain, cuda))))
        assert panel.ncu.isVisible()
        titles = [column.title for column in panel.table.records.columns]
        rows = [[c.shown(item) for c in panel.table.records.columns] for item in panel.table.records.records]
        shown = [tuple(row[titles.index(name)] for name in ("Reads", "Operations", "Occupancy")) for row in rows]
        assert shown[0][0] == "–" and shown[0][2] == "– (a CPU kernel has none)"
        assert shown[1][0].endswith(" GB/s") and shown[1][0].startswith("65.5")  # 131,072 bytes in 2 us
        assert shown[1][1].startswith("0.131") and shown[1][2] == "gemv_int8 75% (registers)"
        await person.press(Qt.Key.Key_Space, panel.ncu)
        command = QApplication.clipboard().text()
        assert command.startswith('ncu --nvtx --nvtx-include "cuda w8a8 int8 linear/" ')
        assert command.endswith("workbench bench --shape 256x512 --schemes int8-channel --batch 1")
        assert person.context.messages.entries[-1].text == command
        await person.row(panel.table, 0)
        await person.press(Qt.Key.Key_Space, panel.ncu)
        assert person.context.messages.entries[-1].text == "The selected kernels ran on the CPU"

    live(story)


def test_timings_of_other_plans_are_left_out_and_parts_are_no_totals(live: Callable[..., None]) -> None:
    session = sessions.full(1)

    async def story(person: Person) -> None:
        first = session.model.layers[1].name
        plan = session.plan.assign([layer.name for layer in session.model.layers[1:-1]], weights="int8-channel")
        new = _timing((256, 256), "int8-channel", 1, 60.0, 90.0)
        old = _timing((256, 256), "int4-g32-asym", 1, 10.0, 90.0)
        await person.open(replace(session, plan=plan, timings=(new, old)))
        await person.act(lambda: person.window.reveal("timing"))
        panel = person.window.panels["timing"]
        assert [timing.scheme for timing in panel.table.records.records] == ["int8-channel"]
        assert "1 timing of schemes that the plan does not have left out" in panel.device.text()
        assert "What was timed of this plan" not in panel.device.text()
        await person.act(lambda: edits.assign(person.context.workspace, [first], weights="nf4-b64"))
        text = panel.device.text()
        assert "What was timed of this plan at batch 1" in text and "1 layer not timed" in text

    live(story)


def test_wrong_batch_sizes_are_refused() -> None:
    from workbench.errors import PlanError

    with pytest.raises(PlanError, match="at least 1"):
        sweep_batches(_one_block(), (4, 0))
