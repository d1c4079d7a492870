"""The first session of a model, and what it shows before the network is loaded: the weights, as the files hold them.

Loading a network's code takes seconds, reading some megabytes of weights does not.  The first look is a session like
that of a weights-only model; layers that only the network tells (tied ones, kinds, arithmetic) are not in it yet.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.models.model import Model
from workbench.models.placement import ran_on
from workbench.models.summary import ModelSource, ModelSummary
from workbench.numerics.ranges import Range
from workbench.planning.plan import KEEP, Plan
from workbench.progress import Progress, silent
from workbench.session.session import Environment, Session

STILL_LOADING = "The network is still being loaded; its layers are shown already"
"""Why a first look's model cannot be run (yet)."""


def start(model: Model, progress: Progress = silent) -> Session:
    """Return a new session: the model's facts, the weights' statistics, a plan that keeps all as it is stored."""
    from workbench.measurement.calibrate import weight_statistics

    summary = model.summary
    plan = Plan(model=summary.name, fingerprint=summary.fingerprint)
    single = {tensor.name for tensor in summary.others if math.prod(tensor.shape) == 1}
    broken = [  # a mask is filled with a number that is infinite
        name for name in summary.non_finite if name not in single or model.other(name).isnan().any()
    ]  # fmt: skip
    return Session(
        model=summary, environment=Environment.here(ran_on(model)), plan=as_stored(model, plan),
        statistics=weight_statistics(model, progress), active_ranges=_ranges(model),
        notes=(
            *(f"the weights of {name} hold NaN or infinite values" for name in broken),
            *_unread(summary), *model.notes, *filter(None, [summary.without_layers]),
        ),
    )  # fmt: skip


def _ranges(model: Model) -> dict[tuple[str, str], Range]:
    """Return the ranges of static inputs that the model's file states, as if they were set by hand."""
    stated = {layer.name: model.encoded_range(layer.name) for layer in model.summary.stored}
    return {
        (name, "input"): Range(low=pair[0], high=pair[1], method="manual", clipped=0.0)
        for name, pair in stated.items() if pair is not None
    }  # fmt: skip


def _unread(summary: ModelSummary) -> tuple[str, ...]:
    """State that the weights of a Python file may be random; empty where they were read from a file."""
    source = summary.source
    if source.kind != "python_module" or source.weights is not None or source.path.startswith("demo:"):
        return ()
    from workbench.models.sources.python_module import NETWORK_FILE, weights_beside

    file = Path(source.path) / NETWORK_FILE if Path(source.path).is_dir() else Path(source.path)
    if weights_beside(file) is not None:
        return ()
    return (
        f"the weights are those that {source.factory or 'build'}() in {file.name} makes: they are random unless it "
        "loads them itself; give a file of weights (--weights)",
    )


def as_stored(model: Model, plan: Plan) -> Plan:
    """Return ``plan`` with every layer that the model's file holds quantized in the scheme that it has there.

    A layer whose weights are in no scheme has that of its inputs.
    """
    names: dict[tuple[str, str | None], list[str]] = {}
    for layer in model.summary.stored:
        stored, inputs = model.encoded(layer.name), model.encoded_inputs(layer.name)
        if stored is not None or inputs is not None:
            names.setdefault((KEEP if stored is None else stored.scheme, inputs), []).append(layer.name)
    for (scheme, inputs), layers in names.items():
        plan = plan.assign(layers, weights=scheme, inputs=inputs, algorithm="rtn")
    cached = {layer.name: model.encoded_cache(layer.name) for layer in model.summary.layers}
    for cache in {each for each in cached.values() if each is not None}:
        plan = plan.assign([name for name, each in cached.items() if each == cache], cache=cache)
    return plan


def first_look(path: str) -> Session | None:
    """Return a session of the weights at ``path``; None where there is nothing to gain, or where opening will object.

    Only what is loaded through ``transformers`` and large files take long enough.  The latter have no fingerprint and
    no statistics yet.
    """
    from workbench.models.contents import are_large
    from workbench.models.sources.catalog import detect, resolve
    from workbench.models.sources.huggingface import read_config
    from workbench.models.sources.safetensors_file import weight_files
    from workbench.models.sources.source import display_name
    from workbench.models.sources.stored import in_blocks, tensors_in_files
    from workbench.models.sources.weights_only import weights_only_model

    try:
        place, bundled = resolve(path)
        kind = detect(place).name
        if kind not in ("huggingface", "safetensors"):
            return None
        folder = place.parent if kind == "huggingface" and place.is_file() else place
        if kind == "huggingface" and read_config(folder).get("auto_map"):
            return None
        files = weight_files(folder)
        large = are_large(files)  # and not read twice: what the headers say is shown of them
        if not files or (kind == "safetensors" and not large):
            return None
        source = ModelSource(kind=kind, path=path if bundled or place.is_file() else str(place))
        model = weights_only_model(source, in_blocks(tensors_in_files(files)), read=not large)
        empty = Session(model=model.summary, environment=Environment.here(), plan=Plan(model=model.summary.name))
        look = empty if large else start(model)
    except (WorkbenchError, OSError):
        return None
    name = display_name(Path(path.removeprefix("demo:")))
    return replace(look, model=replace(model.summary, name=name, cannot_run=STILL_LOADING))


def is_first_look(session: Session | None) -> bool:
    """Return whether a session is only what is shown while its model is being opened."""
    return session is not None and session.model.cannot_run == STILL_LOADING
