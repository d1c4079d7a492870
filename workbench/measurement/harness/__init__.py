"""Tasks of lm-evaluation-harness, for the floating-point and the quantized model side by side."""
