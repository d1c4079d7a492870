"""The rows of the table: our sizes with what they must reach, and the peers' with what they reached before.

``known`` are figures measured earlier on ``llama-260k`` (KL in nats per token, the same 256 windows), printed beside
today's; rows without a ``tool`` can only be quoted: nothing that installs makes them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """One of our sizes: what rounding alone must stay below, what the best of our algorithms must reach."""

    bits: float
    rounding: float
    best: float


SIZES = (
    Size(3.00, 1.187, 0.40), Size(3.30, 0.493, 0.20), Size(3.59, 0.320, 0.12), Size(3.95, 0.181, 0.068),
    Size(4.31, 0.0829, 0.037), Size(4.63, 0.0502, 0.024), Size(4.93, 0.0323, 0.017), Size(5.33, 0.0178, 0.0095),
)  # fmt: skip
"""``rounding`` is a prototype of predicted losses with plain rounding; ``best`` the goal."""

RATIO = (0.7, 1.33)
"""Predicted over measured KL, for nine plans in ten between 3.5 and 6 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing that a tool does: ``row`` of its script ``run_<tool>.py``; ``rounds`` where nothing is learned."""

    bits: float
    what: str
    tool: str = ""
    row: str = ""
    known: float | None = None
    rounds: bool = False

    @property
    def key(self) -> str:
        """What names the row on the command line and in messages."""
        return f"{self.tool} {self.row}" if self.tool else self.what


ROWS = (
    Row(bits=2.28, what="auto-round SignRound int2 g64", tool="auto_round", row="int2-g64", known=1.26),
    Row(bits=2.95, what="auto-round AutoScheme 2/3/4/8 bits", tool="auto_round", row="scheme-3.0", known=0.894),
    Row(bits=3.00, what="measured KL + exact plan + rounding (prototype)", known=1.03, rounds=True),
    Row(bits=3.00, what="measured KL + exact plan + SignRound (prototype)", known=0.434),
    Row(bits=3.02, what="ModelOpt auto_quantize by gradients", tool="modelopt", row="auto-3.0", known=4.38,
        rounds=True),
    Row(bits=3.30, what="auto-round SignRound int3 g64", tool="auto_round", row="int3-g64", known=0.225),
    Row(bits=3.30, what="GPTQ int3 g64", tool="gptq", row="int3-g64-asym", known=0.376),
    Row(bits=3.30, what="torchao int3 g64", tool="torchao", row="int3-g64-asym", rounds=True),
    Row(bits=3.50, what="HQQ int3 g64", tool="hqq", row="int3-g64"),
    Row(bits=3.59, what="GPTQ int3 g32", tool="gptq", row="int3-g32-asym", known=0.288),
    Row(bits=3.59, what="torchao int3 g32", tool="torchao", row="int3-g32-asym", known=0.565, rounds=True),
    Row(bits=3.95, what="auto-round AutoScheme 2/3/4/8 bits", tool="auto_round", row="scheme-4.0", known=0.165),
    Row(bits=3.95, what="the same without learning", tool="auto_round", row="scheme-4.0-rounding", known=0.210,
        rounds=True),
    Row(bits=4.00, what="HQQ int3 g32", tool="hqq", row="int3-g32", known=0.416),
    Row(bits=4.00, what="measured KL + exact plan + SignRound (prototype)", known=0.072),
    Row(bits=4.03, what="ModelOpt auto_quantize by gradients", tool="modelopt", row="auto-4.0", known=0.313,
        rounds=True),
    Row(bits=4.31, what="auto-round SignRound int4 g64", tool="auto_round", row="int4-g64", known=0.0469),
    Row(bits=4.31, what="GPTQ int4 g64", tool="gptq", row="int4-g64-asym", known=0.0632),
    Row(bits=4.31, what="torchao int4 g64", tool="torchao", row="int4-g64-asym", known=0.105, rounds=True),
    Row(bits=4.50, what="gguf Q4_0", tool="gguf", row="Q4_0", known=0.0924, rounds=True),
    Row(bits=4.50, what="HQQ int4 g64", tool="hqq", row="int4-g64", known=0.0927),
    Row(bits=4.50, what="quanto int4 g64", tool="quanto", row="int4-g64", known=0.0974, rounds=True),
    Row(bits=4.50, what="torchao int4 g32 symmetric", tool="torchao", row="int4-g32-sym", known=0.118, rounds=True),
    Row(bits=4.63, what="GPTQ int4 g32", tool="gptq", row="int4-g32-asym", known=0.0495),
    Row(bits=4.63, what="torchao int4 g32", tool="torchao", row="int4-g32-asym", rounds=True),
    Row(bits=4.93, what="auto-round AutoScheme 2/3/4/8 bits", tool="auto_round", row="scheme-5.0", known=0.0558),
    Row(bits=5.00, what="HQQ int4 g32", tool="hqq", row="int4-g32", known=0.0685),
    Row(bits=5.00, what="gguf Q4_1", tool="gguf", row="Q4_1", known=0.0733, rounds=True),
    Row(bits=5.00, what="quanto int4 g32", tool="quanto", row="int4-g32", known=0.0733, rounds=True),
    Row(bits=5.00, what="measured KL + exact plan + SignRound (prototype)", known=0.018),
    Row(bits=5.06, what="ModelOpt auto_quantize by gradients", tool="modelopt", row="auto-5.0", known=0.071,
        rounds=True),
    Row(bits=5.33, what="torchao int5 g64", tool="torchao", row="int5-g64-asym", rounds=True),
    Row(bits=5.50, what="gguf Q5_0", tool="gguf", row="Q5_0", known=0.0195, rounds=True),
    Row(bits=6.00, what="gguf Q5_1", tool="gguf", row="Q5_1", known=0.0154, rounds=True),
    Row(bits=8.50, what="gguf Q8_0", tool="gguf", row="Q8_0", known=0.00029, rounds=True),
)  # fmt: skip
"""Smallest first.  Bits are nominal; a measured row tells its own."""

TOOLS = tuple(dict.fromkeys(row.tool for row in ROWS if row.tool))

MORE_SIZES = (2.29, 6.00, 8.50)
"""Sizes of ours that no limit is set for, to stand beside peers' rows that are smaller or better than the eight."""
