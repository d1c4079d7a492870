"""What llama.cpp multiplies quantized weights by: inputs that it rounds to 8 bits in blocks on its own account.

ggml, ``type_traits_cpu[type].vec_dot_type``: Q8_K (blocks of 256, one float32 scale) beside K-quants, i-quants and
ternary types, Q8_0 or Q8_1 (blocks of 32, a float16 scale) beside the others.
"""

from __future__ import annotations

BLOCKS_OF_256 = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq1_", "iq2_", "iq3_", "iq4_xs", "tq")
"""How the names of types with blocks of 256 begin."""

SCHEMES = ("int8-g32", "int8-g256")
"""The schemes nearest to both roundings."""

UNROUNDED = ("keep", "fp32", "fp16", "bf16")
"""Weights that are multiplied by inputs in floating point."""


def inputs_beside(weights: str) -> str | None:
    """Return the scheme of the inputs of a product with weights in that scheme, None where they stay as computed."""
    return None if weights in UNROUNDED else SCHEMES[weights.startswith(BLOCKS_OF_256)]
