"""Whether transformers loads a folder of packed weights and runs it: tried with its own loader, without any numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from workbench.errors import first_line
from workbench.readable import few

if TYPE_CHECKING:
    from workbench.models.model import Model

OTHERS = "export to huggingface"
MANY = 2_000
"""More tensors take minutes: transformers looks through all of torchao's for each of them."""

UNPACK = (
    "call model.hf_quantizer.compressor.decompress_model(model) and compressed_tensors.offload.remove_dispatch(model)"
)
PACKED_ERROR = "has no attribute 'weight'"
PACKED = "it reads weights of layers that are packed; with one scheme for all layers and none for inputs, it does load"


def loads_in_transformers(folder: Path, model: Model, *, runs: bool = False) -> list[str]:
    """Return a sentence for what keeps transformers from loading ``folder``, which holds ``model`` quantized.

    ``runs``: and from running it.  Nothing is said of networks that are not of transformers.  The last two answers are
    remembered: the folder is asked about while it is written and again in its place.
    """
    files = sorted(folder.glob("*.safetensors"))
    stamps = [(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) for status in map(os.stat, files)]
    about = repr((stamps, (folder / "config.json").read_bytes(), runs))
    if about not in _answers:
        answer = _tried(folder, model, runs)
        while len(_answers) > 1:
            del _answers[next(iter(_answers))]
        _answers[about] = answer
    return list(_answers[about])


_answers: dict[str, list[str]] = {}


def _tried(folder: Path, model: Model, runs: bool) -> list[str]:
    import torch

    from workbench.models.sources.huggingface import class_and_settings, read_config
    from workbench.models.sources.lean_transformers import transformers

    network = getattr(getattr(model, "body", None), "network", None)
    if not isinstance(network, transformers.PreTrainedModel):
        return []
    config = read_config(folder, quantized=True)
    if "quantization_config" not in config:
        return []
    if runs and len(network.state_dict()) > MANY:
        return []
    with _without_numbers():
        kind, settings = class_and_settings(transformers, folder, config)
        settings._attn_implementation = settings._experts_implementation = None
        with torch.device("meta"):
            plain = kind(settings).eval()
        settings.quantization_config = _shortened(config["quantization_config"])
        said = _loaded(kind, settings, folder)
        if not isinstance(said, str):
            new = sorted(_failures(model, said) - _failures(model, plain)) if runs else []
            said = f"loads this folder and does not run it ({new[0]}): keep such layers, or {OTHERS}" if new else ""
    return [f"transformers {transformers.__version__} {said}"] if said else []


def _loaded(kind: Any, settings: Any, folder: Path) -> Any:
    """Return the network on the meta device, or what keeps it from being loaded as it was exported."""
    unpacks = settings.quantization_config.get("dequantize", False)  # whose sizes come from numbers that are not there
    try:
        network, report = kind.from_pretrained(
            str(folder), config=settings, device_map={"": "meta"}, output_loading_info=True, local_files_only=True,
            attn_implementation=None, experts_implementation=None, ignore_mismatched_sizes=unpacks,
        )  # fmt: skip
    except Exception as error:  # transformers raises nearly everything for a folder that it does not understand
        text = first_line(error)
        return f"does not load this folder ({PACKED if PACKED_ERROR in text else text[:160]}): {OTHERS}"
    if missing := sorted(report["missing_keys"]):
        return f"does not find {few(missing)} in this folder and makes them up: {OTHERS}"
    if getattr(network, "ct_decompress_hook", None) and network.config.is_encoder_decoder and network.can_generate():
        return f"unpacks when the whole network is called; before generate(), which calls the encoder alone, {UNPACK}"
    return network


def _shortened(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what config.json says of the quantization with one of torchao's layers: the list is copied for every
    tensor, and what is packed needs none."""
    quantization = settings.get("quant_type", {}).get("default", {})
    if quantization.get("_type") != "FqnToConfig":
        return settings
    first = {kind: dict(list(layers.items())[:1]) for kind, layers in quantization["_data"].items()}
    return {**settings, "quant_type": {"default": {**quantization, "_data": first}}}


def _failures(model: Model, network: Any) -> set[str]:
    """Return why parts of a network on the meta device do not run, and where: all of it, a layer of each class.

    Packed layers are apart from those of their class that stayed as they were.
    """
    import torch

    layers = {(type(x), type(x.weight)): x for x in network.modules() if isinstance(x, torch.nn.Linear)}
    batch, calls = model.sample(1), list[Callable[[], object]]()
    for layer in layers.values():
        calls.append(partial(layer, torch.empty(1, layer.in_features, device="meta", dtype=layer.weight.dtype)))
    if batch is not None:
        numberless = {name: value.to("meta") for name, value in batch.items()}
        calls.append(partial(model.body.call, network, numberless))  # type: ignore[attr-defined]
    names, failures = {id(each): name for name, each in network.named_modules()}, set()
    for call in calls:
        try:
            with torch.no_grad():
                call()
        except Exception as error:  # whatever a network of others raises
            trace, place = error.__traceback__, ""
            while trace is not None:
                place = names.get(id(trace.tb_frame.f_locals.get("self")), "") or place
                trace = trace.tb_next
            failures.add(f"{place}: {first_line(error)[:120]}")
    return failures


@contextmanager
def _without_numbers() -> Iterator[None]:
    """Let transformers take the meta device, silently, and without accelerate, which only several devices need."""
    from transformers.integrations import accelerate

    from workbench.models.sources.lean_transformers import quiet

    logger: Any = None
    with suppress(ImportError):  # it comes with compressed-tensors
        from loguru import logger
    if logger is not None:
        logger.disable("compressed_tensors")  # which warns of sizes that it does not see on the meta device
    try:
        found = patch.object(accelerate, "is_accelerate_available", lambda *versions: True)
        with quiet(), redirect_stderr(StringIO()), found:  # the library draws its progress there
            yield
    finally:
        if logger is not None:
            logger.enable("compressed_tensors")
