"""What the actions do, by menu."""
