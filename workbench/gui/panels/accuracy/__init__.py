"""The Accuracy panel and its parts."""
