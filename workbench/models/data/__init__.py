"""Data sets: from files to batches of what a model takes."""
