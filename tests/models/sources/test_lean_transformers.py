"""Opening a Hugging Face folder imports nothing that it does not need and writes nothing to standard error."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from workbench.models.sources import open_model
open_model("demo:language-model")
assert "transformers" in sys.modules
assert "torchao" not in sys.modules
"""

LOADED = """
import sys
import torch
import workbench as wb
model = wb.open("demo:language-model")
plan = wb.Plan().assign([layer.name for layer in model.summary.stored if layer.kind == "linear"], weights="int4-g32")
wb.apply(model, plan, "torchao", sys.argv[1])
import transformers
network = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1])
ids = torch.arange(3, 27)[None]
with torch.no_grad():
    theirs, ours = network(input_ids=ids).logits.float(), wb.quantize(model, plan).bind(model).run({"input_ids": ids})
assert torch.allclose(theirs, ours, atol=2e-2 * ours.abs().max())
network.hf_quantizer.get_state_dict_and_metadata(network)
"""


def test_a_model_is_opened_without_torchao_and_without_a_word() -> None:
    completed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="torchao is not installed")
def test_transformers_still_loads_checkpoints_of_torchao_in_the_same_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOADED, str(tmp_path / "m")]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr[-2000:]
