"""Quantized checkpoints, read back by their libraries."""
