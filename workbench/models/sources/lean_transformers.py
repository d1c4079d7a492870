"""The package transformers without torchao, which it would import with every model where that happens to be installed.

torchao takes seconds to import and writes to standard error; only checkpoints that torchao quantized need it.  Where
transformers is asked for one, by whoever uses it in the same process, it still finds it.
"""

from __future__ import annotations

import importlib
import sys
import warnings
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

__all__ = ["quiet", "transformers"]


@contextmanager
def quiet() -> Iterator[None]:
    """Keep progress bars and warnings off the terminal meanwhile, and ask the Hub nothing; what matters is raised.

    Settings of a folder may name what transformers looks for there: ``local_files_only`` is about the folder alone, not
    about a backbone or a list of classes that it names.
    """
    from huggingface_hub import constants, utils

    logging: Any = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    renew = getattr(utils, "reset_sessions", lambda: None)  # before version 1, connections remember
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    renew()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        constants.HF_HUB_OFFLINE = before
        renew()
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
