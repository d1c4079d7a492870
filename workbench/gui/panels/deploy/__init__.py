"""The Deploy panel and its parts."""
