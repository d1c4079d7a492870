"""Quantizing a model by a plan: sequential passes, corrections, training."""
