"""The columns of the table of tokens with massive values."""

from __future__ import annotations

from workbench.gui.tables.fields import Field, Number
from workbench.insight import quantities
from workbench.numerics.statistics.outliers import SIGMAS

FIELDS = (
    Field("Layer", lambda row: row.layer),
    Field("Tensor", lambda row: row.tap),
    Number("Value", lambda row: row.value),
    Number("Std. dev.", lambda row: row.sigmas, "{:.1f}".format, unit="σ",
           tip="The value's magnitude in standard deviations of all the tensor's values"),
    Field("Token", lambda row: row.token, tip="The token's text (its id where there is no tokenizer), or the pixel"),
    Field("Place", lambda row: row.place_in_words, key=lambda row: row.place,
          tip="Sample of the calibration data, and the position in it, both from 0"),
    Number("Channel", lambda row: row.channel),
    Number(f"≥ {SIGMAS:g} s.d.", lambda row: None if row.share < 0 else row.share, quantities.share, unit="share",
           tip=f"Share of the tokens that reach {SIGMAS:g} standard deviations; images' pixels are not counted"),
)  # fmt: skip
