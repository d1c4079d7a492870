"""Weight quantization beside every other tool: our plans and theirs, the same model, the same windows, one run.

    python tests/benchmarks/quality.py [--cases llama-260k demo] [--peers none|all|torchao hqq ...] [--cache FOLDER]

For each model two tables in nats per token.  The first has our sizes: the predicted KL, what rounding alone measures,
what the best of our algorithms measures, each with what it must reach.  The second has every row of the peers, which
run in an environment of their own that is built in the cache folder, beside ours at the same size or smaller: a row
that is lost says so after ours was measured at its very size too, and so does a peer that cannot be installed or run,
with the reason.  Bits per weight count scales and zero points.  Results are kept in the cache, so a killed run goes on
where it was; ``--fresh`` measures again.  The last line is all of it as JSON; exit code 1 if a limit was missed or a
row lost.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import platformdirs
import torch
from quality_cache import Cache
from quality_cases import Case, open_case
from quality_environment import Environment, PeerError, Subject, run_row
from quality_ours import LEARNED, ROUNDING, Ours
from quality_rows import MORE_SIZES, RATIO, ROWS, SIZES, TOOLS, Row

SLACK = 0.01
"""Two plans are of one size if they differ by no more bits per weight than this."""

Figures = dict[str, Any]


def ours_of(case: Case, cache: Cache, sizes: list[float], learning: bool) -> list[Figures]:
    """Measure our sizes; print them as they come.  Without ``learning`` the best of our algorithms is rounding."""
    ours, limits, result = Ours(case=case, cache=cache), {size.bits: size for size in SIZES}, []
    print(f"\n{case.name}: {len(case.layers)} layers, {len(case.evaluation)} windows, KL in nats per token\n")
    print(f"{'bits':>6}{'predicted':>11}{'rounding':>10}{'limit':>9}{'ratio':>7}{'best':>10}{'goal':>9}  perplexity")
    for size in sizes:
        rounded = ours.row(size, ROUNDING)
        best = ours.row(size, LEARNED) if learning else rounded
        limit = limits.get(size) if case.name == "llama-260k" else None
        ratio = rounded["predicted"] / rounded["kl"]
        missed = [] if limit is None else [
            what for what, kl, most in (
                ("rounding", rounded["kl"], limit.rounding), ("best", best["kl"], limit.best if learning else math.inf)
            ) if kl >= most
        ]  # fmt: skip
        asked = ("", "") if limit is None else (f"{limit.rounding:.4f}", f"{limit.best:.4f}")
        print(f"{rounded['bits']:6.3f}{rounded['predicted']:11.5f}{rounded['kl']:10.5f}{asked[0]:>9}{ratio:7.2f}"
              f"{best['kl']:10.5f}{asked[1]:>9}  {best['perplexity']:.3f} (floating point {best['baseline']:.3f})"
              f"{'  MISSED: ' + ', '.join(missed) if missed else ''}", flush=True)  # fmt: skip
        result.append({"size": size, "rounding": rounded, "best": best, "ratio": ratio, "missed": missed})
    return result


def ratios(rows: list[Figures]) -> Figures:
    """Return how many of the rounded plans between 3.5 and 6 bits were predicted within RATIO."""
    judged = [row["ratio"] for row in rows if 3.5 <= row["size"] <= 6.0]
    within = sum(RATIO[0] <= ratio <= RATIO[1] for ratio in judged)
    return {"within": within, "of": len(judged), "met": within >= 0.9 * len(judged)}


def peers_of(case: Case, cache: Cache, environment: Environment, tools: list[str], options: Any) -> list[Figures]:
    """Run the peers' rows; what fails has its reason under ``error``."""
    calibration, evaluation = case.windows(cache.folder / "windows")
    subject = Subject(model=case.folder, calibration=calibration, evaluation=evaluation)
    result = []
    for row in ROWS:
        if row.tool not in tools:
            if not row.tool and case.name == "llama-260k":
                result.append(_printed(row, {}))
            continue
        key = (case.name, "peer", row.key, case.evaluation.record.content_hash, environment.torch)
        measured = cache.get(*key)
        if measured is None:
            print(f"  running {row.key} ...", file=sys.stderr, flush=True)
            try:
                measured = cache.put(run_row(environment, row, subject, options.threads, options.limit), *key)
            except PeerError as error:
                measured = {"error": str(error)}
        result.append(_printed(row, measured))
    return result


def _printed(row: Row, measured: Figures) -> Figures:
    return {"what": row.what, "key": row.key, "nominal": row.bits, "known": row.known, "rounds": row.rounds, **measured}


def compare(case: Case, ours: list[Figures], peers: list[Figures]) -> None:
    """Print the peers' rows beside ours of the same size or smaller; mark in each whether it was ``lost``."""
    print(f"\n{case.name}: every peer beside our plan of the same size or the next smaller\n")
    print(f"{'bits':>6}  {'peer':<52}{'KL':>10}{'earlier':>9}{'ours':>10}{'at':>7}  rounding only")
    for row in peers:
        bits: float = row["bits"] if "bits" in row else row["nominal"]
        row["known"] = row["known"] if case.name == "llama-260k" else None
        kl = row.get("kl", row["known"] if "error" not in row else None)
        smaller = [mine for mine in ours if mine["best"]["bits"] <= bits + SLACK]
        mine = smaller[-1] if smaller else None
        lost = [] if mine is None or kl is None else [
            part for part in ("rounding", "best")
            if (part == "best" or row["rounds"]) and mine[part]["kl"] >= kl
        ]  # fmt: skip
        row |= {"ours": mine and mine["best"]["kl"], "lost": lost}
        print(f"{bits:6.3f}  {row['what']:<52}{_kl(row.get('kl')):>10}{_kl(row['known']):>9}"
              + (f"{_kl(mine['best']['kl']):>10}{mine['best']['bits']:7.3f}  {_kl(mine['rounding']['kl'])}" if mine
                 else "   no plan of ours is as small")
              + (f"  LOST: {', '.join(lost)}" if lost else "")
              + (f"  NOT RUN: {row['error']}" if "error" in row else ""))  # fmt: skip


def _sizes_of_lost(peers: list[Figures], known: list[float]) -> list[float]:
    """Return the sizes of the lost rows, in hundredths of a bit, that we have not measured."""
    lost = {math.floor(row["bits"] * 100) / 100 for row in peers if row["lost"] and "bits" in row}
    return sorted(lost - set(known))


def _kl(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"


def report(case: Case, cache: Cache, environment: Environment, tools: list[str], options: Any) -> Figures:
    """Measure one model and print both tables."""
    expected = {size.bits for size in SIZES} if options.sizes is None else set(options.sizes)
    more = set(MORE_SIZES) if tools and options.sizes is None else set()
    ours = ours_of(case, cache, sorted(expected | more), not options.no_learning)
    peers = peers_of(case, cache, environment, tools, options) if tools else []
    if peers:
        compare(case, ours, peers)
    sizes = _sizes_of_lost(peers, [row["size"] for row in ours])
    if sizes:
        print(f"\n{case.name}: rows are lost where our next smaller plan is much smaller; ours at those very sizes")
        ours = sorted([*ours, *ours_of(case, cache, sizes, not options.no_learning)], key=lambda row: row["size"])
        compare(case, ours, peers)
    predicted = ratios(ours)
    missed = [f"{row['size']:.2f} bits: {part}" for row in ours for part in row["missed"]]
    lost = [f"{row['key']}: {part}" for row in peers for part in row["lost"]]
    failed = [f"{row['key']}: {row['error']}" for row in peers if "error" in row]
    print(f"\n{case.name}: predicted / measured within {RATIO[0]} to {RATIO[1]} for {predicted['within']} of "
          f"{predicted['of']} rounded plans between 3.5 and 6 bits; limits missed: {'; '.join(missed) or 'none'}; "
          f"rows lost: {'; '.join(lost) or 'none'}; peers not run: {'; '.join(failed) or 'none'}")  # fmt: skip
    return {
        "case": case.name, "learning": not options.no_learning, "ours": ours, "peers": peers,
        "ratios": predicted, "missed": missed, "lost": lost, "failed": failed,
        "met": predicted["met"] and not missed and not lost,
    }  # fmt: skip


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["llama-260k", "demo"], choices=("llama-260k", "demo"))
    parser.add_argument("--peers", nargs="+", default=["all"], metavar="TOOL",
                        help=f"none, all, or some of {', '.join(TOOLS)} (default: all)")  # fmt: skip
    parser.add_argument("--sizes", nargs="+", type=float, help="bits per weight (default: the eight with limits)")
    parser.add_argument("--no-learning", action="store_true", help="rounding only: minutes instead of an hour")
    parser.add_argument("--cache", type=Path, default=Path(platformdirs.user_cache_dir("workbench-quality")))
    parser.add_argument("--environment", type=Path, help="the peers' environment (default: in the cache)")
    parser.add_argument("--torch", default="torch==2.13.0", help="what pip is asked for there (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=3600, help="seconds that a peer's row may take")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--fresh", action="store_true", help="measure again what the cache has")
    options = parser.parse_args()
    unknown = [name for name in options.peers if name not in (*TOOLS, "none", "all")]
    if unknown:
        parser.error(f"there is no peer {unknown[0]!r}; the peers are none, all, {', '.join(TOOLS)}")
    return options


def main() -> None:
    """Measure, print, tell by the exit code."""
    options = arguments()
    torch.set_num_threads(options.threads)
    tools = list(TOOLS) if "all" in options.peers else [name for name in options.peers if name != "none"]
    cache = Cache(folder=options.cache.resolve(), fresh=options.fresh)
    home = (options.environment or cache.folder / "environment").resolve()
    environment = Environment(folder=home, torch=options.torch)
    result = [report(open_case(name), cache, environment, tools, options) for name in options.cases]
    versions = environment.versions() if tools else {}
    print(json.dumps({"benchmark": "quality", "cases": result, "peers": versions}))
    raise SystemExit(not all(case["met"] for case in result))


if __name__ == "__main__":
    main()
