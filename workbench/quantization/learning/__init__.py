"""Learned rounding of a whole plan: its loop, its data, its loss, its checkpoint."""
