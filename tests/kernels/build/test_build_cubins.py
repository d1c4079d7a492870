"""The packaging step: images for the wheel, found by the hash of their source."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from workbench_kernels.build import nvrtc, source
from workbench_kernels.gpu.quantize import gguf_blocks

ROOT = Path(__file__).parent.parent.parent.parent
pytestmark = pytest.mark.skipif(nvrtc.reason() is not None, reason=str(nvrtc.reason()))


@pytest.fixture
def packaging(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("build_cubins", ROOT / "packaging" / "build_cubins.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SOURCES", (gguf_blocks.SOURCE,))
    for where in (module, source):
        monkeypatch.setattr(where, "PREBUILT", tmp_path)
    return module


def test_images_are_written_found_and_replaced(packaging, tmp_path, capsys):
    old = tmp_path / "sm_75" / "gguf_blocks-0000.cubin"
    old.parent.mkdir()
    old.write_bytes(b"of an older source")
    packaging.build(["sm_75"])
    assert not old.exists() and "gguf_blocks.cu" in capsys.readouterr().out
    result = source.image(gguf_blocks.SOURCE, (7, 5))
    assert (result.origin, result.kind, result.architecture) == ("prebuilt", "cubin", "sm_75")
    assert result.data.startswith(b"\x7fELF") and b"dequantize_q6_k_bf16" in result.data
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["nvrtc"] == ".".join(map(str, nvrtc.version())) and len(manifest["images"]) == 1
