"""Top-5 accuracy against scikit-learn's."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import top_k_accuracy_score

from workbench.measurement.metrics import TOP5_ACCURACY
from workbench.measurement.metrics.metric import Outputs
from workbench.models.summary import OutputKind


def outputs(classes: int = 10, kind: OutputKind = OutputKind.CLASS_LOGITS, labelled: bool = True) -> Outputs:
    generator = torch.Generator().manual_seed(0)
    reference, quantized = (torch.randn(60, classes, generator=generator) for _ in range(2))
    batch = {"labels": torch.randint(0, classes, (60,), generator=generator)} if labelled else {}
    return Outputs(reference=reference, quantized=quantized, batch=batch, kind=kind)


def test_it_is_that_of_scikit_learn() -> None:
    observed = outputs()
    sums = TOP5_ACCURACY.measure(observed)
    assert sums is not None
    labels = observed.batch["labels"].numpy()
    for values, logits in ((sums.values, observed.quantized), (sums.baselines, observed.reference)):
        assert float(values.mean()) == pytest.approx(100 * top_k_accuracy_score(labels, logits.numpy(), k=5))


@pytest.mark.parametrize(
    "seen", [outputs(classes=5), outputs(labelled=False), outputs(kind=OutputKind.EMBEDDING)],
    ids=["five classes", "no labels", "no logits"],
)  # fmt: skip
def test_it_applies_to_labelled_classes_of_more_than_five(seen: Outputs) -> None:
    assert TOP5_ACCURACY.measure(seen) is None
