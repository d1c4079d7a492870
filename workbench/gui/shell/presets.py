"""Layouts of the window for each kind of work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """The panels in front (of two tabs the first), and shares: left half's width, layers' and upper right height."""

    fronts: tuple[str, ...]
    left: float
    layers: float
    above: float


PRESETS = {
    "explore": Preset(("layers", "plan", "sensitivity", "distributions"), 0.4, 0.62, 0.56),
    "plan": Preset(("plan", "layers", "sensitivity", "timing"), 0.45, 0.45, 0.72),
    "compare": Preset(("layers", "plan", "compare", "channels"), 0.3, 0.6, 0.7),
    "deploy": Preset(("layers", "plan", "deploy", "jobs"), 0.35, 0.6, 0.7),
}
"""Which panels stand in front, and how large they are, for each kind of work."""
