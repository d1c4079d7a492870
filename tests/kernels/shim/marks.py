"""Marks of the tests that run kernels on the CPU: which of them g++ shall build in time."""

from __future__ import annotations

import pytest
from workbench_kernels.build.source import CudaSource

from .emulator import PLAIN, build


def built(*sources: CudaSource) -> list[pytest.MarkDecorator]:
    """Return the marks of a test that runs kernels of ``sources``."""
    return [pytest.mark.ahead(build, source.text, source.entries, PLAIN) for source in sources]
