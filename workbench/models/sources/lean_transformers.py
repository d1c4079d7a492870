"""The package transformers without torchao, which it would import with every model where that happens to be installed.

torchao takes seconds to import and writes to standard error; only checkpoints that torchao quantized need it, and those
are refused.  transformers asks once whether it is there, so the question is put while it is out of sight.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

UNSEEN = "torchao"

_hide = UNSEEN not in sys.modules
if _hide:
    sys.modules[UNSEEN] = None  # type: ignore[assignment]  # what Python's import system reads as "not installed"
try:
    import transformers
    from transformers.utils import import_utils

    import_utils.is_torchao_available()
finally:
    if _hide:
        del sys.modules[UNSEEN]

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
