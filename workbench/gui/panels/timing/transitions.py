"""The columns of the table of transitions: what the plan turns into what."""

from __future__ import annotations

from workbench.gui.tables.records import Field
from workbench.insight import quantities

FIELDS = (
    Field(title="From", text=lambda move: move.before, tip="How the model stores the weight"),
    Field(title="To", text=lambda move: "kept" if move.before == move.after else move.after,
          tip="How the plan stores it"),
    Field(title="Layers", text=lambda move: f"{move.layers:,}", numeric=True, key=lambda move: move.layers,
          tip="How many layers go this way; tied ones count once"),
    Field(title="Count", text=lambda move: quantities.count(move.weights), numeric=True, key=lambda move: move.weights,
          tip="Number of weights"),
    Field(title="Before", text=lambda move: quantities.data_size(move.nbytes[0]), numeric=True,
          key=lambda move: move.nbytes[0], tip="Bytes of their weights as the model stores them"),
    Field(title="After", text=lambda move: quantities.data_size(move.nbytes[1]), numeric=True,
          key=lambda move: move.nbytes[1], tip="Bytes of their weights under the plan"),
    Field(title="Saved",
          text=lambda move: quantities.share(1 - move.nbytes[1] / move.nbytes[0]) if move.nbytes[0] else "",
          numeric=True, key=lambda move: move.nbytes[0] - move.nbytes[1], tip="Share of the bytes before"),
)  # fmt: skip
