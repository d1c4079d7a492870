"""The Timing panel and its parts."""
