"""Running kernels on a CUDA device: launches, contracts, the thread that owns the device; sources in ``cuda/``."""
