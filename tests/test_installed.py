"""Optional packages that are too old are named, with the version that is needed and the line that installs it."""

from __future__ import annotations

import importlib.metadata
import importlib.util

import pytest

from workbench.deployment.checkpoints import compressed_tensors
from workbench.deployment.checkpoints.torchao import TorchaoMethod
from workbench.deployment.onnx.capture import require_onnx
from workbench.deployment.proof.child import PACKAGES, missing_package
from workbench.errors import BackendUnavailableError
from workbench.installed import too_old
from workbench.models.gguf import tensors

NEEDS = {
    "gguf": (tensors.library, "gguf"),
    "onnx": (require_onnx, "onnx"),
    "onnxscript": (require_onnx, "onnx"),
    "torchao": (TorchaoMethod().require, "torchao"),
    "compressed-tensors": (compressed_tensors.library, "compressed-tensors"),
}


@pytest.mark.parametrize("package", NEEDS)
def test_a_package_that_is_too_old_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.9.dev1+cpu" if name == package else real(name))
    need, extra = NEEDS[package]
    with pytest.raises(BackendUnavailableError) as refused:
        need()
    assert f"the package {package} is of version 0.0.9.dev1+cpu, and at least " in str(refused.value)
    assert f"pip install --upgrade 'quantization-workbench[{extra}]'" in str(refused.value)


def test_those_that_are_here_are_new_enough() -> None:
    assert [name for name in (*NEEDS, "xllamacpp", "onnxruntime", "not-there") if too_old(name)] == []


@pytest.mark.parametrize("runtime", PACKAGES)
def test_each_package_of_a_runtime_is_named_where_it_is_missing(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """mlx-lm alone, without the package mlx, was told by the words of Python."""
    packages, extra, title = PACKAGES[runtime]
    for package in packages:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=package: None if name == package else 1)
        expected = f"the proof in {title} needs its package {package}; install it: pip install "
        assert missing_package(runtime) == f"{expected}'quantization-workbench[{extra}]'"


@pytest.mark.parametrize("runtime", PACKAGES)
def test_a_runtime_that_is_too_old_is_no_proof(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (package, *_), extra, _ = PACKAGES[runtime]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.1")
    assert missing_package(runtime).startswith(f"the package {package.replace('_', '-')} is of version 0.0.1")
    assert f"[{extra}]'" in missing_package(runtime)
