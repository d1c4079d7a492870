"""The forms that a plan can be shipped in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gui import sessions
from workbench.insight.deployments import FORMS, unfit
from workbench.models.summary import OutputKind


@pytest.mark.parametrize(("output", "kinds"), [
    (OutputKind.TOKEN_LOGITS, set()), (OutputKind.EMBEDDING, {"onnx-genai", "mlx"}),
    (OutputKind.CLASS_LOGITS, {"onnx-genai", "mlx"}),
])  # fmt: skip
def test_what_only_generates_text_is_no_form_for_other_models(output: OutputKind, kinds: set[str]) -> None:
    model = replace(sessions.summary(1), output=output)
    reasons = {form.kind: unfit(form, model) for form in FORMS if unfit(form, model)}
    assert set(reasons) == kinds
    assert all("only generates text" in reason and model.name in reason for reason in reasons.values())
