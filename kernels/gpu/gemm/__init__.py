"""Matrix products of quantized operands."""
