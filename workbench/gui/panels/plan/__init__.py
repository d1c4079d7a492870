"""The Plan panel and its parts."""
