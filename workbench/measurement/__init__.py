"""Calibration, evaluation and timing: what is measured of a model as it is and of a quantized one."""
