"""Each step of the engine gives the same on the pretend accelerator as on the CPU.

Both run the same kernels in the same dtype, so results differ by the order of sums alone: within 1e-3 of the largest
value in float32, within 5e-2 in bfloat16, whose numbers have 8 bits and whose drawn labels may fall differently.
Algorithms that feed errors back take other ways through ties: their error is compared, within 5e-2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

import workbench as wb
from tests.devices.conftest import NAMED, Case
from workbench.models.layer import LayerKind
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding import ALGORITHMS
from workbench.planning.plan import resolve
from workbench.planning.transform_names import KNOWN
from workbench.quantization.learning.loop import LearnOptions
from workbench.steps.checks.audit import AUDIT, AuditOptions
from workbench.steps.checks.error_budget import ERROR_BUDGET, ErrorBudgetOptions
from workbench.steps.checks.quality import QUALITY, QualityOptions
from workbench.steps.checks.reconstruction import RECONSTRUCTION, ReconstructionOptions
from workbench.steps.checks.refine import REFINE, RefineOptions
from workbench.steps.files.first_session import start
from workbench.steps.layer.before_after import BEFORE_AFTER, BeforeAfterOptions
from workbench.steps.layer.channel_errors import CHANNEL_ERRORS, ChannelErrorsOptions
from workbench.steps.quantize import quantize

pytestmark = pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS:UserWarning")
CPU = "cpu"
SHARE = 2e-3
"""How far shares of clipped values may lie apart on a real device and in bfloat16: a border of a range moves over a few
values, of bfloat16 over all that are equal."""
HALF = 5e-2
"""The tolerance in bfloat16."""
NAMES = ("llama", "half", "convolutional")
LAYER = {"llama": "model.layers.0.mlp.up_proj", "half": "model.layers.0.mlp.up_proj", "convolutional": "3"}


def assert_alike(first: Any, other: Any, tolerance: float, place: str = "") -> None:
    """Compare nested results: numbers within ``tolerance`` of the largest of their array, all else equal."""
    if is_dataclass(first) and not isinstance(first, type):
        for item in fields(first):
            if item.name not in ("environment", "notes", "version", "exponent"):
                assert_alike(getattr(first, item.name), getattr(other, item.name), tolerance, f"{place}.{item.name}")
    elif isinstance(first, Mapping):
        assert set(first) == set(other), place
        for key in first:
            assert_alike(first[key], other[key], tolerance, f"{place}[{key}]")
    elif isinstance(first, np.ndarray | float):
        assert_close(np.asarray(first), np.asarray(other), tolerance, place)
    elif isinstance(first, tuple | list):
        assert len(first) == len(other), place
        for number, (a, b) in enumerate(zip(first, other, strict=True)):
            assert_alike(a, b, tolerance, f"{place}[{number}]")
    else:
        assert first == other, place


def assert_close(first: np.ndarray, other: np.ndarray, tolerance: float, place: str) -> None:
    """Compare numbers; of many, one in fifty may lie elsewhere: codes and bins on whose border a number lay."""
    if first.dtype.kind not in "fiu":
        assert np.array_equal(first, other), place
        return
    a, b = np.asarray(first, np.float64), np.asarray(other, np.float64)
    assert a.shape == b.shape, place
    if a.size and place.endswith(("counts", "costs")):
        a, b = np.cumsum(a), np.cumsum(b)
    size = np.abs(a[np.isfinite(a)]).max(initial=1e-12)
    apart = place.endswith("clipped") and (NAMED or tolerance == HALF)
    least = SHARE if apart else tolerance * size
    alike = np.isclose(b, a, rtol=tolerance, atol=least, equal_nan=True)
    assert (~alike).sum() <= a.size // 50, f"{place}: {a[~alike][:4]} on the CPU, {b[~alike][:4]} on the device"


def tolerance(case: Case) -> float:
    return HALF if case.name == "half" else 1e-3


def planned(case: Case, device: str, most: int | None = None, **assignment: Any) -> wb.Session:
    session = case.calibrated(device)
    names = [layer.name for layer in session.model.layers if layer.kind is not LayerKind.EMBEDDING]
    return replace(session, plan=session.plan.assign(names[:most], **assignment))


def both(
    case: Case, accelerator: str, run: Callable[[wb.Session, wb.Model], Any], within: float = 0.0, **assignment: Any
) -> None:  # fmt: skip
    """Run on both devices and compare."""
    made = [run(planned(case, device, **assignment), case.opened(device)) for device in (CPU, accelerator)]
    assert_alike(*made, within or tolerance(case))


@pytest.fixture(params=NAMES)
def each(request: pytest.FixtureRequest, cases: dict[str, Case]) -> Case:
    return cases[request.param]


@pytest.fixture(params=("llama", "convolutional", pytest.param("half", marks=pytest.mark.slow)))
def case(request: pytest.FixtureRequest, cases: dict[str, Case]) -> Case:
    """The model in bfloat16 takes part in every test, in the slow run."""
    return cases[request.param]


def test_the_model_lies_there_in_its_own_dtype(each: Case, accelerator: str) -> None:
    model = each.opened(accelerator)
    assert str(model.device) == accelerator
    expected = "torch.bfloat16" if each.name == "half" else "torch.float32"
    assert {str(each.dtype) for each in model.body.network.parameters()} == {expected}
    assert all(str(each.device) == accelerator for each in model.body.network.state_dict().values())


def test_open(each: Case, accelerator: str) -> None:
    assert_alike(start(each.opened(CPU)).statistics, start(each.opened(accelerator)).statistics, 1e-6)


def test_calibrate(each: Case, accelerator: str) -> None:
    host, other = each.calibrated(CPU), each.calibrated(accelerator)
    for part in ("statistics", "ranges", "outliers"):
        assert_alike(getattr(host, part), getattr(other, part), tolerance(each), part)
    assert host.curvature.keys() == other.curvature.keys()
    for name in host.curvature:
        assert_alike(host.curvature[name].rows, other.curvature[name].rows, tolerance(each), name)
        assert_alike(host.curvature[name].columns, other.curvature[name].columns, tolerance(each), name)


METRICS = ("predicted_kl", "measured_kl", "weight_error", "output_error", "predicted_kl_inputs", "measured_kl_inputs")


@pytest.mark.parametrize("metric", METRICS)
def test_score(case: Case, metric: str, accelerator: str) -> None:
    schemes = ("int8-token", "int8-tensor") if metric.endswith("inputs") else case.schemes
    run = lambda session, model: wb.score(session, metric, model=model, schemes=schemes).sensitivities[metric].score  # noqa: E731
    both(case, accelerator, run, weights=case.schemes[0], inputs="int8-tensor")


@pytest.mark.parametrize("metric", ("predicted_kl_cache", "measured_kl_cache"))
def test_score_cache(cases: dict[str, Case], metric: str, accelerator: str) -> None:
    run = lambda session, model: wb.score(session, metric, model=model, schemes=("int4-token",)).sensitivities  # noqa: E731
    both(cases["llama"], accelerator, lambda session, model: run(session, model)[metric].score)


def test_search(case: Case, accelerator: str) -> None:
    def run(session: wb.Session, model: wb.Model) -> Any:
        scored = wb.score(session, model=model, schemes=case.schemes)
        plan = wb.search(scored, bits_per_weight=6.0)
        return {name: each.weights for name, each in resolve(plan, session.model.layers).items()}

    both(case, accelerator, run)


@pytest.mark.parametrize("inputs", (None, "int8-token", "int8-tensor"))
def test_evaluate(case: Case, inputs: str | None, accelerator: str) -> None:
    def run(session: wb.Session, model: wb.Model) -> Any:
        return {name: metric.value for name, metric in wb.evaluate(session, model=model, samples=8).metrics.items()}

    both(case, accelerator, run, weights=case.schemes[1], algorithm="rtn-clip", inputs=inputs)


def test_evaluate_cache(cases: dict[str, Case], accelerator: str) -> None:
    def run(session: wb.Session, model: wb.Model) -> Any:
        keys = [layer.name for layer in session.model.layers if layer.name.endswith(("k_proj", "v_proj"))]
        session = replace(session, plan=session.plan.assign(keys, cache="int4-token"))
        return wb.evaluate(session, model=model, samples=8).metrics["kl"].value

    both(cases["llama"], accelerator, run)


@pytest.mark.parametrize("algorithm", [each.name for each in ALGORITHMS])
def test_quantize(case: Case, algorithm: str, accelerator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.quantization.learning.learn.LearnOptions", partial(LearnOptions, steps=4))

    feeds_back = algorithm.startswith("gptq") or algorithm == "learned"

    def run(session: wb.Session, model: wb.Model) -> Any:
        made = quantize(model, session.plan, session=session)
        values = {name: parse_scheme(each.scheme).decode(each).double() for name, each in made.tensors.items()}
        if not feeds_back:
            return {name: each.numpy() for name, each in values.items()}
        exact = {name: model.weight(name).double().cpu() for name in values}
        return {name: float((each - exact[name]).norm() / exact[name].norm()) for name, each in values.items()}

    few = {"most": 2, "within": 0.05} if feeds_back else {}
    both(case, accelerator, run, weights=case.schemes[1], algorithm=algorithm, **few)


@pytest.mark.parametrize("transform", KNOWN)
def test_transform(cases: dict[str, Case], transform: str, accelerator: str) -> None:
    case = cases["convolutional" if transform in ("fold-norms", "equalize", *KNOWN[-2:]) else "llama"]

    def run(session: wb.Session, model: wb.Model) -> Any:
        session = replace(session, plan=replace(session.plan, transforms=(transform,)))
        return wb.evaluate(session, model=model, samples=8).metrics["kl"].value

    both(case, accelerator, run, weights=case.schemes[1], algorithm="rtn-clip")


def test_train(case: Case, accelerator: str) -> None:
    def run(session: wb.Session, model: wb.Model) -> Any:
        trained = wb.train(session, model=model, steps=3, batch_size=2)
        return {name: each.arrays["codes"] for name, each in trained.tensors.items()}

    both(case, accelerator, run, weights=case.schemes[1])


def test_checks(case: Case, accelerator: str) -> None:
    def run(session: wb.Session, model: wb.Model) -> Any:
        session = wb.score(session, model=model, schemes=case.schemes)
        layer = LAYER[case.name]
        return [
            AUDIT(session, AuditOptions(samples=4), model=model),
            ERROR_BUDGET(session, ErrorBudgetOptions(samples=4), model=model),
            QUALITY(session, QualityOptions(samples=4), model=model),
            RECONSTRUCTION(session, ReconstructionOptions(), model=model),
            REFINE(session, RefineOptions(bits_per_weight=6.0), model=model).score,
            BEFORE_AFTER(session, BeforeAfterOptions(layer=layer), model=model),
            CHANNEL_ERRORS(session, ChannelErrorsOptions(layer=layer), model=model),
        ]

    both(case, accelerator, run, weights=case.schemes[1], algorithm="rtn")


def written(file: Path) -> Any:
    """Return a file's bytes; of one from a real device its tensors: products round otherwise in corrected biases."""
    if not NAMED:
        return file.read_bytes()
    return {name: tensor.float().numpy() for name, tensor in load_file(file).items()}


@pytest.mark.parametrize("kind", ("safetensors", "state-dict", "huggingface"))
def test_export(case: Case, kind: str, accelerator: str, tmp_path: Path) -> None:
    if kind == "huggingface" and case.name == "convolutional":
        pytest.skip("no Hugging Face folder")

    def run(session: wb.Session, model: wb.Model) -> Any:
        place = tmp_path / str(model.device.type)
        paths = wb.export(session, kind, place, model=model)
        files = sorted(file for path in paths for file in ([path] if path.is_file() else path.rglob("*.safetensors")))
        return [written(file) for file in files if file.suffix != ".json"]

    both(case, accelerator, run, weights=case.schemes[1], algorithm="rtn-clip")
