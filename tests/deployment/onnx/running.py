"""ONNX files in ONNX Runtime as they are written, on every processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.deployment.proof.onnx_process import IN_FLOATING_POINT, saturates


def session_of(file: Path) -> Any:
    """Return a session; where sums of 8-bit products saturate, it multiplies in floating point, as the file says."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if saturates():
        options.add_session_config_entry(*IN_FLOATING_POINT)
    return onnxruntime.InferenceSession(str(file), options)
