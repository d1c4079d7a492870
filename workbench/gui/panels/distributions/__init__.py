"""The Distributions panel and its parts."""
