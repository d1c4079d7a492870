"""Opening a Hugging Face folder imports nothing that it does not need and writes nothing to standard error."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from workbench.models.sources import open_model
open_model("demo:language-model")
assert "transformers" in sys.modules
assert "torchao" not in sys.modules
"""


def test_a_model_is_opened_without_torchao_and_without_a_word() -> None:
    completed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, "")
