"""Quantized checkpoints of others: which of their tensors are a weight, in which scheme, and its codes as ours."""
