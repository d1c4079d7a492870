"""The tutorial on INT4 attention projections, every line of its Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package)

PAGE = Path(__file__).parents[3] / "resources" / "guide" / "tutorials" / "int4-attention.md"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_tutorial_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnx

    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    names: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    kinds = [node.op_type for node in onnx.load("int4.onnx").graph.node]
    assert kinds.count("MatMulNBits") == len(names["projections"]) >= 8  # type: ignore[arg-type]
    assert names["int4"] != names["fp"]
