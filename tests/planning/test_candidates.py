"""The candidates of many groups at once, against one comparison after another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planning.synthetic import SCHEMES, decoder, table_of
from workbench.planning import candidates
from workbench.planning.candidates import Builder, Request
from workbench.planning.plan import KEEP
from workbench.planning.totals import layer_bits


@pytest.mark.parametrize("together", [1, 3, 1 << 14])
@pytest.mark.parametrize("timed", [False, True])
def test_groups_are_what_comparing_every_pair_leaves(
    together: int, timed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "TOGETHER", together)
    summary, table = decoder(6), table_of(decoder(6))
    score = table.score.round(3)  # equal losses
    score[2], score[3, 1], score[4], score[5, 2] = np.nan, np.nan, 0.0, np.inf
    table = replace(table, score=score)
    layers = summary.stored
    requests: list[Request] = [((layer,), None, None) for layer in layers[:9]]
    requests += [((layers[9], layers[10]), None, None), ((layers[1], layers[11]), None, (*SCHEMES[:3], KEEP))]
    times = _Times() if timed else None
    builder = Builder(table=table, names=SCHEMES, legal=None, times=times, algorithms=(), inputs=None)  # type: ignore[arg-type]
    for (members, _, limit), group in zip(requests, builder.groups(requests), strict=True):
        choices = []
        for name in limit or (*SCHEMES, KEEP):
            bits = sum(layer_bits(layer, name) for layer in members)
            cells = [0.0 if name == KEEP else score[table.row[layer.name], table.column[name]] for layer in members]
            spent = sum(_Times().of(layer, name, None) for layer in members) if timed else 0.0
            if not np.isnan(sum(cells)) and (timed or sum(cells) < np.inf):
                choices.append((bits, sum(cells), spent, name))
        best: list[tuple[float, float, float, str]] = []
        for bits, loss, spent, name in sorted(choices, key=lambda choice: (choice[0], choice[1], choice[2])):
            if not any(other[1] <= loss and other[2] <= spent for other in best):
                best.append((bits, loss, spent, name))
        assert group.layers == tuple(layer.name for layer in members)
        assert [name for *_, name in best] == list(group.schemes)
        assert [list(row) for row in zip(*(entry[:3] for entry in best), strict=True)] == [
            group.bits.tolist(), pytest.approx(group.loss.tolist()), group.microseconds.tolist(),
        ]  # fmt: skip


class _Times:
    """Made-up times, some of which are unknown."""

    def of(self, layer: object, weights: str, inputs: str | None) -> float:
        return {KEEP: 9.0, SCHEMES[0]: 4.0, SCHEMES[1]: 3.0}.get(weights, 5.0)
