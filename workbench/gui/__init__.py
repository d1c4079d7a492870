"""The window.  The only folder that imports PySide6, pyqtgraph and qasync."""

import contextlib

import PySide6.QtCore  # noqa: F401

with contextlib.suppress(ImportError):
    from shibokensupport import feature  # type: ignore[import-not-found]

    # Shiboken reads the source of every imported module to see whether it may use PySide's optional features, which we
    # do not: 0.1 s of the start, and 12 MB that stay in linecache (PySide6 6.11, measured).
    feature._mod_uses_pyside = lambda module: False
