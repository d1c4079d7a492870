"""Streaming statistics of tensors: histograms, extremes, moments, outlier tokens."""
