"""The package transformers without torchao, which it would import with every model where that happens to be installed.

torchao takes seconds to import and writes to standard error; only checkpoints that torchao quantized need it, and those
are refused.  transformers asks once whether it is there, so the question is put while it is out of sight.
"""

from __future__ import annotations

import sys

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

__all__ = ["transformers"]
