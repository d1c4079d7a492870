"""Open a model and read its weights."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from workbench.memory import limited_to, parse_size
from workbench.models.model import Model
from workbench.models.placement import Placement
from workbench.models.sources import open_model
from workbench.session.session import Session
from workbench.steps.files.first_session import first_look, start
from workbench.steps.options import OptionInfo, option
from workbench.steps.step import Context, Step, short

CONFIG = "config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenModelOptions:
    """Which model, and how a Python file builds it."""

    path: str = field(metadata=OptionInfo(
        label="Model", path="data", metavar="MODEL", positional=True,
        help="a Hugging Face folder, a torch.export .pt2 file, a .safetensors file or folder, a .gguf file, "
        "an .onnx file, or a Python file",
    ).metadata)  # fmt: skip
    factory: str | None = option(None, OptionInfo(
        label="Function", empty="build", metavar="NAME", help="the function of a Python file that builds the model"
    ))  # fmt: skip
    weights: str | None = option(None, OptionInfo(
        label="Weights", path="file", metavar="FILE", empty="what the Python file loads",
        help="the state dict for a Python file (.safetensors, .pt, .pth)",
    ))  # fmt: skip


WEIGHTS = re.compile(r"model(-\d+-of-\d+)?\.safetensors(\.index\.json)?")
"""The names of the weights in a Hugging Face folder, and of their index."""


def folder_of_weights(path: str) -> str | None:
    """Return the Hugging Face folder whose weights the file at ``path`` holds or lists; None for any other file."""
    file = Path(path)
    belongs = WEIGHTS.fullmatch(file.name) and file.is_file() and (file.parent / CONFIG).is_file()
    return str(file.parent) if belongs else None


def whole(path: str) -> str:
    """Return the folder that a ``config.json`` describes, ``path`` itself where it is anything else."""
    file = Path(path)
    return str(file.parent) if file.name == CONFIG and file.is_file() else path


def open(
    path: str | Path, *, factory: str | None = None, weights: str | Path | None = None, trust: bool = False,
    device: str = "auto", dtype: str = "auto", memory: str | int | None = None,
) -> Model:  # fmt: skip
    """Open the model at ``path``: a folder, a file, or a bundled one (``demo:language-model``).

    ``factory`` and ``weights`` serve Python files, which run only with ``trust``.  ``device`` is ``auto`` (the first
    CUDA device, else the CPU) or a name that torch knows, ``dtype`` is ``float32``, ``stored`` (that of most weights in
    the file) or ``auto``: float32 on the CPU, ``stored`` elsewhere.  Whatever is done with the model is done there.
    ``memory`` (``"2GB"`` or bytes; default: what is free) is what loading it may take: a model that is larger stays in
    its file, mapped; for what is done with it then, see :func:`workbench.memory_limit`.
    Raises NotAModelError, UnsafeModelError, TrustRequiredError, ModelTooLargeError, BackendUnavailableError for a
    device that is not there.
    """
    place = Placement(device, dtype)
    with limited_to(parse_size(memory) if isinstance(memory, str) else memory):
        return open_model(path, factory=factory, weights=weights, trust=trust, placement=place)


def _run(context: Context, options: OpenModelOptions) -> Session:
    """Open it; the partial result, where there is one, is a first look."""
    context.progress(0.0, "Reading the model")
    look = first_look(options.path)
    if look is not None:
        context.progress(0.1, "Loading the network", look)
    place = context.placement
    model = open(
        options.path, factory=options.factory, weights=options.weights, trust=context.trust, device=place.device,
        dtype=place.dtype,
    )  # fmt: skip
    context.models.put(model, place)
    return start(model, context.progress)


OPEN = Step(
    runs_model=True,
    name="open", title="Open a model", options=OpenModelOptions, run=_run, document=False,
    summary="Opens a model and reads its weights.",
    heading=lambda options, session: f"Open {short(options.path)}",
    python=lambda request: request.opening(**asdict(request.options)).rstrip(),
)  # fmt: skip
