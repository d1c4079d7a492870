"""Outlier tokens of whole models against a search through every tapped tensor; parts, padding, pixels, texts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tests.models.networks import Rows, convolutions, decoder, images, tokens
from tests.numerics.statistics.same import same
from workbench.measurement.calibrate import calibrate
from workbench.measurement.token_outliers import with_texts
from workbench.numerics.statistics.outliers import LARGEST, merged


def searched(model, data, layer, tap, real=None):
    """Return (value, channel, sample, position) of a layer's largest tokens, sample by sample."""
    result = []
    with torch.no_grad():
        for sample, batch in enumerate(data.batches(1)):
            received = []
            model.run(batch, tap=lambda name, x, y: received.append((x, y)), layers=(layer,))  # noqa: B023
            x = received[0][tap == "output"][0].numpy()
            rows = np.moveaxis(x, 0, -1).reshape(-1, x.shape[0]) if x.ndim == 3 else x
            for position, row in enumerate(rows):
                if real is None or real[sample, position]:
                    channel = int(np.abs(row).argmax())
                    result.append((float(row[channel]), channel, sample, position))
    return sorted(result, key=lambda entry: (-abs(entry[0]), entry[2], entry[3]))[:LARGEST]


def rows_of(outliers):
    return list(zip(outliers.value.tolist(), outliers.channel.tolist(), outliers.sample.tolist(),
                    outliers.position.tolist(), strict=True))  # fmt: skip


def agree(actual, expected):
    assert [item[1:] for item in actual] == [item[1:] for item in expected]
    assert [item[0] for item in actual] == pytest.approx([item[0] for item in expected], rel=1e-5)


@pytest.mark.parametrize("batch_size", [1, 3, 10])
@pytest.mark.parametrize(("layer", "tap"), [("up", "input"), ("down", "output"), ("value", "input")])
def test_the_largest_tokens_of_all_samples_are_found(layer, tap, batch_size):
    model, data = decoder(), tokens()
    result = calibrate(model, data, batch_size=batch_size, curvature=False).outliers[layer, tap]
    agree(rows_of(result), searched(model, data, layer, tap))
    ids = data.tensors["input_ids"].numpy()
    assert result.token.tolist() == ids[result.sample, result.position].tolist()
    assert result.count == ids.size and result.place(0) == f"position {result.position[0]}"


def test_pixels_are_named_by_row_and_column():
    model, data = convolutions(), images()
    result = calibrate(model, data, batch_size=4, curvature=False).outliers["grouped", "input"]
    agree(rows_of(result), searched(model, data, "grouped", "input"))
    width = int(result.width[0])
    assert width > 1 and result.count == 0 and (result.token == -1).all()
    assert result.place(0) == f"row {result.position[0] // width}, column {result.position[0] % width}"


def test_padding_is_no_token():
    ids = tokens().tensors["input_ids"]
    mask = torch.ones_like(ids)
    mask[::2, 4:] = 0
    data = Rows(input_ids=ids, attention_mask=mask)
    result = calibrate(decoder(), data, batch_size=4, curvature=False).outliers["up", "input"]
    agree(rows_of(result), searched(decoder(), data, "up", "input", mask.numpy()))
    assert result.count == int(mask.sum())


def test_parts_of_the_data_merge_in_any_order_to_the_whole():
    model, ids = decoder(), tokens().tensors["input_ids"]
    whole = calibrate(model, tokens(), batch_size=2, curvature=False).outliers
    parts = [
        calibrate(model, Rows(input_ids=ids[n : n + 4]), batch_size=2, curvature=False, first_sample=n).outliers
        for n in (0, 4, 8)
    ]
    for key, expected in whole.items():
        for order in itertools.permutations(parts):
            assert same(merged([part[key] for part in order]), expected)


def test_many_batches_are_merged_on_the_way():
    ids = torch.randint(0, 13, (40, 7), generator=torch.Generator().manual_seed(1))
    model, data = decoder(), Rows(input_ids=ids)
    result = calibrate(model, data, batch_size=1, curvature=False).outliers["up", "input"]
    agree(rows_of(result), searched(model, data, "up", "input"))
    assert result.count == 280


def test_texts_come_from_the_ids():
    result = calibrate(decoder(), tokens(), curvature=False).outliers
    read = with_texts(result, lambda rows: [f"<{token}>" for (token,) in rows])
    assert read["up", "input"].text == tuple(f"<{token}>" for token in result["up", "input"].token)
    pixels = calibrate(convolutions(), images(), curvature=False).outliers
    assert with_texts(pixels, lambda rows: [str(row) for row in rows])["grouped", "input"].text == ()
