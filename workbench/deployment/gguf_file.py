"""A GGUF file written tensor by tensor with the package gguf, read back by its reader, compared bit for bit."""

from __future__ import annotations

import json
import re
import struct
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from workbench.deployment.checkpoints.folder import has_settings, require_settings
from workbench.deployment.gguf_source import tensors_again
from workbench.deployment.gguf_tensors import FileTensor, file_tensors, file_type, refusals, require_fit
from workbench.deployment.networks import other_head
from workbench.deployment.proof.llama_cpp_blocks import decoded
from workbench.errors import ExportError, ModelError, first_line
from workbench.memory import let_go, passing, put_away_again
from workbench.models.data.converted import converted_tokenizer
from workbench.models.dtypes import dtype_name, tensor_bytes
from workbench.models.gguf.architectures import Architecture, architecture_of, metadata_of, window_of
from workbench.models.gguf.rotary import LONG, rope_of, rotary_factors
from workbench.models.gguf.tensors import PICTURES, gguf_names, library, names_of
from workbench.models.gguf.values import Value, value_of
from workbench.models.gguf.vocabulary import vocabulary
from workbench.models.readers.pooling import IN_LLAMA_CPP, Pooling, pooling_of
from workbench.models.sources.gguf_file import PLAIN, GgufNetwork, GgufWeights
from workbench.models.summary import ModelSummary, OutputKind
from workbench.numerics.bands import in_parallel
from workbench.numerics.formats.gguf.stored import decoder
from workbench.progress import Progress
from workbench.readable import few

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel

FILE_TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K": 12,
              "Q4_K": 15, "Q5_K": 17, "Q6_K": 18, "IQ2_XXS": 19, "IQ2_XS": 20, "IQ3_XXS": 23, "IQ1_S": 24, "IQ4_NL": 25,
              "IQ3_S": 26, "IQ2_S": 28, "IQ4_XS": 30, "IQ1_M": 31, "BF16": 32, "TQ1_0": 36, "TQ2_0": 37,
              "MXFP4": 38, "NVFP4": 39, "Q1_0": 40}  # fmt: skip
"""``general.file_type`` for a file in which most weights are of a type (llama.cpp's ``llama_ftype``)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Content:
    """What the file holds: metadata by key, and its tensors in order."""

    architecture: str
    metadata: Mapping[str, Value]
    tensors: Sequence[FileTensor]

    @property
    def nbytes(self) -> int:
        """The bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors)


def content_of(quantized: QuantizedModel, model: Model, pre_tokenizer: str = "") -> Content:
    """Return what the file of a quantized model holds; no weight is read yet.

    Raises ExportError for an unknown architecture, for a plan that the file cannot hold (every layer with its reason),
    and for a tokenizer that llama.cpp does not have; BackendUnavailableError without the package gguf.
    """
    library()
    if isinstance(model, GgufNetwork | GgufWeights):
        again = tensors_again(quantized, model)
        stored = {name: (each.type, each.nbytes) for name, each in model.file.tensors.items()}
        metadata = dict(model.file.metadata)
        if any(stored.get(tensor.name) != (tensor.type, tensor.nbytes) for tensor in again):
            metadata["general.file_type"] = value_of(_file_type(again))
        return Content(architecture=model.file.architecture, metadata=metadata, tensors=again)
    schemes = {name: stored.scheme for name, stored in quantized.tensors.items()}
    folder, config, architecture, settings, blocks = fitting(model.summary, schemes)
    tensors = list(file_tensors(quantized, model, architecture, config, blocks))
    rows = next(tensor.shape[0] for tensor in tensors if tensor.name == "token_embd.weight")
    kinds = int(config.get("type_vocab_size") or 1) if architecture.name in ("bert", "nomic-bert") else 0
    words = vocabulary(
        folder, rows, pre_tokenizer, ExportError, kinds=kinds, converted=converted_tokenizer(folder, ExportError)
    )
    if model.summary.output is OutputKind.EMBEDDING:
        settings = settings | {f"{architecture.name}.pooling_type": _pooling_type(folder)}
    plain = {
        "general.architecture": architecture.name, "general.type": "model",
        "general.name": _named(model.summary, words),
        "general.file_type": _file_type(tensors), "general.quantization_version": 2, **settings, **words,
    }  # fmt: skip
    metadata = {key: value_of(value) for key, value in plain.items() if value != []}
    return Content(architecture=architecture.name, metadata=metadata, tensors=tensors)


def _pooling_type(folder: Path) -> int:
    """Return llama.cpp's number of how a folder makes embeddings; ExportError for a way that it does not have."""
    stated = pooling_of(folder, ExportError)
    if stated is None:
        return IN_LLAMA_CPP[Pooling.MEAN]
    if stated.lacks:
        raise ExportError(
            f"{stated.lacks}, which modules.json in {folder} names, is missing: it says how tokens are pooled; fetch it"
        )
    if stated.pooling is None:
        raise ExportError(
            f"modules.json in {folder} pools by {' and '.join(stated.modes[:8])}; llama.cpp takes the mean, "
            "the first or the last token, so it cannot be written as GGUF"
        )
    return IN_LLAMA_CPP[stated.pooling]


def _named(summary: ModelSummary, words: Mapping[str, Any]) -> str:
    """Return the model's name; llama.cpp looks for Phi-3's own tokens in every file that is called so, and crashes."""
    tokens = set(words.get("tokenizer.ggml.tokens", ()))
    if tokens >= {"<unk>", "<s>", "</s>", "<|endoftext|>"}:
        return summary.name
    return re.sub(r"(phi)-?(3)", r"\1 \2", summary.name, flags=re.IGNORECASE)


def fitting(
    summary: ModelSummary, schemes: Mapping[str, str]
) -> tuple[Path, dict[str, Any], Architecture, dict[str, Any], int]:
    """Return the model's folder, configuration, architecture, its metadata and its number of blocks.

    Raises ExportError for an architecture that llama.cpp does not have, and for ``schemes`` that do not fit.
    """
    folder, config = text_configuration(summary)
    architecture = architecture_of(str(config.get("model_type")), ExportError)
    if reason := other_head("gguf", str(config["model_type"]), summary):
        raise ExportError(reason)
    settings = metadata_of(architecture, config, ExportError)
    blocks = int(settings[f"{architecture.name}.block_count"])
    require_fit(refusals(summary, schemes, architecture, blocks))
    return folder, config, architecture, settings, blocks


def tensor_types(summary: ModelSummary, schemes: Mapping[str, str]) -> dict[str, str]:
    """Return the GGML type of every layer's tensor by its name in the file, for llama.cpp's own quantizer.

    Raises as :func:`fitting` does.  No weight is read.
    """
    _, _, architecture, _, blocks = fitting(summary, schemes)
    names = gguf_names(architecture, blocks)
    return {
        name: file_type(layer, schemes.get(layer.name), name)
        for layer in summary.stored for name in names_of(names, layer.parameter)
    }  # fmt: skip


def remarks_on(summary: ModelSummary) -> list[str]:
    """Return a sentence for what llama.cpp computes otherwise: sliding windows, factors that depend on the length."""
    if summary.source.kind == "gguf":
        return []
    folder, config = text_configuration(summary)
    architecture, window = architecture_of(str(config.get("model_type")), ExportError), window_of(config)
    remarks = [
        "the file holds the network of texts; for pictures llama.cpp takes a second one, which its converter makes "
        "(convert_hf_to_gguf.py --mmproj)"
    ] * any(layer.parameter.startswith(PICTURES) for layer in summary.stored)
    stated = pooling_of(folder, ExportError) if summary.output is OutputKind.EMBEDDING else None
    if stated is not None and stated.behind:
        remarks.append(
            f"{few(stated.behind)} behind the network is left out: llama.cpp's embeddings are those before it"
        )
    if LONG in rotary_factors(config):
        original = rope_of(config)["original_max_position_embeddings"]
        remarks.append(
            f"llama.cpp takes the long rotary factors for every text where its context has more than {original:,} "
            "tokens, transformers for texts that have more"
        )
    if window is None or architecture.windows:
        return remarks
    return [
        *remarks,
        f"llama.cpp computes no sliding windows for {architecture.name}: the file ends the context where the first "
        f"window does, at {window:,} tokens",
    ]


def text_configuration(summary: ModelSummary) -> tuple[Path, dict[str, Any]]:
    """Return what :func:`configuration` does, of a network of texts and pictures the part of that of texts."""
    folder, config = configuration(summary)
    architecture_of(str(config.get("model_type")), ExportError)  # PaliGemma's Gemma sees what comes after, too
    part = config.get("text_config") if any(layer.parameter.startswith(PICTURES) for layer in summary.stored) else None
    return folder, config if part is None else {**part, "tie_word_embeddings": config.get("tie_word_embeddings")}


def configuration(summary: ModelSummary) -> tuple[Path, dict[str, Any]]:
    """Return the model's folder and its configuration with every default of transformers filled in."""
    from workbench.models.sources.catalog import resolve

    beside = summary.source.kind == "safetensors" and has_settings(Path(summary.source.path))
    if summary.source.kind not in ("huggingface", "quantized_checkpoint") and not beside:
        raise ExportError(
            f"{summary.name} comes from {summary.source.kind}; a GGUF file needs the configuration and the "
            "tokenizer of a Hugging Face folder: open that"
        )
    try:
        place, _ = resolve(summary.source.path)
    except ModelError as error:
        raise ExportError(f"the configuration and the tokenizer cannot be read: {error}") from error
    require_settings(place)
    folder = place if place.is_dir() else place.parent
    try:
        from workbench.models.sources.lean_transformers import quiet, transformers

        loader = transformers.AutoConfig
        with quiet():
            settings = loader.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # transformers raises nearly everything for what it does not understand
        raise ExportError(f"the configuration in {folder} cannot be read: {error}") from error
    config = json.loads(settings.to_json_string(use_diff=False))
    aliases = {alias: config[own] for alias, own in settings.attribute_map.items() if own in config}
    return folder, aliases | config


def _file_type(tensors: Sequence[FileTensor]) -> int:
    sizes = Counter[str]()
    for tensor in tensors:
        sizes[tensor.type] += tensor.nbytes
    return FILE_TYPES.get(max(sizes, key=sizes.__getitem__), 0)


def write(path: Path, content: Content, progress: Progress) -> None:
    """Write ``content``, one tensor in memory at a time; raises ExportError, and OSError if the disk does."""
    gguf = library()
    writer = _writer(path, content)
    for tensor in content.tensors:
        kind = gguf.GGMLQuantizationType[tensor.type]
        writer.add_tensor_info(tensor.name, tensor.shape, np.dtype(np.float32), tensor.nbytes, raw_dtype=kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        done = 0
        for tensor in content.tensors:
            progress(done / max(content.nbytes, 1), f"writing {tensor.name}")
            writer.write_tensor_data(_Streamed(tensor))
            done += tensor.nbytes
            put_away_again()
    finally:
        writer.close()


@dataclass(frozen=True, slots=True, eq=False)
class _Streamed:
    """What the package's writer asks of an array, of a tensor that is never whole in memory."""

    tensor: FileTensor

    @property
    def nbytes(self) -> int:
        """The bytes that are written."""
        return self.tensor.nbytes

    def tofile(self, file: BinaryIO) -> None:
        """Write the rows a piece at a time; ExportError where there are more or fewer bytes than the type needs."""
        written = sum(file.write(self.tensor.data(part).data) for part in self.tensor.bands())
        if written != self.nbytes:
            raise ExportError(f"{self.tensor.name} has {written} bytes, its type and shape need {self.nbytes}")


def _writer(path: Path, content: Content) -> Any:
    """Return the package's writer with the metadata; it takes arrays without entries too."""
    gguf = library()

    class Writer(gguf.GGUFWriter):  # type: ignore[misc, name-defined]
        def _pack_val(self, val: Any, vtype: Any, add_vtype: bool, sub_type: Any = None) -> bytes:
            if vtype == gguf.GGUFValueType.ARRAY and not len(val):
                return struct.pack("<IIQ" if add_vtype else "<IQ", *([vtype] if add_vtype else []), sub_type, 0)
            return bytes(super()._pack_val(val, vtype, add_vtype, sub_type))

    writer = Writer(path, content.architecture)
    writer.kv_data[0].clear()
    for key, value in content.metadata.items():
        element = None if value.element is None else gguf.GGUFValueType(value.element)
        writer.add_key_value(key, value.data, gguf.GGUFValueType(value.kind), element)
    if "general.alignment" in content.metadata:
        writer.data_alignment = int(content.metadata["general.alignment"].data)
    return writer


def prove(path: Path, content: Content, progress: Progress) -> None:
    """Raise ExportError unless the package's reader finds all as it was written, and a decoder the evaluated values.

    It is llama.cpp's own where that is installed, else the package's, which also decides where the first one differs.
    """
    try:
        reader = _reader(path)
    except Exception as error:  # the reader has no error of its own
        raise ExportError(f"the package gguf does not read what was written: {first_line(error)}") from error
    pages = getattr(reader.data, "_mmap", None)
    if pages is not None and sys.platform == "linux":
        passing(pages, reader.data.ctypes.data, reader.data.nbytes)
    writer = _writer(path, content)
    for key, value in writer.kv_data[0].items():
        own = writer._pack_val(key, library().GGUFValueType.STRING, False)
        own += writer._pack_val(value.value, value.type, True, value.sub_type)
        if key not in reader.fields or b"".join(part.tobytes() for part in reader.fields[key].parts) != own:
            raise ExportError(f"the metadata {key} do not read back as they were written; try another place")
    stored = {tensor.name: tensor for tensor in reader.tensors}
    if len(stored) != len(content.tensors):
        raise ExportError(f"{len(content.tensors)} tensors were written, the package gguf reads {len(stored)}")
    for place, tensor in enumerate(content.tensors):
        progress(place / len(content.tensors), f"comparing {tensor.name}")
        _compare(tensor, stored[tensor.name])
        put_away_again()


def _reader(path: Path) -> Any:
    """Return the package's reader; one that cuts pieces out of the file as plain arrays reads tokens ten times faster.

    As memory-mapped ones, each of a vocabulary's strings costs it 50 microseconds.
    """
    gguf = library()

    class Reader(gguf.GGUFReader):  # type: ignore[misc, name-defined]
        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
            order = override_order or self.byte_order
            return np.frombuffer(self.data, np.dtype(dtype).newbyteorder(order), int(count), int(offset))

    return Reader(path)


def _compare(tensor: FileTensor, stored: Any) -> None:
    """Raise ExportError naming the first value of a tensor that its decoder reads otherwise than it was evaluated."""
    if stored.tensor_type.name != tensor.type:
        raise ExportError(f"{tensor.name} was written as {tensor.type} and reads back as {stored.tensor_type.name}")
    if int(stored.n_bytes) != tensor.nbytes:
        raise ExportError(f"{tensor.name} was written in {tensor.nbytes} bytes and reads back in {stored.n_bytes}")
    rows = np.asarray(stored.data).reshape(-1).view(np.uint8).reshape(tensor.rows, -1)

    def compare(part: slice) -> None:
        evaluated = tensor.values(part)
        if dtype_name(evaluated) != PLAIN.get(tensor.type) or not np.array_equal(
            rows[part].reshape(-1), tensor_bytes(evaluated)
        ):
            if tensor.type in PLAIN and tensor.type not in ("F32", "F16", "BF16"):
                raise ExportError(f"{tensor.name} does not read back as it was written; try another place")
            exact = evaluated.float().numpy()
            values = decoded(tensor.type, rows[part], exact.shape[-1])
            if values is None or _differing(values, exact).any():  # a build may contract products and sums
                values = np.asarray(decoder(tensor.type)(rows[part].view(stored.data.dtype)), np.float32)
            _require_equal(tensor.name, part.start, values, exact)
        let_go(rows[part])  # what was compared need not stay resident

    in_parallel(compare, tensor.bands())


def _require_equal(name: str, start: int, values: np.ndarray, evaluated: np.ndarray) -> None:
    """Raise ExportError naming the first value of some rows, from the row ``start`` on, that differs in any bit."""
    values = values.reshape(evaluated.shape)
    if (differing := _differing(values, evaluated)).any():
        row, column = np.argwhere(differing)[0]
        raise ExportError(
            f"{name}[{start + row}, {column}] reads back as {float(values[row, column])!r}, "
            f"{float(evaluated[row, column])!r} was evaluated; please report"
        )


def _differing(values: np.ndarray, evaluated: np.ndarray) -> np.ndarray:
    return np.not_equal(values.view(np.uint32), evaluated.view(np.uint32))
