"""The window.  The only folder that imports PySide6, pyqtgraph and qasync."""
