"""The forms that a plan can be shipped in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.gui import sessions
from workbench.deployment.networks import unknown_network
from workbench.errors import PlanError
from workbench.insight.deployments import FORMS, unfit
from workbench.insight.legality import Refusal, by_reason, within_target
from workbench.models.summary import ModelSource, OutputKind
from workbench.planning.constraints import Constraints


@pytest.mark.parametrize(("output", "kinds"), [
    (OutputKind.TOKEN_LOGITS, set()), (OutputKind.EMBEDDING, {"onnx-genai", "mlx"}),
    (OutputKind.CLASS_LOGITS, {"onnx-genai", "mlx"}),
])  # fmt: skip
def test_what_only_generates_text_is_no_form_for_other_models(output: OutputKind, kinds: set[str]) -> None:
    model = replace(sessions.summary(1), output=output)
    reasons = {form.kind: unfit(form, model) for form in FORMS if unfit(form, model)}
    assert set(reasons) == kinds
    assert all("only generates text" in reason and model.name in reason for reason in reasons.values())


def test_weights_without_a_network_are_offered_in_no_form_that_needs_it(tmp_path: Path) -> None:
    file = tmp_path / "some.safetensors"
    source = ModelSource(kind="safetensors", path=str(file))
    model = replace(sessions.summary(1), source=source, cannot_run="there is no network")
    reasons = {form.kind: unfit(form, model) for form in FORMS}
    assert {kind for kind, reason in reasons.items() if not reason} == {"safetensors"}
    assert reasons["onnx"].endswith("has no network to write: there is no network")
    assert "config.json" in reasons["gguf"] and model.name in reasons["gguf"]
    (tmp_path / "config.json").touch()
    assert not unfit(FORMS[0], model) and not unfit(FORMS[1], model), "the folder holds the rest"


@pytest.mark.parametrize(("architecture", "unknown"), [
    ("llama", set()), ("gpt2", {"mlx"}), ("olmo", {"mlx"}), ("mixtral", set()), ("granitemoe", {"gguf"}),
    ("vit", {"gguf", "mlx"}),
])  # fmt: skip
def test_an_architecture_that_a_runtime_does_not_have_is_said_before_the_export(
    architecture: str, unknown: set[str], tmp_path: Path
) -> None:
    """Only the export said so, after the hours in which the plan was made."""
    (tmp_path / "config.json").write_text(f'{{"model_type": "{architecture}"}}')
    source = ModelSource(kind="huggingface", path=str(tmp_path))
    model = replace(sessions.summary(1), source=source, output=OutputKind.TOKEN_LOGITS)
    reasons = {form.kind: unfit(form, model) for form in FORMS}
    assert {kind for kind, reason in reasons.items() if f"architecture {architecture} yet" in reason} == unknown
    for target in ("gguf", "mlx", "mlx@nvidia-9.0", "vllm", "onnxruntime"):
        if target.partition("@")[0] in unknown:
            with pytest.raises(PlanError, match=f"no network of the architecture {architecture}.*choose another"):
                within_target(Constraints(), target, model)
        else:
            assert within_target(Constraints(), target, model).target


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"model_type": 3}'])
def test_a_folder_that_does_not_say_its_architecture_is_left_to_the_export(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    model = replace(sessions.summary(1), source=ModelSource(kind="huggingface", path=str(tmp_path)))
    assert unknown_network("gguf", model) == unknown_network("", model) == ""
    assert unknown_network("gguf", replace(model, source=ModelSource(kind="huggingface", path="gone"))) == ""


@pytest.mark.parametrize(("kind", "kinds"), [
    ("gguf", {"gguf", "onnx", "safetensors"}), ("python_module", {"onnx", "safetensors"}),
    ("quantized_checkpoint", {form.kind for form in FORMS}),
])  # fmt: skip
def test_forms_that_take_a_folders_tokenizer_are_not_offered_without_one(kind: str, kinds: set[str]) -> None:
    model = replace(sessions.summary(1), source=ModelSource(kind=kind, path="a/model"))
    assert {form.kind for form in FORMS if not unfit(form, model)} == kinds


def test_a_tip_has_a_line_for_each_reason_not_for_each_layer() -> None:
    refused = [Refusal(layers=(f"layers.{place}",), reason=f"not q{place % 3}_k") for place in range(10_000)]
    assert by_reason(refused).splitlines() == [f"layers.{k} and {3333 - (k > 0):,} more: not q{k}_k" for k in range(3)]
