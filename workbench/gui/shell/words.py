"""The window's words in the user's language: catalogues of Qt Linguist in ``resources/translations``.

Whatever shows a text translates it there (:mod:`workbench.gui.shell.widgets`, tables, forms, dialogs); names, and texts
that are put together, pass as they are.  Without a catalogue all is English.  Numbers stay as they are in every
language.  ``python -m workbench.gui.shell.words`` compiles the catalogues.
"""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

CONTEXT = "workbench"


def tr(text: str) -> str:
    """Return a text in the user's language."""
    return QCoreApplication.translate(CONTEXT, text) if text else text


def install(app: QCoreApplication, language: str = "") -> None:
    """Speak ``language`` (``de``), by default the system's, where there is a catalogue; Qt's own words as well."""
    name = language or QLocale.system().name()
    catalogue = QTranslator(app)
    if not catalogue.load(str(folder() / f"{name.partition('_')[0]}.qm")):
        return
    app.installTranslator(catalogue)
    words_of_qt = QTranslator(app)
    if words_of_qt.load(f"qtbase_{name}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(words_of_qt)


def folder() -> Path:
    """Return the folder of the catalogues."""
    return Path(str(files("workbench_resources"))) / "translations"


if __name__ == "__main__":
    for source in folder().glob("*.ts"):
        subprocess.run(["pyside6-lrelease", str(source), "-qm", str(source.with_suffix(".qm"))], check=True)
