"""From a .cu file to an image: expanded text, keys, caches, messages with file and line, the image for a device."""

from __future__ import annotations

from dataclasses import replace

import pytest
from workbench_kernels.build import nvrtc, source
from workbench_kernels.build.source import CudaSource, Image, capability, expand, image, resources, source_key
from workbench_kernels.catalog import SOURCES
from workbench_kernels.errors import BackendUnavailable, CompileError

needs_nvrtc = pytest.mark.skipif(nvrtc.reason() is not None, reason=str(nvrtc.reason()))
ELF = b"\x7fELF" + b"0" * 12
KERNEL = 'extern "C" __global__ void copy(float* y, const float* x) { y[threadIdx.x] = TWICE(x[threadIdx.x]); }\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A kernel with a header file, a cache and no prebuilt images, all in a fresh folder."""
    monkeypatch.setattr(source, "FOLDER", tmp_path)
    monkeypatch.setattr(source, "PREBUILT", tmp_path / "cubins")
    monkeypatch.setenv("WORKBENCH_KERNEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "twice.cuh").write_text("#pragma once\n#define TWICE(x) (2 * (x))\n")
    (tmp_path / "copy.cu").write_text('#include "twice.cuh"\n#include "twice.cuh"\n' + KERNEL)
    return tmp_path


COPY = CudaSource(file="copy.cu", entries=("copy",), architectures=("sm_80", "sm_86", "sm_90"))


def test_header_files_are_expanded_once_and_lines_keep_their_numbers(folder):
    text = expand(folder / "copy.cu")
    assert text.count("#define TWICE") == 1 and "#include" not in text and "#pragma once" not in text
    lines = text.splitlines()
    at = lines.index(KERNEL.rstrip())
    assert lines[at - 1] == '#line 3 "copy.cu"'


def test_a_missing_header_file_is_named_with_its_line(folder):
    (folder / "copy.cu").write_text('\n#include "nowhere.cuh"\n')
    with pytest.raises(FileNotFoundError, match=r"copy\.cu, line 2, includes nowhere\.cuh"):
        expand(folder / "copy.cu")


def test_a_changed_header_file_changes_the_key(folder):
    before = source_key(COPY.text, "sm_80")
    assert before == source_key(COPY.text, "sm_80") != source_key(COPY.text, "sm_90")
    (folder / "twice.cuh").write_text("#define TWICE(x) ((x) + (x))\n")
    assert source_key(COPY.text, "sm_80") != before


@needs_nvrtc
def test_an_image_is_compiled_once_and_again_when_a_header_file_changes(folder):
    assert source.cubin(COPY, "sm_80").origin == "compiled"
    binary = source.cubin(COPY, "sm_80")
    assert binary.origin == "cache" and binary.data.startswith(b"\x7fELF") and b"copy" in binary.data
    (folder / "twice.cuh").write_text("#define TWICE(x) (3 * (x))\n")
    changed = source.cubin(COPY, "sm_80")
    assert changed.origin == "compiled" and changed.data != binary.data


@needs_nvrtc
def test_a_damaged_cache_is_made_again(folder):
    source.cubin(COPY, "sm_80")
    (entry,) = (folder / "cache" / "sm_80").iterdir()
    entry.write_bytes(b"")
    assert source.cubin(COPY, "sm_80").origin == "compiled"
    assert entry.read_bytes().startswith(b"\x7fELF")


@needs_nvrtc
def test_an_unwritable_cache_costs_time_only(folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("WORKBENCH_KERNEL_CACHE", str(folder / "file" / "cache"))
    assert source.cubin(COPY, "sm_80").origin == source.cubin(COPY, "sm_80").origin == "compiled"


@needs_nvrtc
def test_a_compiler_message_names_file_and_line(folder):
    (folder / "twice.cuh").write_text("// one\n// two\n__device__ int wrong = undeclared;\n#define TWICE(x) (x)\n")
    with pytest.raises(CompileError, match=r"twice\.cuh\(3\): error: identifier \"undeclared\""):
        source.cubin(COPY, "sm_80")
    (folder / "twice.cuh").write_text("#define TWICE(x) nothing(x)\n")
    with pytest.raises(CompileError, match=r"copy\.cu\(3\): error"):
        source.cubin(COPY, "sm_80")


@needs_nvrtc
def test_denormals_are_kept(folder):
    text = nvrtc.compile_program(COPY.text, "copy.cu", ("--gpu-architecture=compute_80", *source.OPTIONS), ptx=True)
    assert b"mul.ftz" not in text.image and b".ftz" not in text.image


def test_a_prebuilt_image_comes_first_and_only_for_its_very_source(folder):
    place = folder / "cubins" / "sm_90"
    place.mkdir(parents=True)
    (place / f"copy-{source_key(COPY.text, 'sm_90')}.cubin").write_bytes(ELF)
    assert source.cubin(COPY, "sm_90") == Image(data=ELF, kind="cubin", origin="prebuilt", architecture="sm_90")
    (folder / "twice.cuh").write_text("#define TWICE(x) (x)\n")
    assert source.prebuilt(COPY, "sm_90") is None


def test_a_device_that_is_too_old_is_refused_with_the_reason(folder):
    with pytest.raises(BackendUnavailable, match=r"copy\.cu needs compute capability 8\.0 or newer, .* 7\.5"):
        image(COPY, (7, 5))


def test_instructions_of_one_architecture_are_refused_elsewhere(folder):
    only = replace(COPY, architectures=("sm_90a",))
    with pytest.raises(BackendUnavailable, match="runs on sm_90a only, the device is sm_120"):
        image(only, (12, 0))


@needs_nvrtc
@pytest.mark.parametrize(
    ("device", "kind", "architecture"),
    [((8, 6), "cubin", "sm_86"), ((8, 7), "cubin", "sm_86"), ((8, 9), "cubin", "sm_86"), ((9, 0), "cubin", "sm_90"),
     ((12, 0), "ptx", "sm_120"), ((99, 0), "ptx", "sm_121")],
)  # fmt: skip
def test_a_device_gets_its_own_image_or_an_older_one_of_its_generation_or_ptx(folder, device, kind, architecture):
    result = image(COPY, device)
    assert (result.kind, result.architecture) == (kind, architecture)


def test_without_a_compiler_and_without_an_image_the_reason_says_what_to_install(folder, monkeypatch):
    monkeypatch.setattr(nvrtc, "toolkit_folders", lambda: iter(()))
    monkeypatch.setattr(nvrtc.ctypes.util, "find_library", lambda name: None)
    nvrtc.library.cache_clear()
    try:
        with pytest.raises(BackendUnavailable, match="NVRTC.* is not installed; pip install"):
            image(COPY, (9, 0))
    finally:
        nvrtc.library.cache_clear()


def test_the_assembler_report_is_read():
    log = """ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 2080 bytes smem
ptxas info    : Compiling entry function 'second' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers"""
    result = resources(log)
    assert result["first"] == source.Resources(registers=40, stack=8, spills=16, shared=2080)
    assert result["second"] == source.Resources(registers=12, stack=0, spills=0, shared=0)


@pytest.mark.parametrize("item", SOURCES, ids=lambda item: item.file)
def test_every_source_is_there_with_its_header_files(item):
    assert item.text.count("#pragma once") == 0
    assert len(set(item.entries)) == len(item.entries)
    assert item.minimum() == min(map(capability, item.architectures))
