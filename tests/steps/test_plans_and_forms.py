"""Random plans for every form and architecture: what a form cannot hold it refuses before any weight is rounded."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.endings import ENDINGS
from workbench.deployment.exporters import EXPORTERS
from workbench.errors import BackendUnavailableError, WorkbenchError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.quantization.quantized_model import QuantizedModel
from workbench.steps.files import export as step

WEIGHTS = (
    "keep", "int8-channel", "int4-g32", "int4-g32-asym", "int4-g32-asym-zfp16", "int3-g32", "int4-g16", "int8-tensor",
    "fp8-e4m3-channel", "fp8-e4m3-tensor", "fp16", "bf16", "q8_0", "q4_0", "q4_k", "iq4_nl", "mxfp4", "nvfp4",
    "int2-g32", "int4-channel-asym", "mxfp8-e4m3",
)  # fmt: skip
INPUTS = (None, None, None, "int8-token", "int8-token-asym", "fp8-e4m3-token", "mxfp4", "fp16")
TRANSFORMS: tuple[tuple[str, ...], ...] = ((), (), ("rotation",), ("rotation-0",), ("rotation-heads",), ("fold-norms",))
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "tied llama": ("llama", {"tie_word_embeddings": True}), "qwen3": ("qwen3", {"tie_word_embeddings": False}),
    "gpt2": ("gpt2", {}), "bert": ("bert", {}), "qwen2moe": ("qwen2moe", {}),
}  # fmt: skip
PLANS = 4
KINDS = [member.name for member in EXPORTERS if member.needs_model]


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    name, changes = MODELS[request.param]
    return open_model(folder_of(name, tmp_path_factory.mktemp(name), **changes))


def random_plan(model: Model, kind: str, number: int) -> Plan:
    """Return a plan of one or two schemes for some of the layers or all, with and without inputs and transforms."""
    dice = random.Random(f"{model.summary.layers[0].name} {len(model.summary.layers)} {kind} {number}")
    schemes = dice.sample(WEIGHTS, dice.choice((1, 2)))
    inputs, share = dice.choice(INPUTS), dice.choice((0.3, 1.0))
    plan = Plan(transforms=dice.choice(TRANSFORMS))
    for layer in model.summary.stored:
        if dice.random() < share:
            plan = plan.assign([layer.name], weights=dice.choice(schemes), inputs=inputs, algorithm="rtn")
    return plan


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_is_written_or_refused_before_weights_are_rounded(
    kind: str, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[QuantizedModel] = []
    own = step.quantize

    def quantize(*arguments: Any, **settings: Any) -> QuantizedModel:
        results.append(own(*arguments, **settings))
        return results[-1]

    monkeypatch.setattr(step, "quantize", quantize)
    for number in range(PLANS):
        results.clear()
        out = tmp_path / f"{number}{ENDINGS[kind]}"
        plan = random_plan(model, kind, number)
        try:
            step.apply(model, plan, kind, out)
        except BackendUnavailableError as error:  # of the form's library, whatever the plan
            assert not results
            pytest.skip(str(error))
        except WorkbenchError as error:
            assert not results, f"{plan.to_json()}\n{error}"
            assert not any(path.name.startswith((".", str(number))) for path in tmp_path.iterdir())
        else:
            assert out.exists()
