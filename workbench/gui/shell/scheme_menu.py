"""The menu of schemes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtWidgets import QMenu

from workbench.gui.shell.foreign import isolated
from workbench.gui.shell.words import tr
from workbench.insight.quantities import fixed
from workbench.insight.schemes import families, reference_bits
from workbench.planning.plan import KEEP


def fill_menu(
    menu: QMenu, chosen: Callable[[str], object], current: str | None = None, allowed: Iterable[str] | None = None,
    facts: Callable[[str], str] = lambda scheme: f"{fixed(reference_bits(scheme), 2)} bits",
) -> None:  # fmt: skip
    """Add ``keep`` and a submenu for each family; ``chosen`` is called with the scheme's name.

    With ``allowed`` every other scheme is greyed.  ``facts(scheme)`` stands beside a scheme, once its submenu opens.
    """
    legal = None if allowed is None else set(allowed)
    keep = menu.addAction(tr("&Keep in Floating Point"), lambda: chosen(KEEP))
    keep.setCheckable(True)
    keep.setChecked(current == KEEP)
    keep.setEnabled(legal is None or KEEP in legal)
    for title, names in families():
        submenu = menu.addMenu(f"&{tr(title)}")
        for name in names:
            action = submenu.addAction(name, partial(chosen, name))
            action.setCheckable(True)
            action.setChecked(name == current)
            action.setEnabled(legal is None or name in legal)
        submenu.aboutToShow.connect(partial(_show_facts, submenu, facts))


def _show_facts(menu: QMenu, facts: Callable[[str], str]) -> None:
    for action in menu.actions():
        name = action.text().partition("\t")[0]
        action.setText(f"{name}\t{isolated(tr(facts(name)))}")
