"""Every kernel compiles for what it claims, within its budget of registers, without spills, on tensor cores."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from workbench_kernels.build import nvrtc
from workbench_kernels.build.source import CudaSource, compile_text, resources
from workbench_kernels.catalog import SOURCES

from . import ahead

pytestmark = pytest.mark.skipif(nvrtc.reason() is not None, reason=str(nvrtc.reason()))

BUDGET = json.loads((Path(__file__).parent / "budget.json").read_text(encoding="utf-8"))
SAMPLE = {
    "statistics.cu": "sm_75", "integer_groups.cu": "sm_90", "float8_groups.cu": "sm_89", "gguf_blocks.cu": "sm_120",
    "k_quants.cu": "sm_90",
    "w4a16.cu": "sm_80", "gemm_int8.cu": "sm_86", "gemm_fp8.cu": "sm_120", "gemm_fp8_wgmma.cu": "sm_90a",
    "decode_attention.cu": "sm_100", "fp4_blocks.cu": "sm_86", "norm_quantize.cu": "sm_80", "gate_quantize.cu": "sm_90",
    "cache_append.cu": "sm_89",
    "gemv_int8.cu": "sm_86", "gemv_fp8.cu": "sm_89", "gemm_int8_wgmma.cu": "sm_90a",
}  # fmt: skip
"""The one architecture for each source in the main run; together all of them."""
MOST_SHARED = 227 * 1024

TENSOR_CORE = {  # source -> what its product kernels must contain, by architecture
    "w4a16.cu": {None: "HMMA"},
    "gemm_int8.cu": {None: "IMMA"},
    "gemm_fp8.cu": {"sm_89": "QMMA", "sm_120": "QMMA", "sm_90": "HMMA", "sm_100": "HMMA"},
    "gemm_fp8_wgmma.cu": {None: "QGMMA"},
    "gemm_int8_wgmma.cu": {None: "IGMMA"},
}


def compiled(item: CudaSource, architecture: str) -> nvrtc.Compiled:
    return compile_text(item.text, item.file, architecture)


def pairs(work: Callable[[CudaSource, str], object]) -> list[object]:
    """Every source and architecture, with the work that its test waits for."""
    return [
        pytest.param(
            item, architecture, id=f"{item.file}-{architecture}",
            marks=[pytest.mark.ahead(work, item, architecture)]
            + ([] if SAMPLE[item.file] == architecture else [pytest.mark.slow]),
        )
        for item in SOURCES for architecture in item.architectures
    ]  # fmt: skip


def test_the_samples_cover_every_source_and_architecture():
    assert set(SAMPLE) == {item.file for item in SOURCES}
    assert set(SAMPLE.values()) == {architecture for item in SOURCES for architecture in item.architectures}


@pytest.mark.parametrize(("item", "architecture"), pairs(compiled))
def test_it_compiles_within_its_budget(item, architecture):
    result = resources(ahead.result(compiled, item, architecture).log)
    assert set(result) == set(item.entries) == set(BUDGET[item.file])
    same_compiler = tuple(BUDGET["nvrtc"]) == nvrtc.version()
    for entry, used in result.items():
        registers, local, shared = BUDGET[item.file][entry][architecture]
        assert used.stack + used.spills <= local, f"{entry} spills to local memory"
        assert used.shared <= shared <= MOST_SHARED, entry
        if same_compiler:
            assert used.registers <= registers, f"{entry} takes more registers than its budget"


def test_no_budget_allows_local_memory():
    rows = [
        (file, entry, architecture)
        for file, entries in BUDGET.items() if file != "nvrtc"
        for entry, row in entries.items() for architecture, (_, local, _) in row.items() if local
    ]  # fmt: skip
    assert not rows


def disassembler() -> Path | None:
    for folder in nvrtc.toolkit_folders():
        if (folder / "bin" / "nvdisasm").is_file():
            return folder / "bin" / "nvdisasm"
    return None


def instructions(item: CudaSource, architecture: str) -> dict[str, str]:
    """Return the disassembly of every kernel."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        cubin.write(ahead.result(compiled, item, architecture).image)
        cubin.flush()
        done = subprocess.run([str(disassembler()), "-c", cubin.name], capture_output=True, text=True, check=True)
    parts = re.split(r"^\s*\.section\s+\.text\.(\w+),.*$|^//-+ \.text\.(\w+) -+.*$", done.stdout, flags=re.MULTILINE)
    result: dict[str, str] = {}
    for first, second, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        result[first or second] = result.get(first or second, "") + body
    return result


@pytest.mark.skipif(disassembler() is None, reason="nvdisasm is not installed: pip install nvidia-cuda-nvdisasm")
@pytest.mark.parametrize(("item", "architecture"), pairs(instructions))
def test_the_machine_code_uses_tensor_cores_and_no_local_memory(item, architecture):
    result = ahead.result(instructions, item, architecture)
    assert set(result) == set(item.entries)
    expected = TENSOR_CORE.get(item.file, {})
    mnemonic = expected.get(architecture, expected.get(None))
    for entry, text in result.items():
        assert re.search(r"\bEXIT\b", text), entry
        assert not re.search(r"\b(LDL|STL)\b", text), f"{entry} uses local memory"
        if mnemonic and entry not in ("w4a16_sum", "w4a16_dequantize", "w4a16_dequantize_zeros"):
            assert re.search(rf"\b{mnemonic}\b", text), f"{entry} has no {mnemonic}"
