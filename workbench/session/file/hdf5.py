"""The session as one HDF5 file that any HDF5 viewer shows: named groups, one dataset for each field, units, versions.

====================================  ==================================================================================
``/``                                 type, version, what wrote it, target and budget of the plan where it has them
``/environment``                      versions and device, as attributes
``/model``                            facts as attributes; ``source``, tables ``layers`` and ``kept``, ``non_finite``
``/calibration``, ``/evaluation``     which data was used, as attributes; absent where there was none
``/statistics/<tap>``                 a table with one row for each layer: ``counts`` is layers x bins
``/ranges``, ``/active_ranges``       tables over layer, tap and method
``/outliers/<tap>``                   a table with one row for each layer; absent in older files
``/curvature``                        a table with one row for each layer
``/sensitivity/<metric>``             ``score`` with the dimension scales ``layers`` and ``schemes``; where the loss was
                                      predicted by sample, ``directions/values`` is layers x schemes x draws
``/plan``, ``/plans/<name>``          name and fingerprint as attributes, the table ``rules``
``/locked``, ``/notes``               lists of strings
``/evaluations``, ``/timings``        tables; ``/evaluations/metrics`` has one row for each metric of each evaluation,
                                      ``/evaluations/changed`` one for each token or sample that changed most
``/error_budget``                     ``gain`` is layers x blocks; absent where none was measured
``/results/<step>``                   ``facts`` as attributes, ``columns``; absent in older files
``/audit``                            losses of each layer of a plan; absent where none was measured
====================================  ==================================================================================

The file is formed in memory and written by us: a disk that fills up in the middle is then our error to handle, and not
one inside the HDF5 library, which cannot close a file that it failed to write.  Fields of all layers lie in one dataset
each, not layers in groups: 10,000 layers with statistics of three taps take about 2.3 s to write and as long to read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import psutil

from workbench.atomic import replacing
from workbench.errors import DamagedSessionError, SessionError
from workbench.measurement.evaluation import Timing
from workbench.memory import uncollected
from workbench.planning.plan import Assignment, Plan
from workbench.sensitivity.table import Sensitivity
from workbench.session.coherence import require_coherent
from workbench.session.columns import Coded, Columns, Numbers
from workbench.session.contents import LAYOUTS, SCHEMA_VERSION, Contents
from workbench.session.file import backup, evaluations, records, results
from workbench.session.file.checksum import BROKEN, add_checksums, contents, seal_of, with_end
from workbench.session.file.datasets import describe, link_name, write_text
from workbench.session.file.reading import DAMAGE, Attempt, session_of
from workbench.session.file.tree import Group, read_tree, read_whole_parts

if TYPE_CHECKING:
    import h5py

C = TypeVar("C", bound=Contents)
R = TypeVar("R")

TYPE = "quantization-workbench/session"
_HEADERS, _PLAN = 3 << 17, 1 << 13
"""Bytes that HDF5 sets aside for what describes arrays: in a session that is calibrated (SmolLM2: 240,000 and the spare
copy), and for each further plan, result or table (a plan: 6,000)."""

_GROWTH, _COMPACT = 1 << 20, 60_000
"""Bytes by which the file grows in memory, and of the largest array that a header holds (HDF5's limit is 64 KiB)."""

_TIMING_UNITS = {"samples": "microsecond", "baseline_samples": "microsecond"}


def write_session(session: Contents, path: Path) -> None:
    """Write ``session`` to ``path``, atomically.

    Raises SessionError if the session contradicts itself or the file cannot be written; the old file stays whole.
    """
    check(session, "the session")
    try:
        spare = backup.packed(_image(backup.without_computed(session)))
        image = _image(session, spare)
    except DAMAGE as error:
        raise SessionError(f"the session cannot be stored: {_first_line(error)}; nothing was written") from error
    with replacing(path, SessionError, "the session") as temporary, temporary.open("wb") as stream:
        for part in (image, spare, seal_of(image, spare)):
            stream.write(part)


def _image(session: Contents, spare: bytes = b"") -> memoryview:
    """Return the HDF5 of a session, whose first array is the ``spare`` copy.

    What describes the arrays lies before their values, so that a file whose end was cut off keeps all that it has of
    them.  HDF5's own order puts it last.
    """
    import h5py

    size = _HEADERS if session.calibration else _HEADERS // 3
    size += _PLAN * (len(session.plans) + len(session.results) + len(session.sensitivities))
    with h5py.File(
        "session", "w", driver="core", backing_store=False, block_size=_GROWTH, track_order=True, meta_block_size=size
    ) as file:  # fmt: skip
        if spare:
            _write_spare(file, spare)
        _write(file, session)
        add_checksums(file)
        file.flush()
        return memoryview(file.id.get_file_image())


def _write_spare(file: h5py.File, spare: bytes) -> None:
    """Write the spare copy, among the headers where these hold so many bytes."""
    import h5py

    values = np.frombuffer(spare, np.uint8)
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    created.set_obj_track_times(False)  # the same session has the same bits
    created.set_layout(h5py.h5d.COMPACT if len(spare) <= _COMPACT else h5py.h5d.CONTIGUOUS)
    space = h5py.h5s.create_simple(values.shape)
    stored = h5py.Dataset(h5py.h5d.create(file.id, b"spare", h5py.h5t.NATIVE_UINT8, space, created))
    stored[...] = values
    describe(stored, "spare-copy")


def read_session(path: Path, kind: type[C]) -> C:
    """Read a session as a ``kind``.

    Raises SessionError, one line, for a path without a file, a file that is not HDF5, is not a session, is truncated or
    damaged, lacks a part, or is of a later version.
    """
    image, _, broken = contents(path)
    command = f"workbench repair {shlex.quote(str(path))} --out OTHER.qwb"
    advice = "use a backup or an autosave, or open the undamaged parts by a repair"
    if broken:
        raise DamagedSessionError(f"the session {path} is damaged: {broken}; {advice}", command=command)
    try:
        tree = read_tree(image, _room(path))
        if "sealed" in tree.attrs and len(image) == path.stat().st_size:
            raise DamagedSessionError(f"{BROKEN}; {advice}", command=command)
        _check_version(tree)
        with uncollected():
            session = session_of(tree, kind, Attempt())
            require_coherent(session)
    except SessionError as error:
        raise type(error)(f"the session {path} cannot be read: {error}", command=error.command) from error
    except DAMAGE as error:
        text = f"the session {path} is damaged: {_first_line(error)}; {advice}"
        raise DamagedSessionError(text, command=command) from error
    check(session, f"the session {path}")
    return session


def repair_session(path: Path, kind: type[C]) -> tuple[C, tuple[str, ...]]:
    """Return what is whole of a damaged session, and what was lost, with the reasons.

    Plans, locks, ranges and the model's facts come from the spare copy where they are damaged.  Without the facts there
    is nothing that the rest belongs to: SessionError.
    """
    image, packed, _ = contents(path)
    spare = _spare(packed or backup.inside(image), path, kind)
    try:
        session, lost = _whole_parts(with_end(image), path, kind, spare)
    except SessionError as error:
        if spare is None:
            raise SessionError(f"the session {path} cannot be repaired: {error}") from error
        return spare, (f"everything but the model's facts, the plans, the locks and the active ranges: {error}",)
    if spare is None:
        return session, lost
    fields = [(line.strip("/").partition(":")[0].partition("/")[0], line) for line in lost]
    restored = {name: getattr(spare, name) for name, _ in fields if name in ("model", *backup.EDITED)}
    return replace(session, **restored), tuple(line for name, line in fields if name not in restored)


def _whole_parts(image: memoryview, path: Path, kind: type[C], spare: C | None = None) -> tuple[C, tuple[str, ...]]:
    """Return what is whole of an HDF5, and what was lost; raises SessionError."""
    try:
        tree, lost = read_whole_parts(image, _room(path))
        _check_version(tree)
        session = session_of(tree, kind, Attempt(lost), spare.model if spare else None)
        check(session, "what is whole")
    except DAMAGE as error:
        raise SessionError(_first_line(error)) from error
    return session, tuple(lost)


def _spare(packed: memoryview, path: Path, kind: type[C]) -> C | None:
    """Return the spare copy of a session, None where there is none that is whole."""
    image = backup.unpacked(packed, _room(path)) if packed else None
    try:
        return None if image is None else _whole_parts(image, path, kind)[0]
    except SessionError:
        return None


def _room(path: Path) -> int:
    """Return how many bytes of arrays a file may have: what is free, which is never less than the file's own size."""
    return max(int(psutil.virtual_memory().available * 0.8), path.stat().st_size)


def check(session: Contents, where: str) -> None:
    """Raise SessionError if counts are negative or shapes disagree; ``where`` begins the message."""
    for tap, part in session.columns("statistics").items():
        layer = _negative(part, "count", "non_finite", "counts")
        if layer:
            raise SessionError(f"{where} has a negative count in the statistics of {layer} ({tap})")
    for metric, table in session.sensitivities.items():
        expected = (len(table.layers), len(table.schemes))
        if table.score.shape != expected:
            raise SessionError(f"{where} has scores of {metric} of shape {table.score.shape}, expected {expected}")
    for part in session.columns("curvature").values():
        layer = _negative(part, "count")
        if layer:
            raise SessionError(f"{where} has a negative count in the curvature of {layer}")


def _negative(columns: Columns[R], *fields: str) -> str:
    """Return the layer whose counts in ``fields`` are negative somewhere, or an empty text."""
    layers = list(columns.keys["layer"].cells(0, columns.rows))
    for name in fields:
        match columns.fields[name]:
            case Numbers(values=values):
                lowest = values if values.ndim == 1 else values.min(axis=1, initial=0)
            case column:
                cells = cast("Iterable[np.ndarray]", column.cells(0, columns.rows))
                lowest = np.array([cell.min(initial=0) for cell in cells])
        if np.any(lowest < 0):
            return str(layers[int(np.argmax(lowest < 0))])
    return ""


def _write(file: h5py.File, session: Contents) -> None:
    aimed: dict[str, str | float] = {"target": session.target} if session.target else {}
    if session.budget is not None:
        aimed |= {"budget": session.budget.amount, "budget_unit": str(session.budget.unit)}
    describe(file, TYPE, created_by=f"Quantization Workbench {session.environment.workbench}", **aimed)
    file.attrs["version"] = SCHEMA_VERSION
    for name in ("environment", "model", "calibration", "evaluation"):
        record = getattr(session, name)
        if record is not None:
            records.write_record(file, name, record)
    for name, layout in LAYOUTS.items():
        group = _collection(file, name) if layout.by_tap else file
        for tap, columns in session.columns(name).items():
            records.write_table(group, link_name(tap) if layout.by_tap else name, columns)
    tables = _collection(file, "sensitivity")
    for metric, table in session.sensitivities.items():
        _write_sensitivity(tables, metric, table)
    _write_plan(file, "plan", session.plan)
    plans = _collection(file, "plans")
    for name, plan in session.plans.items():
        _write_plan(plans, link_name(name), plan)
    write_text(file, "locked", sorted(session.locked))
    write_text(file, "notes", session.notes)
    evaluations.write_evaluations(file, session.evaluations)
    if session.error_budget is not None:
        evaluations.write_error_budget(file, session.error_budget)
    if session.audit is not None:
        evaluations.write_audit(file, session.audit)
    results.write_results(file, session.results)
    records.write_table(file, "timings", Columns.of(Timing, session.timings), _TIMING_UNITS)


def _write_sensitivity(parent: h5py.Group, metric: str, table: Sensitivity) -> None:
    group = records.write_record(parent, link_name(metric), table, {"score": table.unit})
    for axis, label in enumerate(("layers", "schemes")):
        group[label].make_scale(label)
        group["score"].dims[axis].label = label
        group["score"].dims[axis].attach_scale(group[label])


def _write_plan(parent: h5py.Group, name: str, plan: Plan) -> None:
    group = records.write_record(parent, name, plan, without=("rules",))
    patterns = Coded.of([rule.pattern for rule in plan.rules])
    assignments = [rule.assignment for rule in plan.rules]
    records.write_table(group, "rules", Columns.of(Assignment, assignments, {"pattern": patterns}))


def _collection(parent: h5py.Group, name: str) -> h5py.Group:
    group = parent.create_group(name, track_order=True)
    describe(group, "collection")
    return group


def _check_version(file: Group) -> None:
    if file.attrs.get("type") != TYPE:
        raise SessionError("it is an HDF5 file, but not a session of the workbench")
    stored = file.attrs.get("version", 0)
    version = int(stored) if isinstance(stored, np.integer) else 0
    if version > SCHEMA_VERSION:
        raise SessionError(
            f"it has version {version}, this workbench reads version {SCHEMA_VERSION} and older; update the workbench"
        )


def _first_line(error: BaseException) -> str:
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return (text.splitlines() or [type(error).__name__])[0][:200]
