"""The package transformers without torchao, which it would import with every model where that happens to be installed.

torchao takes seconds to import and writes to standard error; only checkpoints that torchao quantized need it.  Where
transformers is asked for one, by whoever uses it in the same process, it still finds it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import transformers

_utils: Any = importlib.import_module("transformers.utils")
_is_there = _utils.is_torchao_available


def _asked(*versions: str) -> bool:
    """Return whether torchao is there; no, where its quantizer is imported, which every model does."""
    caller = sys._getframe(1)
    if caller.f_code.co_name != "<module>" or not caller.f_globals["__name__"].startswith("transformers.quantizers."):
        return bool(_is_there(*versions))
    caller.f_globals["flatten_tensor_state_dict"] = _flatten  # all that it would import
    return False


def _flatten(*given: Any) -> Any:
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict

    return flatten_tensor_state_dict(*given)


_utils.is_torchao_available = _asked

__all__ = ["offline", "transformers"]


@contextmanager
def offline() -> Iterator[None]:
    """Let nothing be asked of the Hub meanwhile: settings of a folder may name what transformers looks for there.

    ``local_files_only`` is about the folder alone, not about a backbone or a list of classes that it names.
    """
    from huggingface_hub import constants, utils

    renew = getattr(utils, "reset_sessions", lambda: None)  # before version 1, connections remember
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    renew()
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        renew()
