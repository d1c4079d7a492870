"""The report's sections: each is made from the state alone; its figures are plots filled with arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from PySide6.QtCore import QSize

from workbench.errors import WorkbenchError
from workbench.gui.panels.accuracy import audit_view, most_changed
from workbench.gui.panels.accuracy import panel as accuracy_panel
from workbench.gui.panels.agreement import FIELDS as AGREEMENT
from workbench.gui.panels.agreement import show_agreement
from workbench.gui.panels.calibration_data import panel as data_panel
from workbench.gui.panels.calibration_data.panel import TOKENS
from workbench.gui.panels.channels import FIELDS as CHANNELS
from workbench.gui.panels.channels import channels_in_words
from workbench.gui.panels.compare import FACTS, METRICS, differing_layers
from workbench.gui.panels.compare import LAYERS as COMPARED
from workbench.gui.panels.distributions.panel import tensor_in_words
from workbench.gui.panels.distributions.range_editor import range_of, statistics_of
from workbench.gui.panels.error_budget import FIELDS as NOISE
from workbench.gui.panels.error_budget import budget_in_words, budget_lines, noisiest
from workbench.gui.panels.pareto import why_selected
from workbench.gui.panels.sensitivity import by_family, cells_of
from workbench.gui.panels.timing import panel as timing_panel
from workbench.gui.panels.timing.roofs import estimates, sweep_lines
from workbench.gui.panels.timing.transition_matrix import FIELDS as TRANSITIONS
from workbench.gui.plots.agreement import Agreement
from workbench.gui.plots.batch_sweep import BatchSweep
from workbench.gui.plots.channel_bars import ChannelBars
from workbench.gui.plots.comparison import Comparison
from workbench.gui.plots.coverage import CoveragePlot
from workbench.gui.plots.depth import Depth
from workbench.gui.plots.front import FrontPlot
from workbench.gui.plots.heatmap import Heatmap
from workbench.gui.plots.histogram import Histogram
from workbench.gui.plots.kernel_times import KernelTimes
from workbench.gui.plots.plot import Plot
from workbench.gui.plots.roofline import RooflinePlot
from workbench.gui.plots.saturation import SaturationPlot
from workbench.gui.report.pictures import png, svg
from workbench.gui.report.report import Figure, Section, Table
from workbench.gui.shell.theme import LIGHT
from workbench.gui.tables.fields import Field
from workbench.insight import quantities
from workbench.insight.agreement import comparable_metrics, rank_agreement
from workbench.insight.channels import outliers
from workbench.insight.compare import compare_sessions
from workbench.insight.fronts import evaluated_plans, front_of, picture_of, uniform_plans
from workbench.insight.layer_table import layer_rows
from workbench.insight.roofline import points
from workbench.insight.sums import shown_unit
from workbench.insight.token_outliers import token_rows
from workbench.insight.transitions import transitions
from workbench.measurement.metrics import metric_title as evaluation_title
from workbench.sensitivity.metrics import metric_title
from workbench.session.session import TAPS, Session
from workbench.session.workspace import State

PLOT = QSize(520, 300)
MAX_ROWS, MAX_HEATMAP_ROWS = 300, 120


def picture(plot: Plot) -> Figure:
    """Return a filled plot as a picture."""
    try:
        return Figure(caption=plot.accessibleName(), svg=svg(plot, PLOT))
    finally:
        plot.deleteLater()


def table(caption: str, fields: Sequence[Field], records: Iterable[Any]) -> Table:
    """Return records as a table of texts."""
    texts = ([field.shown(record) for field in fields] for record in records)
    return cut(caption, [[field.title for field in fields], *texts])


def cut(caption: str, rows: list[list[str]]) -> Table:
    """Return a table of at most MAX_ROWS rows below its headings."""
    return Table(caption=caption, rows=rows[: MAX_ROWS + 1], cut=max(len(rows) - MAX_ROWS - 1, 0))


def summary(session: Session, state: State) -> Section:
    """Return what was quantized, on which data, and what the plan comes to."""
    totals = state.totals
    rows = [["", ""], ["Model", session.model.name], ["Fingerprint", session.model.fingerprint],
            ["Layers", f"{len(session.model.layers):,}"]]  # fmt: skip
    for title, record in (("Calibration", session.calibration), ("Evaluation", session.evaluation)):
        if record is not None:
            rows.append([title, f"{record.name}, {record.samples:,} samples, {record.content_hash}"])
    if totals is not None:
        rows.append(["Size", f"{quantities.data_size(totals.nbytes)} ({totals.nbytes:,} bytes)"])
        rows.append(["Bits per weight", f"{totals.bits_per_weight:.4f}"])
        title = metric_title(state.metric, shown_unit(session, state.metric))
        rows.append([f"Loss ({title})", quantities.number(totals.predicted, 4)])
    made = session.environment
    rows.append(["Made with", f"workbench {made.workbench}, Python {made.python}, torch {made.torch}, {made.device}"])
    return Section(title="Summary", words=session.notes, tables=(Table(caption="The session", rows=rows),))


def plan(session: Session, state: State) -> Section:
    """Return the plan's rules, and what each layer gets."""
    assignments = ((rule.pattern, rule.assignment) for rule in session.plan.rules)
    rules = [["Layers", "Weights", "Inputs", "Algorithm"], *(
        [pattern, rule.weights, rule.inputs or "floating point", rule.algorithm] for pattern, rule in assignments
    )]  # fmt: skip
    words = [f"Transforms, in order: {', '.join(session.plan.transforms)}."] if session.plan.transforms else []
    words += [state.plan_error] if state.plan_error else []
    layers = layer_rows(session, state.assignments, state.metric)
    return Section(title="Plan", words=words, tables=(cut("The plan's rules", rules), cut("Layers", layers)))


def sensitivity(session: Session, state: State) -> Section | None:
    """Return the heatmap of the metric that is shown."""
    scores = session.table(state.shown_metric)
    if scores is None:
        return None
    heatmap = Heatmap(LIGHT)
    heatmap.show_cells(cells_of(by_family(scores), state.assignments, state.shown_metric))
    rows, columns = min(len(scores.layers), MAX_HEATMAP_ROWS), len(scores.schemes)
    image = png(heatmap, QSize(260 + 46 * columns, 190 + heatmap.row_height * rows))
    heatmap.deleteLater()
    title = metric_title(scores.metric, scores.unit)
    words = [f"{title} of {len(scores.layers):,} layers under {columns:,} schemes, in {scores.unit}; lower is better."]
    caption = f"{title} of every layer under every scheme; the plan's choices are framed"
    return Section(title="Sensitivity", words=words, figures=[Figure(caption=caption, png=image)])


def front(session: Session, state: State) -> Section | None:
    """Return the front by size with the plans beside it."""
    scores = session.table(state.metric)
    if scores is None:
        return None
    try:
        best = front_of(session, scores, None)
    except WorkbenchError:
        return None
    plot = FrontPlot(LIGHT)
    uniform, measured = uniform_plans(session, scores, None, state.assignments), evaluated_plans(session, None)
    plot.show_picture(picture_of(state, best, uniform, measured, None))
    words = [f"{quantities.plural(len(best), 'plan')} that no other is better than in both size and predicted loss."]
    words += filter(None, (why_selected(best, state),))
    return Section(title="Pareto front", words=words, figures=[picture(plot)])


def accuracy(session: Session, state: State) -> Section | None:
    """Return every evaluation, and the audit of a plan."""
    runs, audit = session.evaluations, session.audit
    if not runs and audit is None:
        return None
    figures, tables, words = [], [], []
    for name in accuracy_panel.metric_names(runs):
        plot = Comparison(evaluation_title(name), LIGHT)
        accuracy_panel.show_metric(plot, name, runs)
        figures.append(picture(plot))
    if runs:
        tables.append(table("Evaluations", accuracy_panel.FIELDS, accuracy_panel.rows_of(runs)))
        if runs[-1].changed:
            changes = most_changed.by_divergence(runs[-1].changed)
            tables.append(table("What quantization changed most", most_changed.FIELDS, changes))
    if audit is not None:
        words.append(f"Audit of {audit.plan_name}: {audit.audit.sentence()}")
        tables.append(table("Layers by their interaction", audit_view.FIELDS, audit_view.rows_of(audit.audit)))
    return Section(title="Accuracy", words=words, figures=figures, tables=tables)


def agreement(session: Session, state: State) -> Section | None:
    """Return how the first two comparable metrics agree."""
    pairs = comparable_metrics(session)
    if not pairs:
        return None
    first = next(iter(pairs))
    second = "measured_kl" if "measured_kl" in pairs[first] else pairs[first][0]
    plot = Agreement(LIGHT)
    cells = show_agreement(plot, session.sensitivities[first], session.sensitivities[second])
    rank = quantities.number(rank_agreement(cells.x.ravel(), cells.y.ravel()), 2)
    words = [f"{metric_title(first)} against {metric_title(second)}: rank agreement {rank}."]
    tables = [table("Agreement by scheme", AGREEMENT, cells.by_scheme())]
    return Section(title="Agreement", words=words, figures=[picture(plot)], tables=tables)


def error_budget(session: Session, state: State) -> Section | None:
    """Return where error enters and grows."""
    budget = session.error_budget
    if budget is None:
        return None
    plot, tables = Depth(LIGHT), []
    plot.show_lines(budget.measured.blocks, budget_lines(budget))
    if budget.predicted is not None:
        tables.append(table("Layers that send the most noise to the output", NOISE, noisiest(budget.predicted)))
    return Section(title="Error budget", words=[f"{budget_in_words(budget)}."], figures=[picture(plot)], tables=tables)


def comparison(session: Session, state: State) -> Section | None:
    """Return the comparison with the other session."""
    if state.compared is None:
        return None
    other = compare_sessions(session, state.compared)
    tables = (table("Layers of both sessions", COMPARED, other.layers), table("Facts", FACTS, other.facts),
              table("What both sessions measured", METRICS, other.metrics))  # fmt: skip
    words = [f"Against {state.compared_path.name}: {differing_layers(other)}."]
    return Section(title="Comparison", words=words, tables=tables)


def distributions(session: Session, state: State) -> Section | None:
    """Return the selected layer's histograms with the calibrated ranges."""
    if not state.selection:
        return None
    layer, figures, words = state.selection[0], [], []
    for tap in TAPS:
        statistics = statistics_of(session, layer, tap)
        if statistics is None or not statistics.count:
            continue
        ranges = {key[2]: value for key, value in session.ranges.items() if key[:2] == (layer, tap)}
        plot, active = Histogram(f"Histogram of the {tap}s", LIGHT, bottom=tap), range_of(session, layer, tap)
        plot.resize(PLOT)
        plot.show_statistics(statistics, ranges if tap == "input" else {}, active, movable=active is not None)
        figures.append(picture(plot))
        words.append(tensor_in_words(tap, statistics))
    return Section(title="Distributions", words=[layer, *words], figures=figures) if figures else None


def channels(session: Session, state: State) -> Section | None:
    """Return the selected layer's weights by channel."""
    layer = state.selection[0] if state.selection else ""
    statistics = statistics_of(session, layer, "weight") if layer else None
    if statistics is None or not statistics.count:
        return None
    plot, largest = ChannelBars(LIGHT), outliers(statistics)
    plot.show_channels(statistics, largest)
    words = [f"{channels_in_words(layer, statistics, len(largest))}."]
    tables = [table("Outlier channels", CHANNELS, largest)]
    return Section(title="Channels", words=words, figures=[picture(plot)], tables=tables)


def calibration_data(session: Session, state: State) -> Section | None:
    """Return whether the calibration data are enough, and the tokens with massive values."""
    tokens, quality = token_rows(session, state.selection), state.data_quality
    if quality is None:
        return Section(title="Calibration data", tables=[table("Outlier tokens", TOKENS, tokens)]) if tokens else None
    saturation, coverage = SaturationPlot(LIGHT), CoveragePlot(LIGHT)
    saturation.show_saturation(quality.saturation)
    coverage.show_quality(quality)
    words = [quality.sentence(), data_panel.in_words(quality)]
    tables = [table("Tensors by how far they are from settled", data_panel.FIELDS, data_panel.rows_of(quality)),
              table("Outlier tokens", TOKENS, tokens)]  # fmt: skip
    figures = [picture(saturation), picture(coverage)]
    return Section(title="Calibration data", words=words, figures=figures, tables=tables)


def timing(session: Session, state: State) -> Section | None:
    """Return the kernel times, and what the plan turns into what."""
    moves = table("Precision transitions", TRANSITIONS, transitions(session.model, state.assignments))
    words, figures, tables = timing_panel.times_in_words(state), [], [moves]
    if session.timings:
        smallest = min(timing.batch for timing in session.timings)
        shown = tuple(timing for timing in session.timings if timing.batch == smallest)
        times, sweep, roof = KernelTimes(LIGHT), BatchSweep(LIGHT), RooflinePlot(LIGHT)
        times.resize(PLOT)
        times.show_timings(shown)
        sweep.show_lines(sweep_lines(session.timings))
        roof.show_points(points(session.timings), state.ceilings or next(iter(estimates()), None))
        figures = [picture(times), picture(sweep), picture(roof)]
        tables = [table("Kernel times", timing_panel.FIELDS, shown), moves]
    return Section(title="Timing", words=words, figures=figures, tables=tables)


SECTIONS: tuple[Callable[[Session, State], Section | None], ...] = (
    summary, plan, sensitivity, front, accuracy, agreement, error_budget, comparison, distributions, channels,
    calibration_data, timing,
)  # fmt: skip
