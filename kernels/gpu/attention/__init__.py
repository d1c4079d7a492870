"""Decoding with a quantized KV cache, and a whole transformer block."""
