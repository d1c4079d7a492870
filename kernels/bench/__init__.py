"""Checking kernels against references and timing them beside baselines; choosing the fastest."""
