"""Kernels and their honest timing; imports nothing of the application (import name ``workbench_kernels``)."""
