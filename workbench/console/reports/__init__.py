"""What each command prints: one function for each result, by subject."""
