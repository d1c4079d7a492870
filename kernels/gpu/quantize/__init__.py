"""Kernels that quantize, decode and observe, alone or fused with a norm or a gate."""
