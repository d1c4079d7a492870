"""All model sources, and which of them a path belongs to."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from workbench.content_kind import content_kind
from workbench.errors import NotAModelError, UnsafeModelError
from workbench.models.readers import hub
from workbench.models.sources.bundled import bundled_folder
from workbench.models.sources.exported_program import ExportedProgramFile
from workbench.models.sources.gguf_file import GgufSource
from workbench.models.sources.huggingface import HuggingFaceFolder
from workbench.models.sources.onnx_file import OnnxSource
from workbench.models.sources.python_module import PythonModule
from workbench.models.sources.quantized_checkpoint import QuantizedCheckpoint
from workbench.models.sources.safetensors_file import SafetensorsFiles
from workbench.models.sources.source import Source, absolute
from workbench.models.sources.state_dict_file import StateDictFile
from workbench.plain_file import kind_of
from workbench.registry import Registry

SOURCES: tuple[Source, ...] = (
    QuantizedCheckpoint(),
    OnnxSource(),
    HuggingFaceFolder(),
    PythonModule(),
    ExportedProgramFile(),
    SafetensorsFiles(),
    GgufSource(),
    StateDictFile(),
)
"""The first that detects a path opens it.  Third parties publish theirs as a ``workbench.sources`` entry point."""

MOST_PLACES, NAMED = 256, 3
"""Folders in which a model is looked for where a folder is none itself, and how many of them are named."""

REGISTRY: Registry[Source] = Registry(
    SOURCES, "workbench.sources", kind="model source", error=NotAModelError, member_type=Source
)


def kinds() -> str:
    """Return what can be opened, for messages."""
    *others, last = (source.description for source in REGISTRY)
    return f"{', '.join(others)}, or {last}"


def resolve(path: str | Path) -> tuple[Path, bool]:
    """Return where ``path`` lies, from the root, and whether it came with the workbench (``demo:...``).

    A name of the Hugging Face Hub is a folder of its cache, if it was fetched before.
    """
    text = str(path)
    if text.startswith("demo:"):
        return bundled_folder(text.removeprefix("demo:")), True
    place = absolute(Path(path))
    if not place.exists() and (cached := hub.fetched(text)) is not None:
        return cached, False
    file, _, factory = str(place).rpartition(":")
    if not place.exists() and file.endswith(".py") and Path(file).is_file() and factory.isidentifier():
        apart = f"{Path(file).name} and {factory} (--factory)"
        raise NotAModelError(f"{place}: give the file and the function apart, {apart}")
    if not place.exists():
        on_hub = hub.NAME.fullmatch(text) is not None
        hint = f"; if {text} is a model of the Hugging Face Hub, fetch it first: hf download {text}" if on_hub else ""
        raise NotAModelError(f"{place} does not exist{hint}; expected {kinds()}")
    if (kind := kind_of(place)) is not None:
        raise NotAModelError(f"{place} is {kind}, not a regular file or a folder; copy what it gives into a file")
    return place, False


def detect(path: Path) -> Source:
    """Return the source that opens ``path``; raises NotAModelError, or UnsafeModelError for a pickled folder."""
    for source in REGISTRY:
        if source.detects(path):
            return source
    if path.is_dir() and any(path.glob("*.bin")):
        raise UnsafeModelError(
            f"{path} holds only pickled weights (.bin), and a pickle can run code when it is opened; convert them to "
            "safetensors (model.save_pretrained writes it) and open that"
        )
    if path.is_dir():
        if below := _models_below(path):
            raise NotAModelError(f"{path} is not a model itself; open one of the folders in it: {', '.join(below)}")
        raise NotAModelError(f"{path} is a folder with nothing that is a model; expected {kinds()}")
    kind = content_kind(path, path.name) or f"a file of unknown kind ({path.suffix or 'no suffix'})"
    raise NotAModelError(f"{path} is {kind}; expected {kinds()}")


def _models_below(folder: Path) -> list[str]:
    """Return folders of models in ``folder``, and in the layout of the Hugging Face cache, a few of the first ones."""
    try:
        layouts = ("*", "snapshots/*", "*/snapshots/*")
        places = [place for layout in layouts for place in sorted(islice(folder.glob(layout), MOST_PLACES))]
        models = (str(place) for place in places if place.is_dir() and any(each.detects(place) for each in REGISTRY))
        return list(islice(models, NAMED))
    except OSError:
        return []
