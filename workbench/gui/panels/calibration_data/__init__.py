"""The Calibration data panel and its parts."""
