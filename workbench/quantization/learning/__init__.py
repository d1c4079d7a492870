"""Learned rounding of a whole plan: its loop and loss, its data, its checkpoint."""
