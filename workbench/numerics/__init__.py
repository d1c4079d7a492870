"""Tensors in, tensors out: number formats, ranges, statistics, curvature, rounding algorithms.

No module below imports torch when it is imported; functions that compute on tensors import it themselves, so that the
window's process can read names, bits, value tables and errors off a histogram with numpy alone.
"""
