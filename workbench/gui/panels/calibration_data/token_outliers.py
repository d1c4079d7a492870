"""The columns of the table of tokens with massive values."""

from __future__ import annotations

from workbench.gui.tables.records import Field
from workbench.insight import quantities
from workbench.numerics.statistics.outliers import SIGMAS

FIELDS = (
    Field(title="Layer", text=lambda row: row.layer),
    Field(title="Tensor", text=lambda row: row.tap),
    Field(title="Value", text=lambda row: quantities.number(row.value), numeric=True, key=lambda row: row.value),
    Field(title="Std. dev.", text=lambda row: f"{row.sigmas:.1f}", numeric=True, key=lambda row: row.sigmas,
          tip="The value's magnitude in standard deviations of all the tensor's values"),
    Field(title="Token", text=lambda row: row.token,
          tip="The token's text (its id where there is no tokenizer), or the pixel"),
    Field(title="Place", text=lambda row: row.place_in_words, key=lambda row: row.place,
          tip="Sample of the calibration data, and the position in it, both from 0"),
    Field(title="Channel", text=lambda row: f"{row.channel:,}", numeric=True, key=lambda row: row.channel),
    Field(title=f"≥ {SIGMAS:g} s.d.",
          text=lambda row: quantities.share(row.share) if row.share >= 0 else quantities.NONE, numeric=True,
          key=lambda row: row.share,
          tip=f"Share of the tokens that reach {SIGMAS:g} standard deviations; images' pixels are not counted"),
)  # fmt: skip
