"""ARCHITECTURE.md names files that exist, and each of its walks is short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATHS = re.compile(r"`((?:workbench|kernels|resources|tests)(?:/[\w.]+)+)`")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_is_named_exists(page: str) -> None:
    named = PATHS.findall((ROOT / page).read_text(encoding="utf-8"))
    assert named and [path for path in named if not (ROOT / path).exists()] == []


def test_each_of_the_four_walks_takes_at_most_eight_files() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Four walks")[2]
    walks = [PATHS.findall(line) for line in section.splitlines() if line.startswith("| where")]
    assert len(walks) == 4 and all(3 <= len(walk) <= 8 for walk in walks)
