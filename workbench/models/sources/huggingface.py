"""A Hugging Face folder: config.json, safetensors, a tokenizer.  Local files only, never remote code."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from workbench.errors import BackendUnavailableError, NotAModelError, UnsafeModelError, first_line
from workbench.memory import limit
from workbench.models.checkpoints.beside import require_whole, with_settings
from workbench.models.checkpoints.names import loaded_names
from workbench.models.contents import Contents
from workbench.models.data.inputs import InputSpec, arguments_of
from workbench.models.dtypes import FLOATING
from workbench.models.execution.widened import widened, without_room
from workbench.models.model import Model
from workbench.models.readers.pooling import Pooling, evaluated_pooling, pooling_of
from workbench.models.readers.timm_config import is_timm, timm_pictures, wrapped
from workbench.models.readers.tokenizer import holds_tokenizer
from workbench.models.sources.heads.inputs import (
    answers_apart,
    arrangement,
    main_inputs,
    required_inputs,
    sample_of,
    tensors_taken,
    with_answers,
)
from workbench.models.sources.heads.outputs import CHOOSES, call_of, head_of, network_head, output_kind, text_config
from workbench.models.sources.layers import find_layers, stored_dtypes
from workbench.models.sources.network_sizes import LEAST, require_possible
from workbench.models.sources.safetensors_file import weight_files
from workbench.models.sources.source import Opening, network_model
from workbench.models.sources.stored import TensorStore, contents_of, fits, memory_to_run, tensors_in_files
from workbench.models.summary import ModelSource, OutputKind
from workbench.plain_file import read_json, require_files
from workbench.readable import few

TIMM_NAMES, TIMM_PLACE = ("architecture", "backbone"), re.compile(r"[\w-]*:")
"""What names a network of timm, and where to look for it instead (``hf-hub:``, ``local-dir:``)."""

TIMM_OPTIONS = ("model_args", "backbone_kwargs")
TIMM_FILES = {"checkpoint_path", "pretrained", "pretrained_cfg", "pretrained_cfg_overlay", "cache_dir"}
"""Arguments of timm's ``create_model`` that name files."""

LARGEST_PICTURE = 1 << 24
"""Pixels of the largest picture that a network is tried with."""

TIED = 2
"""A network has at most so many weights for each one that is stored: an embedding and a head may share theirs."""


@dataclass(frozen=True, slots=True)
class HuggingFaceFolder:
    """A folder with config.json, through ``transformers``."""

    name = "huggingface"
    description = "a Hugging Face folder (config.json and .safetensors)"

    def detects(self, path: Path) -> bool:
        """Recognize it by config.json (or by being that file)."""
        return (path / "config.json").is_file() or (path.name == "config.json" and path.is_file())

    def open(self, request: Opening) -> Model:
        """Check, estimate, load in the dtype to run in; ``Layer.dtype`` says how the file stores each weight."""
        folder = request.path if request.path.is_dir() else request.path.parent
        config = read_config(folder)
        store = tensors_in_files(_weights(folder))
        require_whole(store, folder)
        dtype = _loaded_dtype(request, store)
        require_possible(config, store, folder / "config.json")
        if limit() is not None:
            _import_class(architecture_of(config))
        mapped = not fits(memory_to_run(store.tensors.values(), dtype.itemsize))
        store = tensors_in_files(_weights(folder), passing=True) if mapped else store
        network, notes = load_network(folder, config, _computing_in(dtype, store) if mapped else store, dtype)
        head = network_head(network)
        contents = contents_of(store, read=request.contents)
        dtypes = stored_dtypes(store.tensors, _usual_dtype(store))
        parts = find_layers(network, dtypes, finite=_stays_finite(contents, store))
        inputs = inputs_of(folder, config, network)
        source = ModelSource(kind=self.name, path=str(folder) if request.path != folder else request.recorded)
        model = network_model(
            source, network, parts, contents.fingerprint, output_kind(network),
            call_of(head, inputs, network.config), inputs, sample_of(network, inputs),
        )  # fmt: skip
        model.notes = (*notes, *model.notes)
        return model


def _stays_finite(contents: Contents, store: TensorStore) -> bool:
    """Return whether all numbers are finite where they are run too; a float64 may be infinite as float32."""
    return not contents.non_finite and not any(tensor.dtype == "float64" for tensor in store.tensors.values())


def read_config(folder: Path, *, quantized: bool = False) -> dict[str, Any]:
    """Return config.json; raises NotAModelError, or UnsafeModelError where it has other files read.

    A quantized checkpoint is refused unless ``quantized`` says that its method is known.
    """
    file = folder / "config.json"
    config = _read_json(file)
    config = with_settings(folder, wrapped(config) if is_timm(config) else config)
    try:
        require_files(folder)  # transformers opens more of them
    except OSError as error:
        raise NotAModelError(f"{folder} cannot be opened: {error.strerror}") from None
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise NotAModelError(
            f"{file} names no model_type, so it is not a Hugging Face model; for the weights alone open the "
            ".safetensors"
        )
    if config.get("configuration_files"):
        raise UnsafeModelError(
            f"{file} has another file read in its place (configuration_files), which is not checked; remove that entry"
        )
    _require_no_pickles(config, file)
    if config.get("quantization_config") and not quantized:
        settings = config["quantization_config"]
        method = (settings if isinstance(settings, dict) else {}).get("quant_method", "an unknown method")
        raise NotAModelError(
            f"{folder} is already quantized ({method}), and of those gptq, awq, bitsandbytes, compressed-tensors, fp8, "
            "fbgemm_fp8, mxfp4, modelopt, auto-round, torchao and mlx are read; open the floating-point model it came "
            "from"
        )
    return config


def _require_no_pickles(config: Any, file: Path) -> None:
    """Raise UnsafeModelError for settings by which timm, within transformers, loads a file of its own: a pickle."""
    parts = [config]
    while parts:
        part = parts.pop()
        for key, value in part.items() if isinstance(part, Mapping) else enumerate(part):
            if isinstance(value, Mapping | list):
                parts.append(value)
            named = key in TIMM_NAMES and isinstance(value, str) and TIMM_PLACE.match(value)
            if named or (key in TIMM_OPTIONS and isinstance(value, Mapping) and any(map(value.get, TIMM_FILES))):
                raise UnsafeModelError(
                    f"{file} has timm fetch the network or its weights from elsewhere ({key}), where a pickle can run "
                    "code; remove that, or open the .safetensors file for the weights only"
                )


def _read_json(file: Path) -> Any:
    try:
        return read_json(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NotAModelError(f"{file} cannot be read as JSON: {reason}") from None


def _weights(folder: Path) -> list[Path]:
    files = weight_files(folder)
    if files:
        return files
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")):
        raise UnsafeModelError(
            f"{folder} holds only pickled weights (pytorch_model.bin), and a pickle can run code when it is opened; "
            "convert it to safetensors where it is trusted (model.save_pretrained writes it) and open that"
        )
    raise NotAModelError(f"{folder} has a config.json but no .safetensors file; fetch the weights too")


def architecture_of(config: Mapping[str, Any]) -> str:
    """Return the class that config.json names, empty where it names none."""
    names = config.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""


def network_class(transformers: Any, folder: Path, config: Mapping[str, Any]) -> Any:
    """Return the class that config.json names; NotAModelError for one that transformers lacks, UnsafeModelError where
    the folder has code for it."""
    architecture, kind = architecture_of(config), config["model_type"]
    network: Any = getattr(transformers, architecture, None) if architecture else transformers.AutoModel
    known = not architecture or (inspect.isclass(network) and issubclass(network, transformers.PreTrainedModel))
    if config.get("auto_map") and not (known and kind in transformers.CONFIG_MAPPING):
        raise UnsafeModelError(
            f"{folder}: transformers {transformers.__version__} does not have {kind if known else architecture}, and "
            "the Python code that config.json names for it (auto_map) is never run; install a version that has it, or "
            "open the .safetensors file for the weights alone"
        )
    if not known:
        raise NotAModelError(
            f"{folder}: config.json names the class {architecture}, which transformers {transformers.__version__} does "
            "not have; install a version that has it, or open the .safetensors file for the weights alone"
        )
    transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)  # is it known?
    return network


def _loaded_dtype(request: Opening, store: TensorStore) -> torch.dtype:
    """Return the dtype that the model is to run in, float32 where the file has wider numbers too: none is lost."""
    own = request.placement.run_dtype(_usual_dtype(store))
    stored = {tensor.dtype for tensor in store.tensors.values() if tensor.dtype in FLOATING}
    return own if stored == {str(own).removeprefix("torch.")} else torch.float32


def _computing_in(dtype: torch.dtype, store: TensorStore) -> TensorStore:
    """Return the tensors such that they stay in their file, mapped, and compute in ``dtype``."""

    def read(name: str) -> torch.Tensor:
        stored = store.read(name)
        return widened(stored) if dtype == torch.float32 and stored.is_floating_point() else stored

    return replace(store, read=read)


def _import_class(architecture: str) -> None:
    """Import a network's class before what is left of a limit is looked at; what hinders that is said later."""
    with suppress(Exception):
        from workbench.models.sources.lean_transformers import quiet, transformers

        with quiet():
            getattr(transformers, architecture, None)


def load_network(
    folder: Path, config: Mapping[str, Any], store: TensorStore, dtype: torch.dtype
) -> tuple[Any, list[str]]:
    """Return the network of config.json with the tensors of ``store``: the bytes that were hashed, and no other file;
    and notes: which of them it has no place for, which code of the folder was not run.

    Raises NotAModelError with the reason where transformers cannot build it or the tensors do not belong to it,
    UnsafeModelError where it would take code of the folder.
    """
    try:
        from workbench.models.sources.lean_transformers import quiet, transformers
    except ImportError as error:
        raise BackendUnavailableError(f"Hugging Face models need the package transformers: {error}") from None
    without_room.clear()
    try:
        with quiet():
            network_type, settings = class_and_settings(transformers, folder, config)
            _require_filled(network_type, settings, store, folder)
            network, report = network_type.from_pretrained(
                None, config=settings, state_dict={name: store.read(name) for name in store.tensors}, dtype=dtype,
                output_loading_info=True, ignore_mismatched_sizes=True,  # they are named below
                attn_implementation=None, experts_implementation=None,  # transformers' own, and no code of the Hub
                **_without_pooler(network_type, store.tensors),
            )  # fmt: skip
    except (NotAModelError, UnsafeModelError):
        raise
    except Exception as error:  # transformers raises nearly everything for a folder that it does not understand
        if without_room:
            raise without_room.pop() from None
        raise NotAModelError(f"transformers cannot load {folder}: {first_line(error)}") from error
    odd = {
        f"{name} ({' x '.join(map(str, own))} in the file, {' x '.join(map(str, configured))} by config.json)"
        for name, own, configured in report["mismatched_keys"]
    }
    missing = sorted({*report["missing_keys"], *odd})
    if missing:
        raise NotAModelError(
            f"{folder}: {len(missing)} tensors are missing or of another shape than config.json says: "
            f"{few(missing)}; the configuration and the weights "
            "do not belong together"
        )
    further = further_blocks(network.state_dict(), report["unexpected_keys"])
    if further:
        raise NotAModelError(
            f"{folder}: the weights have {few(further)}, which config.json does not count; the configuration and the "
            "weights do not belong together"
        )
    notes = _notes(type(network).__name__, config, sorted(report["unexpected_keys"]))
    notes += evaluated_pooling(folder)[1] if network_head(network) is OutputKind.EMBEDDING else []
    return with_answers(network), notes


def _without_pooler(network_type: Any, names: Collection[str]) -> dict[str, bool]:
    """Return the option of classes with a pooler, which no output here uses, where a checkpoint has none (DINO's)."""
    optional = "add_pooling_layer" in inspect.signature(network_type.__init__).parameters
    return {"add_pooling_layer": False} if optional and not any("pooler." in name for name in names) else {}


def _notes(name: str, config: Mapping[str, Any], left: Sequence[str]) -> list[str]:
    notes = []
    if config.get("auto_map"):
        notes.append(f"config.json names Python code (auto_map), which is never run; transformers' own {name} runs")
    if left:
        notes.append(f"{len(left)} tensors of the weights have no place in {name} and are left out: {few(left)}")
    return notes


def class_and_settings(transformers: Any, folder: Path, config: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the class of a folder's network and its configuration, which says nothing of quantization."""
    network_type = network_class(transformers, folder, config)
    settings = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    if hasattr(settings, "quantization_config"):
        del settings.quantization_config
    _without_others_weights(settings)
    if settings.model_type == "timm_wrapper":
        (settings.model_args or {}).pop("num_classes", None)  # transformers passes its own on, and takes no other
    if not architecture_of(config) or _embeds(folder, config, settings):
        with torch.device("meta"):
            network_type = type(transformers.AutoModel.from_config(settings))
    return network_type, settings


def _embeds(folder: Path, config: Mapping[str, Any], settings: Any) -> bool:
    """Return whether a folder of sentence-transformers names a class with a head of words (Qwen3-Embedding's), which
    that library leaves out."""
    words = head_of(architecture_of(config)) in (OutputKind.TOKEN_LOGITS, OutputKind.TOKEN_CLASSES)
    return words and not settings.is_encoder_decoder and pooling_of(folder, NotAModelError) is not None


def _without_others_weights(settings: Any) -> None:
    """Have no part of a network, at any depth, begin with weights of its own, which are fetched and unpickled."""
    if getattr(settings, "use_pretrained_backbone", None):
        settings.use_pretrained_backbone = False
    for part in vars(settings).values():
        if hasattr(part, "model_type"):
            _without_others_weights(part)


def names_in_network(folder: Path, config: Mapping[str, Any], names: Collection[str]) -> dict[str, str]:
    """Return the parameter that each tensor of a checkpoint becomes, by building the network without its numbers.

    Empty where transformers does not know it.
    """
    try:
        from workbench.models.sources.lean_transformers import quiet, transformers

        with quiet(), torch.device("meta"):
            network_type, settings = class_and_settings(transformers, folder, config)
            return loaded_names(network_type(settings), names)
    except Exception:  # transformers raises nearly everything for a folder that it does not understand
        return {}


def further_blocks(used: Collection[str], left: Collection[str]) -> list[str]:
    """Return the blocks (``encoder.layer.2``) of which only tensors in ``left`` are there, as whole as a used one.

    A block with tensors that no used one has, as of a head that predicts further tokens, is none of these.
    """
    names: dict[tuple[str, int], set[str]] = defaultdict(set)
    filled: set[tuple[str, int]] = set()
    for number, name in enumerate((*used, *left)):
        parts = name.split(".")
        for place, part in enumerate(parts):
            if part.isdecimal():
                block = ".".join(parts[:place]), int(part)
                names[block].add(".".join(parts[place + 1 :]))
                filled |= {block} if number < len(used) else set()
    whole = {(prefix, frozenset(names[prefix, number])) for prefix, number in filled}
    further = sorted(block for block in names.keys() - filled if (block[0], frozenset(names[block])) in whole)
    return [f"{prefix}.{number}" for prefix, number in further]


def _require_filled(network_type: Any, settings: Any, store: TensorStore, folder: Path) -> None:
    """Raise NotAModelError where the network, with what config.json leaves to defaults, is beyond the weights.

    What they do not fill would be made and thrown away: 28 GB where a file of 1 MB only names a Llama as its part.
    """
    settings._attn_implementation = settings._experts_implementation = None
    with torch.device("meta"):
        whole = sum(parameter.numel() for parameter in network_type(settings).parameters())
    stored = sum(math.prod(tensor.shape) for tensor in store.tensors.values())
    if whole > TIED * stored + LEAST:
        raise NotAModelError(
            f"{folder}: config.json, with its defaults, describes a network of {whole:,} weights, and the files hold "
            f"{stored:,}; the configuration and the weights do not belong together"
        )


def _usual_dtype(store: TensorStore) -> str | None:
    sizes = Counter[str]()
    for tensor in store.tensors.values():
        if tensor.dtype in FLOATING:
            sizes[tensor.dtype] += math.prod(tensor.shape)
    return max(sizes, key=sizes.__getitem__, default=None)


def inputs_of(folder: Path, config: Mapping[str, Any], network: Any) -> InputSpec:
    """Return what a network of transformers takes; settings of pictures and the tokenizer lie in ``folder``."""
    head = network_head(network)
    (takes, _), main = arguments_of(network.forward), main_inputs(network)[0]
    embeds = head is OutputKind.EMBEDDING
    shapes = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), "samples x choices x tokens")
    return replace(
        _token_inputs(network) if main == "input_ids" else _image_inputs(folder, config),
        main=main, takes=takes, tensors=tensors_taken(network), folder=folder,
        requires=required_inputs(network), begun=answers_apart(network), arrange=arrangement(network),
        sentences=head is not OutputKind.TOKEN_LOGITS or network.config.is_encoder_decoder,
        embeds=embeds, pooling=evaluated_pooling(folder)[0] if embeds else Pooling.MEAN,
        shapes=shapes if type(network).__name__.endswith(CHOOSES) else {},
        tokenizer=folder if holds_tokenizer(folder) else None,
    )  # fmt: skip


def _token_inputs(network: Any) -> InputSpec:
    """Return what a network of tokens takes."""
    config = text_config(network.config)
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    tables = (each for name, each in network.named_modules() if name.endswith("position_embeddings"))
    before = max((each.padding_idx + 1 for each in tables if getattr(each, "padding_idx", None) is not None), default=0)
    positions = positions - before if positions is not None and positions > before else None
    try:
        vocabulary: int | None = int(network.get_input_embeddings().weight.shape[0])
    except (NotImplementedError, AttributeError):
        vocabulary = getattr(config, "vocab_size", None)  # CANINE hashes any character
    return InputSpec(tokens=True, vocabulary=vocabulary, positions=positions)


def _image_inputs(folder: Path, config: Mapping[str, Any]) -> InputSpec:
    with suppress(ValueError):  # which is said of the first picture
        if timm := timm_pictures(config):
            return InputSpec(tokens=False, channels=timm.channels, size=_sides(timm.size), mean=timm.image_mean,
                             std=timm.image_std)  # fmt: skip
    file = folder / "preprocessor_config.json"
    settings = _read_json(file) if file.is_file() else {}
    cropped = settings.get("crop_size") if settings.get("do_center_crop", True) else None
    size = cropped or settings.get("size", config.get("image_size"))
    if isinstance(size, Mapping):
        size = (size.get("height") or size.get("shortest_edge"), size.get("width") or size.get("shortest_edge"))
    mean, std = (_numbers(settings.get(name)) for name in ("image_mean", "image_std"))
    return InputSpec(tokens=False, channels=config.get("num_channels", 3), size=_sides(size), mean=mean, std=std)


def _sides(size: Any) -> tuple[int, int] | None:
    """Return height and width in pixels, None for what cannot be a picture's: the settings are untrusted."""
    sides = tuple(size) if isinstance(size, Sequence) and not isinstance(size, str) else (size, size)
    if len(sides) != 2 or not all(type(side) is int and side > 0 for side in sides):
        return None
    return (sides[0], sides[1]) if sides[0] * sides[1] <= LARGEST_PICTURE else None


def _numbers(values: Any) -> tuple[float, ...] | None:
    listed = values if isinstance(values, list) else [values]
    return tuple(listed) if listed and all(isinstance(each, int | float) for each in listed) else None
