"""What every face shows and Qt does not need: comparisons, legality, channels, rooflines, numbers as text."""
