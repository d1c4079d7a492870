"""Settings that outlast the window: recent files, layout, colours, columns, device, cluster."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings

from workbench.engine.executors import require_address
from workbench.errors import BackendUnavailableError
from workbench.models.placement import AUTO, DTYPES, Placement

LAYOUT_VERSION = 3
MAX_RECENT = 10

HEAT_COLOURS = ("viridis", "cividis", "CET-L1")
"""Colour maps whose lightness grows evenly: all can be told apart by colour-blind people, the last one is grey."""


def _store() -> QSettings:
    return QSettings(QSettings.Format.IniFormat, QSettings.Scope.UserScope, "quantization-workbench", "workbench")


@dataclass(frozen=True, slots=True)
class Choice:
    """A text that outlasts the window; ``among`` those, where there are any, ``usual`` at first."""

    key: str
    usual: str = ""
    among: tuple[str, ...] = ()

    def __call__(self) -> str:
        """Return what was chosen last."""
        value = str(_store().value(self.key, self.usual))
        return value if not self.among or value in self.among else self.usual

    def save(self, value: str) -> None:
        """Choose."""
        _store().setValue(self.key, value)


role = Choice("role")  # the name of what the user came for
language = Choice("language")  # of the window, such as "de"; empty for the system's
heat_colours = Choice("heatmap/colours", HEAT_COLOURS[0], HEAT_COLOURS)
decimal_mark = Choice("numbers/decimal", ".", (".", ","))
theme = Choice("theme", "system", ("system", "light", "dark"))


def recent() -> list[str]:
    """Return the recently opened paths that still exist, newest first."""
    value = _store().value("recent", [])
    paths = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [str(path) for path in paths if os.path.exists(str(path))]


def remember(path: str | Path) -> None:
    """Put ``path`` at the head of the recent files."""
    text = str(Path(path).absolute())
    others = [other for other in recent() if other != text]
    _store().setValue("recent", [text, *others][:MAX_RECENT])


def last_folder() -> str:
    """Return the folder that holds what was opened last; empty at first."""
    return next((str(Path(path).parent) for path in recent()), "")


def forget_recent() -> None:
    """Clear the recent files."""
    _store().remove("recent")


def recent_commands() -> list[str]:
    """Return the titles of what was done by name last, newest first."""
    value = _store().value("palette/recent", [])
    return [value] if isinstance(value, str) else list(map(str, value)) if isinstance(value, list) else []


def remember_command(title: str) -> None:
    """Put what was done by name at the head of the list."""
    others = [other for other in recent_commands() if other != title]
    _store().setValue("palette/recent", [title, *others][:MAX_RECENT])


def placement() -> Placement:
    """Return where models run."""
    store = _store()
    dtype = str(store.value("device/dtype", AUTO))
    memory = str(store.value("device/memory", ""))
    return Placement(
        str(store.value("device/name", AUTO)), dtype if dtype in DTYPES else AUTO,
        int(memory) if memory.isdigit() and int(memory) else None,
    )  # fmt: skip


def set_placement(value: Placement) -> None:
    """Save where models run."""
    store = _store()
    store.setValue("device/name", value.device)
    store.setValue("device/dtype", value.dtype)
    store.setValue("device/memory", "" if value.memory is None else str(value.memory))


def cluster() -> str:
    """Return the address of the cluster that steps use; empty for none, and where what is stored is not an address."""
    address = str(_store().value("device/cluster", ""))
    with suppress(BackendUnavailableError):
        require_address(address)
        return address
    return ""


def set_cluster(address: str) -> None:
    """Save the address of a cluster; empty for none."""
    _store().setValue("device/cluster", address)


def layout() -> tuple[QByteArray, QByteArray] | None:
    """Return the saved window geometry and dock layout; None if there is none of this version."""
    store = _store()
    if int(str(store.value("layout/version", 0))) != LAYOUT_VERSION:
        return None
    geometry, docks = store.value("layout/geometry"), store.value("layout/docks")
    return (geometry, docks) if isinstance(geometry, QByteArray) and isinstance(docks, QByteArray) else None


def save_layout(geometry: QByteArray, docks: QByteArray) -> None:
    """Save the window geometry and dock layout."""
    store = _store()
    store.setValue("layout/version", LAYOUT_VERSION)
    store.setValue("layout/geometry", geometry)
    store.setValue("layout/docks", docks)


def hidden_columns() -> tuple[str, ...] | None:
    """Return the titles of the layer columns that the user hides; None before the first choice."""
    value = _store().value("layers/hidden", None)
    if value is None:
        return None
    return (value,) if isinstance(value, str) else tuple(map(str, value)) if isinstance(value, list) else ()


def hide_columns(titles: list[str]) -> None:
    """Save the choice of columns."""
    _store().setValue("layers/hidden", [*titles, ""])


def tour_ended() -> bool:
    """Return whether the tour was shown or skipped before."""
    return bool(_store().contains("tour/ended"))


def end_tour() -> None:
    """Do not start the tour by itself again."""
    _store().setValue("tour/ended", True)
