"""What each scheme costs each layer: predicted, measured, audited."""
