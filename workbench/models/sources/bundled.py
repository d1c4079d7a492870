"""The models that came with the workbench, and where they lie; loads no source of models."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from workbench.errors import NotAModelError, nearest

BUNDLED = ("language-model", "digits-classifier")


def bundled_folder(name: str) -> Path:
    """Return the folder of the bundled model or data set ``name``; raises NotAModelError for an unknown one."""
    folder = Path(str(files("workbench_resources"))) / "demo" / name
    if name not in BUNDLED or not folder.is_dir():
        raise NotAModelError(f"there is no bundled {name!r}{nearest(name, BUNDLED)}; bundled are {', '.join(BUNDLED)}")
    return folder
