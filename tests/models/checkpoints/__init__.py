"""Quantized checkpoints of others as models with their plans."""
