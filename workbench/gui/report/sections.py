"""The report's sections: each is made from the state alone; its figures are plots filled with arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QRect, QSize, Qt

from workbench.deployment.targets import target
from workbench.errors import WorkbenchError
from workbench.gui.panels import agreement, channels, compare, error_budget, pareto, sensitivity
from workbench.gui.panels.accuracy import audit_view, most_changed
from workbench.gui.panels.accuracy import panel as accuracy
from workbench.gui.panels.calibration_data import panel as calibration_data
from workbench.gui.panels.distributions import panel as distributions
from workbench.gui.panels.distributions.range_editor import range_of, statistics_of
from workbench.gui.panels.timing import panel as timing
from workbench.gui.panels.timing import roofs, transition_matrix
from workbench.gui.plots.agreement import Agreement
from workbench.gui.plots.calibration_data import CoveragePlot, SaturationPlot
from workbench.gui.plots.channel_bars import ChannelBars
from workbench.gui.plots.comparison import Comparison
from workbench.gui.plots.depth import Depth
from workbench.gui.plots.front import FrontPlot
from workbench.gui.plots.heatmap import Heatmap
from workbench.gui.plots.histogram import Histogram
from workbench.gui.plots.plot import Plot
from workbench.gui.plots.timing import BatchSweep, KernelTimes, RooflinePlot
from workbench.gui.report.pictures import png, svg
from workbench.gui.shell.theme import LIGHT
from workbench.gui.tables.fields import Field
from workbench.insight import quantities
from workbench.insight.agreement import comparable_metrics, rank_agreement
from workbench.insight.arrangement import Order, arranged
from workbench.insight.channels import outliers
from workbench.insight.compare import compare_sessions
from workbench.insight.dashboard import Dashboard, KeyFigure
from workbench.insight.fronts import evaluated_plans, front_of, picture_of, uniform_plans
from workbench.insight.layer_facts import layer_rows
from workbench.insight.plan_parts import transitions
from workbench.insight.roofline import points
from workbench.insight.sums import note_in_words, shown_unit
from workbench.insight.token_outliers import token_rows
from workbench.measurement.metrics import metric_title as evaluation_title
from workbench.measurement.units import loss_unit, short_unit
from workbench.sensitivity.metrics import metric_title
from workbench.session.calibrated_ranges import identity, ranges_at, ranges_by_hand
from workbench.session.session import TAPS, Session
from workbench.session.workspace import State

PLOT = QSize(520, 300)
MAX_ROWS, MAX_HEATMAP_ROWS = 300, 300
SHEET = QSize(640, 850)
"""The pixels between the margins of A4, less what its heading and caption take of the height."""
WIDE = 10
"""Columns that fit on A4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture: an SVG file, or a PNG's bytes; ``caption`` says what it shows."""

    caption: str
    svg: bytes = b""
    png: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``rows`` of text, the headings first; ``cut`` rows more were left out, ``numeric`` are the columns of numbers.

    ``alike`` says what is the same in all rows."""

    caption: str
    rows: Sequence[Sequence[str]]
    cut: int = 0
    alike: str = ""
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, sentences, pictures and tables."""

    title: str
    words: Sequence[str] = ()
    figures: Sequence[Figure] = field(default=())
    tables: Sequence[Table] = field(default=())

    @property
    def anchor(self) -> str:
        """The section's id in the page."""
        return "-".join(re.findall(r"[^\W_]+", self.title.lower()))


def picture(plot: Plot) -> Figure:
    """Return a filled plot as a picture."""
    try:
        return Figure(caption=plot.accessibleName(), svg=svg(plot, PLOT))
    finally:
        plot.deleteLater()


def table(caption: str, fields: Sequence[Field], records: Iterable[Any], unit: str = "") -> Table:
    """Return records as a table of texts; losses are in ``unit``."""
    texts = ([field.shown(record) for field in fields] for record in records)
    titles = [field.heading(unit) for field in fields]
    return cut(caption, [titles, *texts], {title for title, each in zip(titles, fields, strict=True) if each.numeric})


def cut(caption: str, rows: list[list[str]], numeric: Collection[str] = ()) -> Table:
    """Return a table of at most MAX_ROWS rows below its headings, without columns that are empty; ``numeric`` are the
    headings of numbers.  Of a table that is too wide for paper, what is alike in all rows stands above it."""
    alike = ""
    columns = [(title, texts) for title, *texts in zip(*rows, strict=True) if not texts or {*texts} - {"", "–"}]
    if len(columns) > WIDE and len(rows) > 2:
        alike = " · ".join(f"{title}: {texts[0]}" for title, texts in columns if len(set(texts)) == 1)
        columns = [(title, texts) for title, texts in columns if len(set(texts)) > 1]
    places = frozenset(place for place, (title, _) in enumerate(columns) if title in numeric)
    full = list(zip(*([title, *texts] for title, texts in columns), strict=True))
    left_out = max(len(rows) - MAX_ROWS - 1, 0)
    return Table(caption=caption, rows=full[: MAX_ROWS + 1], cut=left_out, alike=alike, numeric=places)


def _summary(session: Session, state: State) -> Section:
    """Return what was quantized, on which data, and what the plan comes to."""
    totals = state.totals
    rows = [["", ""], ["Model", session.model.name], ["Fingerprint", session.model.fingerprint],
            ["Layers", f"{len(session.model.layers):,}"]]  # fmt: skip
    if (record := session.calibration) is not None:
        rows.append(["Calibration", f"{record.name}, {record.samples:,} samples, {record.content_hash}"])
    if (record := session.evaluation) is not None:  # of which each evaluation says how many samples it took
        rows.append(["Evaluation", f"{record.name}, {record.content_hash}"])
    if state.target:
        rows.append(["Target", target(state.target).title])
    if totals is not None:
        rows.append(["Bytes", f"{totals.nbytes:,}"])
        known = (figure for figure in Dashboard().figures(state) if figure.value != quantities.NONE)
        rows += [[figure.title, _in_words(figure)] for figure in known]
    made = session.environment
    rows.append(["Made with", f"workbench {made.workbench}, Python {made.python}, torch {made.torch}, {made.device}"])
    notes = tuple(note_in_words(session, note) for note in session.notes)
    return Section(title="Summary", words=notes, tables=(Table(caption="The session", rows=rows),))


def _in_words(figure: KeyFigure) -> str:
    """Return a key figure with its interval and its differences from other plans."""
    detail = f" ({figure.detail})" if figure.detail else ""
    differences = (each.sentence for each in figure.differences)
    return "; ".join([f"{figure.value}{detail}", *differences])


def _plan(session: Session, state: State) -> Section:
    """Return the plan's rules, and what each layer gets."""
    assignments = ((rule.pattern, rule.assignment) for rule in session.plan.rules)
    rules = [["Layers", "Weights", "Inputs", "Algorithm"], *(
        [pattern, rule.weights, rule.inputs or "floating point", rule.algorithm] for pattern, rule in assignments
    )]  # fmt: skip
    by_hand = [["Layer", "Lowest", "Highest", "Clipped"], *(
        [name, quantities.number(held.low), quantities.number(held.high), quantities.share(held.clipped)]
        for name, held in ranges_by_hand(session, session.plan).items()
    )]  # fmt: skip
    words = [f"Transforms, in order: {', '.join(session.plan.transforms)}."] if session.plan.transforms else []
    words += [state.plan_error] if state.plan_error else []
    unit = shown_unit(session, state.metric)
    loss = f"Loss ({short_unit(unit) or unit})"
    layers = layer_rows(session, state.assignments, state.metric)
    layers[0] = [loss if title == "Loss" else title for title in layers[0]]
    return Section(
        title="Plan",
        words=words,
        tables=(
            cut("The plan's rules", rules),
            cut("Layers", layers, ("Bits", "Size", loss)),
            *([cut("Input ranges set by hand", by_hand, by_hand[0][1:])] if by_hand[1:] else ()),
        ),
    )


def _sensitivity(session: Session, state: State) -> Section | None:
    """Return the heatmap of the metric that is shown."""
    scores = session.table(state.shown_metric)
    if scores is None:
        return None
    order = Order.DEPTH if len(scores.layers) <= MAX_HEATMAP_ROWS else Order.BLOCK
    shown, heatmap = arranged(scores, order, session.model), Heatmap(LIGHT)
    heatmap.show_cells(sensitivity.cells_of(shown, state.assignments, state.shown_metric))
    rows, columns = min(len(shown.table.layers), MAX_HEATMAP_ROWS), len(scores.schemes)
    title = metric_title(scores.metric, scores.unit)
    words = [f"{title} of {len(scores.layers):,} layers under {columns:,} schemes, in {scores.unit}; lower is better."]
    which = "layer" if order is Order.DEPTH else "block, the sum of its layers,"
    missing = "" if rows == len(shown.table.layers) else f" (the first {rows:,} of {len(shown.table.layers):,})"
    caption = f"{title} of every {which} under every scheme{missing}; the plan's choices are framed"
    figures = [
        Figure(caption=caption if end - place == rows else f"{caption}: rows {place + 1:,} to {end:,}", png=image)
        for place, end, image in _pieces(heatmap, max(260 + 46 * columns, SHEET.width()), rows)
    ]
    heatmap.deleteLater()
    return Section(title="Sensitivity", words=words, figures=figures)


def _pieces(heatmap: Heatmap, width: int, rows: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield pictures of a heatmap's first rows, each of which fits a sheet: from and to which row, and a PNG."""
    heatmap.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    png(heatmap, QSize(width, 1000))  # which tells how high its head is
    fitting = (SHEET.height() * width // SHEET.width() - heatmap.head_height) // heatmap.row_height
    each = math.ceil(rows / math.ceil(rows / fitting))
    for first in range(0, rows, each):
        end = min(first + each, rows)
        height = heatmap.head_height + heatmap.row_height * (end - first)
        heatmap.resize(width, height + 2 * heatmap.frameWidth())
        heatmap.grab(QRect(0, 0, 1, 1))
        heatmap.verticalScrollBar().setValue(first * heatmap.row_height)
        yield first, end, png(heatmap)


def _front(session: Session, state: State) -> Section | None:
    """Return the front by size with the plans beside it."""
    scores = session.table(state.metric)
    if scores is None:
        return None
    try:
        best = front_of(session, scores, None, state.target)
    except WorkbenchError:
        return None
    plot = FrontPlot(LIGHT)
    uniform = uniform_plans(session, scores, None, state.assignments, state.target)
    plot.show_picture(picture_of(state, best, uniform, evaluated_plans(session, None), None))
    words = [f"{quantities.plural(len(best), 'plan')} that no other is better than in both size and predicted loss."]
    words += filter(None, (pareto.why_selected(best, state),))
    return Section(title="Pareto front", words=words, figures=[picture(plot)])


def _accuracy(session: Session, state: State) -> Section | None:
    """Return every evaluation, and the audit of a plan."""
    runs, audit = session.evaluations, session.audit
    if not runs and audit is None:
        return None
    figures, tables, words = [], [], []
    for name in accuracy.metric_names(runs):
        plot = Comparison(evaluation_title(name), LIGHT)
        accuracy.show_metric(plot, name, runs)
        figures.append(picture(plot))
    if runs:
        tables.append(table("Evaluations", accuracy.FIELDS, accuracy.rows_of(runs)))
        if runs[-1].changed:
            changes = most_changed.by_divergence(runs[-1].changed)
            tables.append(table("What quantization changed most", most_changed.FIELDS, changes))
    if audit is not None:
        unit = short_unit(loss_unit(session.model.output))
        said = audit.audit.sentence(loss_unit(session.model.output))
        words.append(f"Audit of {audit.plan_name}{_since(session, audit.plan_hash)}: {said}")
        tables.append(table("Layers by their interaction", audit_view.FIELDS, audit_view.rows_of(audit.audit), unit))
    return Section(title="Accuracy", words=words, figures=figures, tables=tables)


def _since(session: Session, plan: str) -> str:
    """Return what to say of a result of the plan known as ``plan``, where the session's is another one by now."""
    return "" if plan == identity(session, session.plan) else " (the plan has changed since)"


def _agreement(session: Session, state: State) -> Section | None:
    """Return how the first two comparable metrics agree."""
    pairs = comparable_metrics(session)
    if not pairs:
        return None
    first = next(iter(pairs))
    second = "measured_kl" if "measured_kl" in pairs[first] else pairs[first][0]
    plot = Agreement(LIGHT)
    cells = agreement.show_agreement(plot, session.sensitivities[first], session.sensitivities[second])
    rank = quantities.number(rank_agreement(cells.x.ravel(), cells.y.ravel()), 2)
    words = [f"{metric_title(first)} against {metric_title(second)}: rank agreement {rank}."]
    tables = [table("Agreement by scheme", agreement.FIELDS, cells.by_scheme())]
    return Section(title="Agreement", words=words, figures=[picture(plot)], tables=tables)


def _error_budget(session: Session, state: State) -> Section | None:
    """Return where error enters and grows."""
    budget = session.error_budget
    if budget is None:
        return None
    plot, tables = Depth(LIGHT), []
    plot.show_lines(budget.measured.blocks, error_budget.budget_lines(budget))
    if budget.predicted is not None:
        rows = error_budget.noisiest(budget.predicted)
        tables.append(table("Layers that send the most noise to the output", error_budget.FIELDS, rows))
    words = [f"{error_budget.budget_in_words(budget)}{_since(session, budget.plan_hash)}."]
    return Section(title="Error budget", words=words, figures=[picture(plot)], tables=tables)


def _comparison(session: Session, state: State) -> Section | None:
    """Return the comparison with the other session."""
    if state.compared is None:
        return None
    other = compare_sessions(session, state.compared)
    tables = (table("Layers of both sessions", compare.LAYERS, other.layers, other.unit),
              table("Facts", compare.FACTS, other.facts),
              table("What both sessions measured", compare.METRICS, other.metrics))  # fmt: skip
    words = [f"Against {state.compared_path.name}: {compare.differing_layers(other)}."]
    return Section(title="Comparison", words=words, tables=tables)


def _distributions(session: Session, state: State) -> Section | None:
    """Return the selected layer's histograms with the calibrated ranges."""
    if not state.selection:
        return None
    layer, figures, words = state.selection[0], [], []
    for tap in TAPS:
        statistics = statistics_of(session, layer, tap)
        if statistics is None or not statistics.count:
            continue
        ranges = ranges_at(session.ranges, layer, tap)
        plot, active = Histogram(f"Histogram of the {tap}s", LIGHT, bottom=tap), range_of(session, layer, tap)
        plot.resize(PLOT)
        plot.show_statistics(statistics, ranges if tap == "input" else {}, active, movable=active is not None)
        figures.append(picture(plot))
        words.append(distributions.tensor_in_words(tap, statistics))
    return Section(title="Distributions", words=[layer, *words], figures=figures) if figures else None


def _channels(session: Session, state: State) -> Section | None:
    """Return the selected layer's weights by channel."""
    layer = state.selection[0] if state.selection else ""
    statistics = statistics_of(session, layer, "weight") if layer else None
    if statistics is None or not statistics.count:
        return None
    plot, largest = ChannelBars(LIGHT), outliers(statistics)
    plot.show_channels(statistics, largest)
    if plot.region is not None:
        plot.region.hide()  # nobody drags it on paper
    words = [f"{channels.channels_in_words(layer, statistics, len(largest))}."]
    tables = [table("Outlier channels", channels.FIELDS, largest)]
    return Section(title="Channels", words=words, figures=[picture(plot)], tables=tables)


def _calibration_data(session: Session, state: State) -> Section | None:
    """Return whether the calibration data are enough, and the tokens with massive values."""
    rows, quality = token_rows(session, state.selection), state.data_quality
    tokens = table("Outlier tokens", calibration_data.TOKENS, rows)
    if quality is None:
        return Section(title="Calibration data", tables=[tokens]) if rows else None
    saturation, coverage = SaturationPlot(LIGHT), CoveragePlot(LIGHT)
    saturation.show_saturation(quality.saturation)
    coverage.show_quality(quality)
    words = [quality.sentence(), calibration_data.in_words(quality)]
    settled = calibration_data.rows_of(quality)
    tables = [table("Tensors by how far they are from settled", calibration_data.FIELDS, settled), tokens]
    figures = [picture(saturation), picture(coverage)]
    return Section(title="Calibration data", words=words, figures=figures, tables=tables)


def _timing(session: Session, state: State) -> Section | None:
    """Return the kernel times, and what the plan turns into what."""
    moves = table("Precision transitions", transition_matrix.FIELDS, transitions(session.model, state.assignments))
    words, figures, tables = timing.times_in_words(state), [], [moves]
    if session.timings:
        smallest = min(run.batch for run in session.timings)
        shown = tuple(run for run in session.timings if run.batch == smallest)
        times, sweep, roof = KernelTimes(LIGHT), BatchSweep(LIGHT), RooflinePlot(LIGHT)
        times.resize(PLOT)
        times.show_timings(shown)
        sweep.show_lines(roofs.sweep_lines(session.timings))
        roof.show_points(points(session.timings), state.ceilings or next(iter(roofs.estimates()), None))
        figures = [picture(times), picture(sweep), picture(roof)]
        tables = [table("Kernel times", timing.FIELDS, shown), moves]
    return Section(title="Timing", words=words, figures=figures, tables=tables)


SECTIONS: tuple[Callable[[Session, State], Section | None], ...] = (
    _summary, _plan, _sensitivity, _front, _accuracy, _agreement, _error_budget, _comparison, _distributions,
    _channels, _calibration_data, _timing,
)  # fmt: skip
