"""Kinds of operators by what they do with the weights of a graph."""

from __future__ import annotations

MOVES = frozenset({"Identity", "Cast", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Flatten"})
"""Operators that change where the numbers of a constant lie, or their dtype, and no value of a weight."""

COMPUTED = frozenset({
    "Add", "Clip", "Concat", "Div", "Exp", "Gather", "Mul", "Neg", "Pow", "Reciprocal", "ReduceL2", "ReduceMean",
    "ReduceSum", "Relu", "Round", "Sigmoid", "Slice", "Split", "Sqrt", "Sub", "Sum", "Tanh",
})  # fmt: skip
"""Operators of which weights are computed before anything runs: put together, cut, or scaled."""

CLIPPED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "BatchNormalization"})
"""Operators that networks put ReLU6 behind."""

CODES = frozenset({"QuantizeLinear", "DequantizeLinear"})
RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
FACTORS: dict[str, tuple[int, ...]] = {
    "MatMul": (0, 1), "Gemm": (0, 1), "FusedMatMul": (0, 1), "Einsum": tuple(range(8)), "Conv": (1,), "FusedConv": (1,),
    "ConvTranspose": (1,), "DeformConv": (1,), "LSTM": (1, 2), "GRU": (1, 2), "RNN": (1, 2), "Attention": (1,),
}  # fmt: skip
"""The places of operators' factors, for those that are not layers with their own inputs."""

CODED_PRODUCTS = frozenset({
    "MatMulNBits", "MatMulBnb4", "MatMulFpQ4", "MatMulInteger", "MatMulInteger16", "MatMulIntegerToFloat",
    "ConvInteger", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "QLinearMatMul", "QLinearConv", "QGemm",
    "QAttention", "QMoE", "QEmbedLayerNormalization", "QOrderedMatMul", "QOrderedAttention", "GatherBlockQuantized",
})  # fmt: skip
"""Operators that multiply with codes, or look them up. What is left of them in a graph in floating point is not
a layer."""

DEEPEST = 64
"""How many operators may lie between a tensor and the constant that is made of it."""
