"""Begins what the chosen tests of this folder will wait for, when the first of them runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import ahead


def pytest_configure(config: pytest.Config) -> None:
    """Register this folder's mark."""
    config.addinivalue_line("markers", "ahead(function, *arguments): what the test waits for")


@pytest.fixture(autouse=True, scope="session")
def begun(request: pytest.FixtureRequest) -> Iterator[None]:
    """Begin it all, in the order of the tests."""
    for item in request.session.items:
        for mark in item.iter_markers("ahead"):
            ahead.begin(*mark.args)
    yield
    ahead.drop()
