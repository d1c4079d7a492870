"""Opened models: their layers, their networks, how their operations are traced."""
