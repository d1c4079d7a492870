"""What each command takes: one function a command, over a few shared pieces."""

from __future__ import annotations

import argparse

from workbench.console import search_options
from workbench.console.terminal import parse_size
from workbench.sensitivity.metrics import SCORED, WEIGHT_METRICS


def model(entry: argparse.ArgumentParser, required: bool = True) -> None:
    entry.add_argument(
        "model", metavar="MODEL", nargs=None if required else "?",
        help="a Hugging Face folder, a torch.export .pt2 file, a .safetensors file or folder, or a Python file",
    )  # fmt: skip
    entry.add_argument("--factory", metavar="NAME", help="the function of a Python file that builds it (default build)")
    entry.add_argument("--weights", metavar="FILE", help="the state dict for a Python file (.safetensors, .pt, .pth)")
    _trust(entry)


def _trust(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("--trust", action="store_true", help="allow the Python file to run (only your own files)")


def session(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", metavar="S.qwb", help="a session file")
    _trust(entry)


def _sampling(entry: argparse.ArgumentParser, data: str = "", *, seeded: bool = True) -> None:
    if data:
        entry.add_argument("--data", metavar="DATA", help=data)
    entry.add_argument("--samples", type=_positive, metavar="N", help="how many samples (default: all)")
    entry.add_argument("--batch-size", type=_positive, default=8, metavar="N", help="samples in a batch (default 8)")
    if seeded:
        entry.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every random choice (default 0)")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _bits(text: str) -> float:
    try:
        bits = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bits") from None
    if not 0 < bits <= 64:
        raise argparse.ArgumentTypeError(f"{text} is no number of bits between 0 and 64")
    return bits


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _batches(text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(_positive(part) for part in text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of batch sizes; expected for example 1,4,16") from None


def _shape(text: str) -> tuple[int, int]:
    rows, _, columns = text.lower().partition("x")
    try:
        return _positive(rows), _positive(columns)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; expected for example 4096x4096") from None


def plan(entry: argparse.ArgumentParser) -> None:
    session(entry)
    entry.add_argument("--bits-per-weight", type=_bits, metavar="B", help="mean bits of the quantizable weights")
    entry.add_argument("--size", type=_size, metavar="SIZE", help="bytes of all tensors, such as 120MB or 1.5GiB")
    entry.add_argument("--uniform", metavar="SCHEME", help="one scheme everywhere, such as int4-g32-asym")
    entry.add_argument(
        "--metric", choices=WEIGHT_METRICS,
        help="what to minimise (default: the best table in the session); refined: the predicted losses corrected by "
        "the measured ones",
    )  # fmt: skip
    entry.add_argument("--schemes", type=_names, metavar="A,B,...", help="allow only these schemes")
    entry.add_argument(
        "--transforms", type=_names, metavar="A,B,...",
        help="rewrite the model first: fold-norms, equalize, awq, smoothquant, rotation-heads, rotation; or correct it "
        "after rounding: bias-correction, norm-reestimation (default: as the session's plan)",
    )  # fmt: skip
    search_options.add_search_options(entry)
    entry.add_argument("--out", metavar="PLAN.json", help="write the plan here")


def sensitivity(entry: argparse.ArgumentParser) -> None:
    session(entry)
    entry.add_argument(
        "--metric", choices=SCORED, default="predicted_kl",
        help="default predicted_kl; ..._inputs and ..._cache score activation schemes: of each layer's input, or of "
        "the keys or values that it gives the cache",
    )  # fmt: skip
    entry.add_argument(
        "--schemes", type=_names, metavar="A,B,...",
        help="score these schemes (default: a dozen; of activations int8-, int6-, int4- and fp8-e4m3-token)",
    )  # fmt: skip
    entry.add_argument("--algorithm", default="rtn-clip", metavar="NAME", help="how to round (default rtn-clip)")
    _sampling(entry)
    entry.add_argument("--out", metavar="S2.qwb", help="write the result here instead of back into S.qwb")


def report(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", metavar="S.qwb", help="a session file")
    entry.add_argument("out", metavar="OUT.html", help="write the page here, figures and tables inside")


def calibrate(entry: argparse.ArgumentParser) -> None:
    model(entry)
    _sampling(entry, "a text file, an image folder, an array file or a bundled set (demo:language-model)")
    entry.add_argument("--out", metavar="S.qwb", required=True, help="write the session here")


def evaluate(entry: argparse.ArgumentParser) -> None:
    session(entry)
    _plan(entry)
    _sampling(entry, "evaluation data (default: the set that belongs to the calibration data, disjoint from it)")
    entry.add_argument(
        "--metric-file", metavar="FILE.py[:NAME]",
        help="a metric of your own: NAME(outputs, batch) (default metric) returns one number for each sample; needs "
        "--trust",
    )  # fmt: skip
    entry.add_argument("--worst", type=_positive, default=10, metavar="N", help="list so many changed tokens (10)")
    entry.add_argument("--no-save", action="store_true", help="do not add the evaluation to the session")


def audit(entry: argparse.ArgumentParser) -> None:
    session(entry)
    _plan(entry)
    _sampling(entry, "evaluation data (default: as for evaluate)", seeded=False)
    _most(entry, "layers")
    entry.add_argument("--no-save", action="store_true", help="do not keep the audit in the session")


def quality(entry: argparse.ArgumentParser) -> None:
    session(entry)
    _sampling(entry, seeded=False)
    _most(entry, "tensors")


def outliers(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", metavar="S.qwb", help="a session file")
    entry.add_argument("--layer", default="*", metavar="PATTERN", help="only layers that match, such as '*.mlp.*'")
    entry.add_argument("--tokens", type=_positive, default=1, metavar="N", help="so many tokens of each tensor (1)")
    _most(entry, "tensors")


def refine(entry: argparse.ArgumentParser) -> None:
    session(entry)
    entry.add_argument(
        "--bits-per-weight", type=_bits, required=True, metavar="B", help="the size whose decisions are looked at"
    )
    entry.add_argument(
        "--tolerance", type=float, default=0.3, metavar="T",
        help="relative error of a prediction that could turn a decision (default 0.3)",
    )  # fmt: skip
    _sampling(entry, seeded=False)
    entry.add_argument("--out", metavar="S2.qwb", help="write the result here instead of back into S.qwb")


def error_budget(entry: argparse.ArgumentParser) -> None:
    session(entry)
    _plan(entry)
    entry.add_argument("--samples", type=_positive, default=8, metavar="N", help="calibration samples (default 8)")
    entry.add_argument("--batch-size", type=_positive, default=8, metavar="N", help="samples in a batch (default 8)")
    entry.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the noise (default 0)")
    entry.add_argument("--no-save", action="store_true", help="do not keep the budget in the session")
    _most(entry, "layers")


def explain(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", metavar="S.qwb", help="a session file")
    _plan(entry)
    entry.add_argument("--layer", default="*", metavar="PATTERN", help="only layers that match, such as '*.mlp.*'")
    _space(entry)


def front(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", metavar="S.qwb", help="a session file")
    entry.add_argument("--points", type=_positive, default=20, metavar="N", help="list at most so many plans (20)")
    _space(entry)


def _space(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("--metric", choices=WEIGHT_METRICS, help="whose losses (default: the best there are)")
    entry.add_argument("--schemes", type=_names, metavar="A,B,...", help="among these schemes only")
    entry.add_argument("--target", metavar="NAME", help="only what this runs: vllm, gguf, nvidia-9.0")


def ranges(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", metavar="S.qwb", help="a session file")
    entry.add_argument("--layer", default="*", metavar="PATTERN", help="only layers that match, such as '*.mlp.*'")
    entry.add_argument("--tap", choices=("input", "output", "weight"), default="input", help="of what (default input)")
    entry.add_argument(
        "--low", type=float, metavar="X", help="with --high: set the input range of the layer named by --layer by hand"
    )
    entry.add_argument("--high", type=float, metavar="Y", help="with --low")


def compare(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", metavar="A.qwb", help="a session file")
    entry.add_argument("other", metavar="B.qwb", help="another session file")
    entry.add_argument("--all", action="store_true", help="list layers that do not differ as well")


def _plan(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("--plan", metavar="PLAN.json", help="the plan (default: the session's current plan)")


def _most(entry: argparse.ArgumentParser, what: str) -> None:
    entry.add_argument("--most", type=_positive, default=10, metavar="N", help=f"list so many {what} (default 10)")


def apply(entry: argparse.ArgumentParser) -> None:
    model(entry)
    entry.add_argument("--plan", metavar="PLAN.json", required=True, help="the plan")
    entry.add_argument("--session", metavar="S.qwb", help="where calibrated ranges come from, if the plan needs them")
    _target(entry)


def export(entry: argparse.ArgumentParser) -> None:
    session(entry)
    entry.add_argument("--plan", metavar="PLAN.json", help="the plan (default: the session's current plan)")
    _target(entry)


def train(entry: argparse.ArgumentParser) -> None:
    session(entry)
    entry.add_argument("--plan", metavar="PLAN.json", help="the plan (default: the session's current plan)")
    entry.add_argument("--data", metavar="DATA", help="what to train on (default: the calibration data)")
    entry.add_argument("--steps", type=_positive, default=1000, metavar="N", help="batches to train on (default 1000)")
    entry.add_argument("--learning-rate", type=float, default=0.01, metavar="R", help="in steps of the grid (0.01)")
    entry.add_argument(
        "--loss", choices=("kl", "task"), default="kl", help="kl to the original model (default), or task"
    )
    entry.add_argument("--samples", type=_positive, metavar="N", help="how many samples (default: all)")
    entry.add_argument(
        "--batch-size", type=_positive, metavar="N", help="samples in a batch (default 4 texts, 64 images)"
    )
    entry.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every random choice (default 0)")
    entry.add_argument("--checkpoint", metavar="FILE", help="save the run here, and go on from it")
    _target(entry)


def _target(entry: argparse.ArgumentParser) -> None:
    from workbench.deployment.exporters import EXPORTERS

    kinds = "; ".join(f"{target.name}: {target.description}" for target in EXPORTERS)
    entry.add_argument("--to", metavar="KIND", required=True, help=kinds)
    entry.add_argument("--out", metavar="PATH", required=True, help="the file or folder to write")


def bench(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("session", nargs="?", metavar="S.qwb", help="time the layers of this session's plan")
    entry.add_argument("--shape", type=_shape, default=(4096, 4096), metavar="OxI", help="outputs x inputs")
    entry.add_argument("--schemes", type=_names, default=("int8-channel", "int4-g32-asym"), metavar="A,B,...")
    entry.add_argument(
        "--batch", type=_batches, default=(1,), metavar="N[,N...]",
        help="rows of the input (default 1); several, such as 1,4,16,128, are swept",
    )  # fmt: skip
    entry.add_argument("--repeats", type=_positive, default=30, metavar="N", help="timed repeats (default 30)")
    entry.add_argument("--target", metavar="NAME", help="add what the data sheet of nvidia-9.0, say, lets expect")
    entry.add_argument("--no-save", action="store_true", help="do not keep the timings in the session")
    entry.add_argument("--ncu", action="store_true", help="print the commands that profile the timed CUDA kernels")


def demo(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("--headless", action="store_true", help="run the whole job without a display")
    entry.add_argument("--out", metavar="DIR", default="demo-output", help="where --headless writes (demo-output)")


def gui(entry: argparse.ArgumentParser) -> None:
    entry.add_argument("path", nargs="?", metavar="MODEL|S.qwb", help="a model or a session to open")
    entry.add_argument("--factory", metavar="NAME", help="the function of a Python file that builds it")
    entry.add_argument("--weights", metavar="FILE", help="the state dict for a Python file")
    _trust(entry)
