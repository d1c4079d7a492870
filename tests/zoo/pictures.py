"""The zoo of torchvision and timm (``pictures.toml``), as users open them: a Python file with a factory.

Neither package is a dependency of the tests, as transformers takes other image processors where torchvision is
installed.  ``WORKBENCH_VISION`` names a folder that holds both (``pip install --no-deps --target FOLDER torchvision
timm``); without it, and where they are not installed, these tests are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tomllib
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.models.networks import Rows
from tests.zoo.architectures import BATCH_NORMS, spread

PICTURES = tomllib.loads((Path(__file__).parent / "pictures.toml").read_text(encoding="utf-8"))
NAMES = tuple(PICTURES["networks"])
FILE = "import functools\n\nimport timm\nimport torchvision.models as M\n\n\ndef build():\n    return {}\n"
OPERATORS = ("nms", "qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_KEPT: list[torch.library.Library] = []


def importable() -> bool:
    """Return whether torchvision and timm can be imported, from WORKBENCH_VISION where that is set.

    A torchvision that was built for another torch cannot load its operators, and then fails where it gives them shapes:
    they are declared first.  Its networks are plain torch.
    """
    folder = os.environ.get("WORKBENCH_VISION")
    if folder and folder not in sys.path:
        sys.path.append(folder)
    if not all(importlib.util.find_spec(name) for name in ("torchvision", "timm")):
        return False
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for name in OPERATORS:
            library.define(name + SCHEMA)
        _KEPT.append(library)
        importlib.import_module("torchvision")
    return True


def shape_of(name: str) -> tuple[int, ...]:
    """Return one sample's shape."""
    size = PICTURES["sizes"].get(name, 32)
    return tuple(size) if isinstance(size, list) else (3, size, size)


def samples(name: str, count: int) -> Rows:
    """Return random pictures."""
    generator = torch.Generator().manual_seed(0)
    return Rows(inputs=torch.randn(count, *shape_of(name), generator=generator))


def save(folder: Path, name: str) -> None:
    """Write a Python file that builds the network, and weights of a usual spread with statistics of random samples."""
    folder.mkdir()
    (folder / "network.py").write_text(FILE.format(PICTURES["networks"][name]), encoding="utf-8")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build(folder)
        spread(network)
        with torch.no_grad():
            for key, parameter in network.named_parameters():  # scales of branches that begin as nothing
                if not key.endswith("bias") and float(parameter.abs().max()) < 0.01:
                    parameter.fill_(0.5)
        norms = [module for module in network.modules() if isinstance(module, BATCH_NORMS)]
        for norm in norms:
            norm.train().momentum = None
            norm.reset_running_stats()
        with torch.no_grad():
            network(torch.randn(32, *shape_of(name)))
    save_file(
        {key: each.contiguous().clone() for key, each in network.state_dict().items()}, folder / "weights.safetensors"
    )


def build(folder: Path) -> Any:
    """Return the network as its library builds it."""
    scope: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec((folder / "network.py").read_text(encoding="utf-8"), scope)
        return scope["build"]().eval()


def loaded(folder: Path, out: Path) -> Any:
    """Return the network as its library builds it, with an exported state dict."""
    network = build(folder)
    state = OrderedDict(load_file(out))
    state._metadata = network.state_dict()._metadata  # type: ignore[attr-defined]  # MNASNet asks for its version
    network.load_state_dict(state)
    return lambda inputs: first(network(inputs))


def first(answer: Any) -> torch.Tensor:
    """Return the output of a segmentation network (``out``), of others the tensor, or the first one."""
    tensor: torch.Tensor = (
        answer["out"] if isinstance(answer, dict) else answer if isinstance(answer, torch.Tensor) else answer[0]
    )
    return tensor
