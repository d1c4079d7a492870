"""The compiled half of the formats: kernels for codes, values and clip searches.  Imports numba."""
