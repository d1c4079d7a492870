"""Equivalent rewrites of the floating-point model after which rounding costs less, and corrections after it.

A plan names them in order (``Plan.transforms``).  :func:`workbench.quantization.transforms.apply.transform` carries
them out; this package imports no torch by itself, so that plans can be read and counted without it.
"""
