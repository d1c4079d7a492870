"""The columns of the table of transitions: what the plan turns into what."""

from __future__ import annotations

from workbench.gui.tables.fields import Field, Number
from workbench.insight import quantities

FIELDS = (
    Field("From", lambda move: move.before, tip="How the model stores the weight"),
    Field("To", lambda move: "kept" if move.before == move.after else move.after, tip="How the plan stores it"),
    Number("Layers", lambda move: move.layers, tip="Layers with this change; tied ones count once"),
    Number("Count", lambda move: move.weights, quantities.count, tip="Number of weights"),
    Number("Before", lambda move: move.nbytes[0], quantities.data_size, unit="bytes",
           tip="Bytes of their weights as the model stores them"),
    Number("After", lambda move: move.nbytes[1], quantities.data_size, unit="bytes",
           tip="Bytes of their weights under the plan"),
    Number("Saved", lambda move: 1 - move.nbytes[1] / move.nbytes[0] if move.nbytes[0] else None, quantities.share,
           unit="share", key=lambda move: move.nbytes[0] - move.nbytes[1], tip="Share of the bytes before"),
)  # fmt: skip
