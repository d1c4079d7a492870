"""What real sizes cost: memory, passes, seconds and bytes beside the limits; a table and one line of JSON.

    python tests/benchmarks/size.py MODEL [ROW ...] [--encoder DIR] [--windows N] [--tokens N] [--work FOLDER]

MODEL is a language model's folder, such as SmolLM2-135M's.  Every row runs in a process of its own.  A pass is one bare
forward pass over the same batches in that process, in CPU seconds, so that other programs on the machine do not count;
memory is the peak of resident memory (``now`` beside ``limit``), that of a table or of GPTQ without the bare pass; a
ratio is to the process of the bare pass.  The text
is Python's own documentation.  Rows that need another row's session run after it, from the same work folder.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from pydoc_data import topics
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
MB, GB = 1e6, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a row runs on."""

    model: str
    encoder: str
    windows: int
    tokens: int
    work: Path

    @property
    def text(self) -> Path:
        """The file of running text, made where it is missing."""
        path = self.work / "text.txt"
        if not path.exists():
            path.write_text("\n\n".join(topics.topics.values()), encoding="utf-8")
        return path

    @property
    def passages(self) -> Path:
        """The same text in lines that fill a window of an encoder."""
        path = self.work / "passages.txt"
        if not path.exists():
            words = self.text.read_text(encoding="utf-8").split()
            lines = (" ".join(words[start : start + self.tokens]) for start in range(0, len(words), self.tokens))
            path.write_text("\n".join(lines), encoding="utf-8")
        return path

    @property
    def session(self) -> Path:
        """The language model's calibrated and scored session."""
        return self.work / "size.qwb"

    @property
    def encoder_session(self) -> Path:
        """The encoder's calibrated session."""
        return self.work / "encoder.qwb"


Figures = dict[str, float]
"""What a row measured, by name."""


def peak() -> float:
    """Return the most bytes that were resident in this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def clear_peak() -> None:
    """Count peaks from here on: a bare pass, which has the logits of eight samples at once, takes more than a table."""
    from workbench.memory import give_back

    give_back()  # what the bare pass left
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


class Clock:
    """CPU (of processes that have ended too) and wall seconds since the last call of ``lap``, or since it was made."""

    def __init__(self) -> None:
        self.lap()

    def lap(self) -> tuple[float, float]:
        """Return CPU and wall seconds and start again from zero."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        now = time.process_time() + children.ru_utime + children.ru_stime, time.perf_counter()
        elapsed = tuple(a - b for a, b in zip(now, getattr(self, "_from", now), strict=True))
        self._from = now
        return elapsed[0], elapsed[1]


def bare_pass(model: Any, data: Any, batch_size: int = 8) -> float:
    """Return the CPU seconds of one forward pass over the data."""
    import torch

    clock = Clock()
    with torch.no_grad():
        for batch in data.batches(batch_size):
            model.run(batch)
    return clock.lap()[0]


def opened(case: Case, encoder: bool = False) -> tuple[Any, Any]:
    """Return a model and its data."""
    import workbench as wb
    from workbench.models.data.reading import Reading
    from workbench.steps import session_data

    model = wb.open(case.encoder if encoder else case.model)
    text = case.passages if encoder else case.text
    data = session_data.for_calibration(model, text, samples=case.windows, seed=0, reading=Reading(window=case.tokens))
    return model, data


def plan_of(session: Any, scheme: str, algorithm: str) -> Any:
    """Return the plan that gives all layers but embeddings and the head one scheme."""
    from workbench.models.layer import LayerKind
    from workbench.planning.plan import Plan

    layers = [layer for layer in session.model.stored if layer.kind is LayerKind.LINEAR and "head" not in layer.name]
    return Plan.uniform(layers, scheme, algorithm=algorithm)


def bare(case: Case) -> Figures:
    model, data = opened(case)
    return {"cpu": bare_pass(model, data), "peak": peak()}


def calibrate(case: Case) -> Figures:
    import workbench as wb

    model, data = opened(case)
    bare = bare_pass(model, data)
    clock = Clock()
    session = wb.calibrate(model, case.text, samples=case.windows, window=case.tokens)
    cpu, wall = clock.lap()
    top = peak()
    session.save(case.session)
    return {"passes": cpu / bare, "wall": wall, "peak": top, "file": float(case.session.stat().st_size)}


def statistics(case: Case) -> Figures:
    from workbench.measurement.calibrate import calibrate as observe

    model, data = opened(case)
    bare = bare_pass(model, data)
    clock = Clock()
    observe(model, data, curvature=False)
    return {"passes": clock.lap()[0] / bare, "peak": peak()}


def table(case: Case) -> Figures:
    import workbench as wb

    model, data = opened(case)
    bare = bare_pass(model, data)
    session = replace(wb.Session.load(case.session), sensitivities={})  # finished cells would be kept
    clear_peak()
    clock = Clock()
    session = wb.score(session, model=model)
    cpu, wall = clock.lap()
    session.save(case.session)
    return {"passes": cpu / bare, "wall": wall, "peak": peak(), "file": float(case.session.stat().st_size)}


def plan(case: Case) -> Figures:
    clock = Clock()
    import workbench as wb

    session = wb.Session.load(case.session)
    loaded = clock.lap()
    wb.search(session, bits_per_weight=4.5)
    planned = clock.lap()
    return {"open_s": loaded[1], "plan_s": planned[1], "cpu": loaded[0] + planned[0], "peak": peak()}


def evaluate(case: Case) -> Figures:
    import workbench as wb

    for outputs in Path(os.environ["WORKBENCH_CACHE_FOLDER"]).glob("outputs/*/000000.safetensors"):
        shutil.rmtree(outputs.parent)  # an earlier evaluation's; what the calibration noted stays
    model, _ = opened(case)
    session = wb.Session.load(case.session)
    data: dict[str, Any] = {"data": case.text, "samples": case.windows, "window": case.tokens}
    from workbench.models.data.reading import Reading
    from workbench.steps import session_data

    held = session_data.for_evaluation(
        model, session, case.text, samples=case.windows, seed=0, reading=Reading(window=case.tokens)
    )
    bare = bare_pass(model, held)
    figures = {}
    for name, scheme in (("first", "int4-g32-asym"), ("second", "int8-g32"), ("third", "int4-g64-asym")):
        clock = Clock()
        quantized = wb.quantize(model, plan_of(session, scheme, "rtn"), session=session)
        rounding = clock.lap()[0]
        wb.evaluate(session, plan_of(session, scheme, "rtn"), model=model, **data)
        figures[name] = (clock.lap()[0] - rounding) / bare
        del quantized
    return {**figures, "peak": peak()}


def gptq(case: Case) -> Figures:
    import workbench as wb

    model, data = opened(case)
    bare = bare_pass(model, data)
    session = wb.Session.load(case.session)
    clear_peak()
    clock = Clock()
    wb.quantize(model, plan_of(session, "int4-g128-asym", "gptq"), session=session)
    cpu, wall = clock.lap()
    return {"passes": cpu / bare, "wall": wall, "peak": peak()}


def encoder_calibrate(case: Case) -> Figures:
    import workbench as wb

    case = replace(case, windows=80 if case.windows == 32 else case.windows)
    model, data = opened(case, encoder=True)
    bare = bare_pass(model, data)
    clock = Clock()
    session = wb.calibrate(model, case.passages, samples=case.windows, window=case.tokens)
    cpu, wall = clock.lap()
    session.save(case.encoder_session)
    return {"passes": cpu / bare, "wall": wall, "peak": peak()}


def encoder(case: Case) -> Figures:
    import workbench as wb

    case = replace(case, windows=80 if case.windows == 32 else case.windows)
    model, data = opened(case, encoder=True)
    bare = bare_pass(model, data)
    session = replace(wb.Session.load(case.encoder_session), sensitivities={})
    clear_peak()
    clock = Clock()
    wb.score(session, model=model)
    cpu, wall = clock.lap()
    return {"passes": cpu / bare, "wall": wall, "peak": peak()}


def layers(case: Case) -> Figures:
    """Search, save and open 60,000 layers under 24 schemes; how time grows from a third of them."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.benchmarks.planner import model_of, table_of
    from workbench.planning.plan import Plan
    from workbench.planning.search.search import pareto
    from workbench.session.session import Environment, Session

    nowhere = Environment(workbench="", python="", numpy="", torch="", device="", threads=1)
    figures: Figures = {}
    for count in (20_000, 60_000):
        summary = model_of(count)
        losses = table_of(summary)
        session = Session(model=summary, environment=nowhere, plan=Plan(), sensitivities={"predicted_kl": losses})
        path, clock = case.work / f"{count}.qwb", Clock()
        for name, step in (
            ("front", lambda summary=summary, losses=losses: pareto(summary, losses, Plan())),
            ("save", lambda session=session, path=path: session.save(path)),
            ("open", lambda path=path: Session.load(path)),
        ):
            clock.lap()
            step()
            cpu, wall = clock.lap()
            figures |= {f"{name}_{count}": cpu, f"{name}_wall_{count}": wall}
    for name in ("front", "save", "open"):
        figures[name] = figures[f"{name}_60000"]
        figures[f"growth_{name}"] = math.log(figures[name] / figures[f"{name}_20000"]) / math.log(3)
    return {**figures, "peak": peak()}


ROWS: dict[str, Callable[[Case], Figures]] = {
    row.__name__: row
    for row in (bare, statistics, calibrate, table, plan, evaluate, gptq, encoder_calibrate, encoder, layers)
}

LIMITS: dict[tuple[str, str], tuple[str, float, str]] = {
    ("statistics", "passes"): ("statistics alone, bare passes", 1.5, ""),
    ("calibrate", "passes"): ("calibrate with curvature, bare passes", 3.5, ""),
    ("calibrate", "ratio"): ("calibrate, memory over the bare pass", 1.3, ""),
    ("table", "passes"): ("predicted table of 18 schemes, bare passes", 3.0, ""),
    ("table", "peak"): ("predicted table, memory", 1.5 * GB, "GB"),
    ("table", "file"): ("session file", 30 * MB, "MB"),
    ("plan", "wall"): ("session opened and planned, seconds", 1.5, ""),
    ("plan", "peak"): ("session opened and planned, memory", 400 * MB, "MB"),
    ("evaluate", "first"): ("evaluate a first plan, bare passes", 2.2, ""),
    ("evaluate", "second"): ("evaluate a second plan, bare passes", 1.1, ""),
    ("gptq", "passes"): ("GPTQ int4 of all layers, bare passes", 6.0, ""),
    ("gptq", "peak"): ("GPTQ, memory", 2.5 * GB, "GB"),
    ("layers", "front"): ("60,000 layers x 24 schemes: front, CPU seconds", 2.0, ""),
    ("layers", "save"): ("60,000 layers: session saved, CPU seconds", 5.0, ""),
    ("layers", "open"): ("60,000 layers: session opened, CPU seconds", 1.0, ""),
    ("layers", "growth_front"): ("growth of the front with layers, exponent", 1.1, ""),
    ("layers", "growth_save"): ("growth of saving with layers, exponent", 1.1, ""),
    ("layers", "growth_open"): ("growth of opening with layers, exponent", 1.1, ""),
    ("encoder", "passes"): ("encoder's predicted table, bare passes", 10.0, ""),
    ("encoder", "peak"): ("encoder's predicted table, memory", 1.0 * GB, "GB"),
}
"""For each figure: what it is, the most that it may be, the unit in which it is printed."""


def shown(value: float, unit: str) -> str:
    """Return a figure in its unit."""
    return f"{value / {'GB': GB, 'MB': MB}.get(unit, 1.0):.3g}{' ' * bool(unit)}{unit}"


def child(row: str, case: Case) -> Figures:
    """Return what a row measures in a process of its own; empty, and why on stderr, where it fails."""
    arguments = [case.model, "--child", row, "--windows", str(case.windows), "--tokens", str(case.tokens)]
    arguments += ["--encoder", case.encoder, "--work", str(case.work)]
    ended = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines and not ended.returncode else {}


@contextmanager
def folder(argument: str) -> Iterator[Path]:
    """Yield the work folder, or a temporary one."""
    if argument:
        Path(argument).mkdir(parents=True, exist_ok=True)
        yield Path(argument)
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def main() -> None:
    """Read the command line, run the rows, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"default: all of {', '.join(ROWS)}")
    parser.add_argument("--encoder", default="", help="folder of a sentence encoder")
    parser.add_argument("--windows", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--work", default="")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with folder(options.work) as work:
        os.environ["WORKBENCH_CACHE_FOLDER"] = str(work / "cache")
        case = Case(
            model=options.model, encoder=options.encoder, windows=options.windows, tokens=options.tokens, work=work
        )
        if options.child:
            print(json.dumps(ROWS[options.child](case)))
            return
        results: dict[str, Figures] = {}
        for row in options.rows or [row for row in ROWS if not row.startswith("encoder") or case.encoder]:
            results[row] = figures = child(row, case)
            if "bare" in results and "peak" in figures:
                figures["ratio"] = figures["peak"] / results["bare"]["peak"]
            if "open_s" in figures:
                figures["wall"] = figures["open_s"] + figures["plan_s"]
            print(f"{row:12} " + "  ".join(f"{name} {value:.4g}" for name, value in figures.items()), flush=True)
        print(f"\n{case.windows} windows of {case.tokens} tokens\n{'what':46} {'now':>10} {'limit':>10}")
        lines = []
        for (row, name), (what, limit, unit) in LIMITS.items():
            now = results.get(row, {}).get(name)
            if now is not None:
                print(f"{what:46} {shown(now, unit):>10} {shown(limit, unit):>10}{'' if now <= limit else '  over'}")
                lines.append({"what": what, "now": now, "limit": limit})
        print(json.dumps({"windows": case.windows, "tokens": case.tokens, "rows": lines}))


if __name__ == "__main__":
    main()
