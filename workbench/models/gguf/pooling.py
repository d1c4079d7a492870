"""How a folder of sentence-transformers makes one embedding of a text, by llama.cpp's number for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError, naming_damage
from workbench.plain_file import read_json

MEAN, FIRST, LAST = 1, 2, 3
_MODES = {"mean": MEAN, "cls": FIRST, "lasttoken": LAST, "mean_tokens": MEAN, "cls_token": FIRST}


def pooling_of(folder: Path, error: type[WorkbenchError]) -> int:
    """Return llama.cpp's ``pooling_type``, the mean where the folder says nothing; ``error`` for one it has not."""
    file = folder / "modules.json"
    with naming_damage(file, error):
        modules = read_json(file) if file.is_file() else []
        places = [str(each["path"]) for each in modules if str(each["type"]).endswith("Pooling")]
    for place in places:
        settings = folder / place / "config.json"
        if not settings.resolve().is_relative_to(folder.resolve()) or not settings.is_file():
            continue
        with naming_damage(settings, error):
            modes = _modes(read_json(settings))
        if len(modes) != 1 or modes[0] not in _MODES:
            raise error(
                f"{settings} pools by {' and '.join(modes) or 'nothing'}; llama.cpp takes the mean, the first or the "
                "last token, so it cannot be written as GGUF"
            )
        return _MODES[modes[0]]
    return MEAN


def _modes(settings: dict[str, Any]) -> list[str]:
    """Return the names of what is pooled: one member says it, or each has a switch of its own."""
    if stated := settings.get("pooling_mode"):
        return [stated] if isinstance(stated, str) else list(map(str, stated))
    head = "pooling_mode_"
    return [name.removeprefix(head) for name, on in settings.items() if name.startswith(head) and on is True]
