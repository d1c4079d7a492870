"""The most changed tokens and samples, against sorting everything; what is shown of them."""

from __future__ import annotations

import numpy as np
import torch

from tests.models.networks import convolutions, decoder, images, tokens
from workbench.measurement.divergence import logit_divergence
from workbench.measurement.evaluate import evaluate
from workbench.measurement.most_changed import MOST, MostChanged


def test_the_worst_tokens_are_those_of_a_full_sort() -> None:
    reference, candidate, data = decoder(0), decoder(1), tokens()
    changed = MostChanged(lambda rows: ["/".join(map(str, ids)) for ids in rows])
    evaluate(reference, candidate, data, batch_size=4, most_changed=changed)
    ids = data.tensors["input_ids"]
    with torch.no_grad():
        p, q = reference.run({"input_ids": ids}), candidate.run({"input_ids": ids})
    each = torch.stack([logit_divergence(a, b) for a, b in zip(p, q, strict=True)])
    order = torch.argsort(each.flatten(), descending=True, stable=True)
    units = changed.units()
    for item, index in zip(units[:MOST], order.tolist(), strict=False):
        sample, position = divmod(index, ids.shape[1])
        assert (item.sample, item.position) == (sample, position)
        np.testing.assert_allclose(item.kl, float(each[sample, position]), rtol=1e-5)
        tops = int(p[sample, position].argmax()), int(q[sample, position].argmax())
        assert (item.baseline, item.quantized) == tuple(map(str, tops)) and item.flipped == (tops[0] != tops[1])
        assert item.context.split("/")[-1] == str(int(ids[sample, position]))
        following = str(int(ids[sample, position + 1])) if position + 1 < ids.shape[1] else ""
        assert item.actual == following
    assert MOST <= len(units) <= 2 * MOST and [item.kl for item in units] == sorted((o.kl for o in units), reverse=True)
    flips = int((p.argmax(-1) != q.argmax(-1)).sum())
    assert sum(item.flipped for item in units) >= min(flips, MOST)


def test_padding_is_never_among_them() -> None:
    data = tokens()
    data.tensors["attention_mask"] = torch.ones_like(data.tensors["input_ids"])
    data.tensors["attention_mask"][:, 2:] = 0
    changed = MostChanged()
    evaluate(decoder(0), decoder(1), data, batch_size=4, most_changed=changed)
    assert changed.units() and max(item.position for item in changed.units()) < 2


def test_samples_of_a_classifier_are_whole_and_say_their_label() -> None:
    data = images()
    changed = MostChanged()
    evaluation = evaluate(convolutions(0), convolutions(1), data, batch_size=3, most_changed=changed)
    first = changed.units()[0]
    assert first.position == -1 and first.context == ""
    assert first.sample == int(evaluation["kl"].per_sample.argmax()) and first.kl == evaluation["kl"].per_sample.max()
    if "labels" in data.tensors:
        assert first.actual == str(int(data.tensors["labels"][first.sample]))


def test_a_model_against_itself_changes_nothing() -> None:
    changed = MostChanged()
    evaluate(decoder(), decoder(), tokens(), most_changed=changed)
    assert changed.units() == ()
