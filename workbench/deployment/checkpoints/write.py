"""A quantized checkpoint written tensor by tensor, read back and compared; what each kind of it is, is a Method."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from workbench.atomic import replacing_folder
from workbench.deployment.checkpoints.folder import (
    check_place,
    copy_checkpoint,
    copy_settings,
    is_as_stored,
    is_copy,
    mark,
    read_settings,
    source_folder,
    stated_by,
)
from workbench.deployment.checkpoints.origin import Origin, origin_of
from workbench.deployment.checkpoints.switched import is_new, stacked_entry
from workbench.deployment.failed import keeping_failed
from workbench.deployment.safetensors_file import prove_bytes, prove_header, write_safetensors
from workbench.deployment.tensors import DTYPES, Entry, check, other_entries, require_equal, require_that_all_fit
from workbench.errors import ExportError, first_line
from workbench.memory import in_pieces, put_away_again
from workbench.models.checkpoints.experts import joined_when_read
from workbench.models.checkpoints.experts import rows_of as stored_rows
from workbench.models.layer import Layer, LayerKind
from workbench.numerics.bands import in_parallel, row_tiles
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.cast import CastScheme
from workbench.numerics.granularity import PerBlock
from workbench.planning.plan import Assignment, resolve
from workbench.progress import Progress, part_of

if TYPE_CHECKING:
    import torch

    from workbench.models.model import Model
    from workbench.models.summary import ModelSummary
    from workbench.numerics.quantized_tensor import QuantizedTensor
    from workbench.numerics.ranges.calibrated import Range
    from workbench.quantization.quantized_model import QuantizedModel

BAND = 1 << 19
"""Weights that a library decodes at a time: 2 MB in float32 stay in a core's cache."""

FEW = 64
"""Bytes of a tensor up to which it may be one that no weight is decoded from: a shape, the scale of inputs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """What is written: the quantized model, the model as the transforms left it, its checkpoint, what layers get."""

    quantized: QuantizedModel
    model: Model
    origin: Origin
    assignments: Mapping[str, Assignment]

    def packed(self) -> Iterator[tuple[Layer, QuantizedTensor]]:
        """Yield every quantized layer that is not a plain cast, with its stored form."""
        for layer in self.model.summary.stored:
            stored = self.quantized.tensors.get(layer.name)
            if stored is not None and not isinstance(parse_scheme(stored.scheme), CastScheme):
                yield layer, stored

    def modules(self) -> Iterator[tuple[str, Layer, QuantizedTensor]]:
        """Yield the name of every packed weight in the checkpoint, its layer and stored form: experts as it has them.

        A stack's layer is the first of those that it is made of.
        """
        stacked, packed = self.origin.stacked, {}
        for layer, stored in self.packed():
            packed[layer.parameter] = layer, stored
            pieces = self.origin.pieces.get(layer.parameter, ())
            for piece in pieces:
                yield piece.name, layer, stored_rows(stored, piece.rows)
            if not pieces and layer.parameter not in stacked:
                yield self.origin.names.get(layer.parameter, layer.parameter), layer, stored
        for name, stack in self.origin.stacks.items():
            if packed.keys() >= set(stack.parameters):
                parts = [(packed[part.parameter][1], part.rows) for part in stack.parts]
                yield name, packed[stack.parameters[0]][0], joined_when_read(parts)


class Method(Protocol):
    """A kind of quantized checkpoint; ``holds_tied``: weights that layers share, too.

    ``holds_experts``: those that the checkpoint has one by one.  ``holds_rotations``: rotations of inputs.
    ``reads_whole``: its reader decodes no part of a weight.
    """

    holds_tied: bool = False
    holds_experts: bool = False
    holds_rotations: bool = False
    reads_whole: bool = False

    @property
    def kind(self) -> str:
        """The exporter's name."""

    @property
    def what(self) -> str:
        """What messages call it, with an article."""

    @property
    def target(self) -> str:
        """The runtime whose rules ``workbench check`` repairs a plan by."""

    def require(self) -> None:
        """Raise BackendUnavailableError where a library that writes or reads it is missing."""

    def require_network(self, summary: ModelSummary) -> None:
        """Raise ExportError for a network that its readers do not run: any will do."""
        return None

    def arranged(self, origin: Origin, summary: ModelSummary) -> Origin:
        """Return the checkpoint with the tensors that are written, which may be others: as it is."""
        return origin

    def refusal(self, layer: Layer, assignment: Assignment, job: Job) -> str | None:
        """Return why it cannot hold a layer as the plan says, None if it can."""

    def entries(self, stored: QuantizedTensor, inputs: str | None, calibrated: Range | None) -> Iterator[Entry]:
        """Yield what stands for a layer's weight, and a static scheme of its ``inputs``, under names within its module.

        Arrays and the ``calibrated`` range are asked for when values are: bytes are known without.
        """

    def settings(self, job: Job) -> dict[str, Any]:
        """Return what config.json says of the quantization; ExportError for a plan that it cannot say."""

    def renamed(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return what config.json also has to hold for its readers, which know the network's settings by other names:
        nothing."""
        return {}

    def adapt(self, folder: Path, job: Job) -> None:
        """Change what readers of the written folder need otherwise: nothing."""
        return None

    def holds_as_stored(self, settings: Mapping[str, Any]) -> bool:
        """Return whether a checkpoint of these ``settings`` of the quantization is what was asked for: always."""
        return True

    def metadata(self, job: Job, names: list[str]) -> dict[str, str]:
        """Return what the header of every file says of the checkpoint's tensors, ``names``: nothing."""
        return {}

    def read(
        self, layer: Layer, tensors: Mapping[str, torch.Tensor], stored: QuantizedTensor, config: Mapping[str, Any],
        rows: slice,
    ) -> tuple[torch.Tensor, int]:  # fmt: skip
        """Return ``rows`` of a layer's weight, float32 outputs x inputs, as another reader decodes it, and by how many
        ulps they may differ because that reader multiplies in another order.  ``layer.parameter`` is its name in the
        checkpoint; ``rows`` begin at a multiple of 32, and where a block of rows does.

        ``config`` is config.json, with the files' metadata as ``__metadata__``.
        """


def write_checkpoint(
    method: Method, quantized: QuantizedModel, model: Model | None, out: Path, progress: Progress
) -> tuple[Path, ...]:
    """Write, read back, compare every tensor, and return the paths written; a failed proof keeps the folder.

    Raises ExportError for a plan that does not fit (each layer with its reason), before anything is written.
    """
    job, source, is_verbatim = _job(method, quantized, model)
    check_place(out, source)
    if is_verbatim:
        with replacing_folder(out, ExportError, method.what) as temporary:
            copy_checkpoint(source, temporary, progress)
            return tuple(out / name for name in mark(quantized, temporary, method.kind))
    config = read_settings(source, job.model, untied=bool(quantized.changes.untied))
    config = {**method.renamed(config), **config, **method.settings(job)}
    shards = _shards(method, job)
    with replacing_folder(out, ExportError, method.what) as temporary, in_pieces():
        copy_settings(source, temporary, config)
        _write_shards(method, job, shards, temporary, part_of(progress, 0.0, 0.6))
        method.adapt(temporary, job)
        files = mark(quantized, temporary, method.kind)
        with keeping_failed(temporary, out):
            for file, entries in shards.items():
                prove_header(temporary / file, entries, _metadata(method, job, shards))
            _prove(method, job, shards, temporary, part_of(progress, 0.6, 1.0))
    progress(1.0, f"wrote {out.name}")
    return tuple(out / name for name in files)


def refuse_checkpoint(method: Method, planned: QuantizedModel, model: Model) -> None:
    """Raise ExportError with every layer that does not fit, and for a plan with nothing to pack; ``planned`` holds
    schemes and shapes alone."""
    job, _, is_verbatim = _job(method, planned, model)
    if not is_verbatim:
        method.settings(job)


def prove_checkpoint(
    method: Method, quantized: QuantizedModel, model: Model | None, folder: Path, progress: Progress
) -> None:
    """Raise ExportError, naming the first tensor and value, unless ``folder`` holds what was quantized."""
    job, source, is_verbatim = _job(method, quantized, model)
    if not (is_verbatim and is_copy(source, folder)):
        _prove(method, job, _shards(method, job), folder, progress)


def _job(method: Method, quantized: QuantizedModel, model: Model | None) -> tuple[Job, Path, bool]:
    """Return what is to be written, the original's folder, and whether that is the same; ExportError for a plan that
    does not fit."""
    method.require()
    opened = check(quantized, model, rotations=method.holds_rotations)
    source = source_folder(opened, bare=True)
    assignments = resolve(quantized.plan, opened.summary.layers)
    kind, settings = stated_by(opened, source)
    asked = kind == method.kind and method.holds_as_stored(settings)
    is_verbatim = asked and is_as_stored(quantized, opened, assignments)
    origin = origin_of(opened, source)
    if not is_verbatim:
        method.require_network(opened.summary)
        origin = method.arranged(origin, opened.summary)
    job = Job(quantized=quantized, model=opened, origin=origin, assignments=assignments)
    if not is_verbatim:
        require_that_all_fit(dict(_refusals(method, job)), method.what, method.target)
    return job, source, is_verbatim


def _refusals(method: Method, job: Job) -> Iterator[tuple[str, str]]:
    names, tied = job.origin.names, {layer.tied_to for layer in job.model.summary.tied}
    packed = {layer.name for layer, _ in job.packed()}
    for layer in job.model.summary.layers:
        assignment = job.assignments[layer.name]
        if layer.tied_to is None and layer.name not in packed:
            assignment = replace(assignment, weights="keep")
        reason = None
        if layer.name in packed and layer.name in tied and not method.holds_tied:
            reason = "it shares its tensor with another layer, and only one of them could be quantized; keep it"
        elif not _has_place(method, layer, job, layer.name in packed):
            reason = "the checkpoint stores it in several tensors or in another shape; keep it"
        elif layer.tied_to is not None and assignment.inputs is not None:
            reason = "its weight is another layer's, so its inputs cannot be quantized; keep them"
        elif layer.name in packed or assignment.inputs is not None or assignment.cache is not None:
            reason = method.refusal(layer, assignment, job)
        if reason is not None:
            yield layer.name, reason
    yield from _mixed(job)
    for name in _changed(job):
        if name not in names and name not in {layer.parameter for layer in job.model.summary.layers}:
            yield name, "the plan changes it, and the checkpoint stores it in several tensors or in another shape"


def _mixed(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the experts that one tensor holds beside others and that the plan stores otherwise."""
    by_parameter = {layer.parameter: layer for layer in job.model.summary.stored}
    for stack in job.origin.stacks.values():
        layers = [by_parameter[parameter] for parameter in stack.parameters]
        first = _form(layers[0], job)
        for layer in layers[1:]:
            if (form := _form(layer, job)) != first:
                yield layer.name, f"it lies in one tensor with {layers[0].name}, in {first}, and cannot be in {form}"


def _form(layer: Layer, job: Job) -> str:
    """Return the scheme that a layer is stored in, or its dtype."""
    stored = job.quantized.tensors.get(layer.name)
    if stored is None:
        return layer.dtype
    scheme = parse_scheme(stored.scheme)
    return DTYPES[scheme.element.name] if isinstance(scheme, CastScheme) else scheme.name


def _has_place(method: Method, layer: Layer, job: Job, packed: bool) -> bool:
    """Return whether a quantized layer's tensor, or those that stand for its experts, are in the checkpoint."""
    if layer.name not in job.quantized.tensors or layer.parameter in job.origin.names:
        return True
    if layer.parameter in job.origin.stacked:
        return True
    if layer.parameter in job.origin.pieces:
        return method.holds_experts or not packed
    return not packed and layer.parameter in _changed(job)  # a head that got a weight of its own


def _changed(job: Job) -> set[str]:
    """Return the parameters that the plan's transforms or corrections gave other values."""
    layers = job.model.summary.by_name
    changed = {layers[name].parameter for name in job.model.overrides.weights}
    return changed | set(job.model.overrides.others) | set(job.quantized.others)


def _shards(method: Method, job: Job) -> dict[str, list[Entry]]:
    """Return the entries of every file, each tensor where the original has it; new ones lie in the last file."""
    origin, changed = job.origin, _changed(job)
    shards: dict[str, list[Entry]] = {file: [] for file in origin.files}
    packed = {name: (layer, stored) for name, layer, stored in job.modules()}
    owned = {entry.name: entry for entry in other_entries(job.quantized, job.model)} | _casts(job)
    parameters = {name: parameter for parameter, name in origin.names.items()}
    left = {layer.parameter for layer in job.model.summary.tied}
    for name, tensor in origin.store.tensors.items():
        shard, parameter = shards[origin.shards[name]], parameters.get(name, name)
        if name in packed:
            shard += _within(name, method, *packed.pop(name), job)
        elif name in origin.stacks and is_new(tensor, origin.stacks[name].parameters, owned, changed):
            shard.append(stacked_entry(name, origin.stacks[name], owned))
        elif parameter in owned and (parameter in changed or owned[parameter].dtype != tensor.dtype):
            shard.append(replace(owned[parameter], name=name))
        elif parameter not in left:
            load = partial(origin.store.read, name)
            shard.append(Entry(name=name, dtype=tensor.dtype, shape=tensor.shape, load=load))
    for parameter, (layer, stored) in packed.items():  # heads that got a weight of their own
        shards[origin.files[-1]] += _within(parameter, method, layer, stored, job)
    new = [owned[name] for name in changed & owned.keys() - origin.names.keys() - origin.stacked]
    shards[origin.files[-1]] += new
    return {file: entries for file, entries in shards.items() if entries}


def _casts(job: Job) -> dict[str, Entry]:
    """Return the layers that the plan stores in plain numbers, in their dtype."""
    entries = {}
    for layer in job.model.summary.stored:
        stored = job.quantized.tensors.get(layer.name)
        scheme = None if stored is None else parse_scheme(stored.scheme)
        if stored is not None and isinstance(scheme, CastScheme):
            dtype = DTYPES[scheme.element.name]

            def load(layer: Layer = layer, stored: QuantizedTensor = stored, dtype: str = dtype) -> torch.Tensor:
                import torch

                values = parse_scheme(stored.scheme).decode(stored)
                return (layer.tensor_of(values) if values.shape == layer.matrix else values).to(getattr(torch, dtype))

            for piece in job.origin.pieces.get(layer.parameter, ()):
                own = stored_rows(stored, piece.rows)
                part = partial(load, stored=own)
                entries[piece.name] = Entry(name=piece.name, dtype=dtype, shape=own.shape, load=part)
            entries[layer.parameter] = Entry(name=layer.parameter, dtype=dtype, shape=layer.shape, load=load)
    return entries


def _within(weight: str, method: Method, layer: Layer, stored: QuantizedTensor, job: Job) -> Iterator[Entry]:
    """Return what stands for a layer's weight, under whole names."""
    module, calibrated = weight.rpartition(".")[0], job.quantized.ranges.get((layer.name, "input"))
    entries = method.entries(stored, job.assignments[layer.name].inputs, calibrated)
    if (stack := job.origin.stacks.get(weight)) is not None:
        entries = (replace(entry, shape=(*stack.shape[:2], *entry.shape[1:])) for entry in entries)
    return (replace(entry, name=f"{module}.{entry.name}" if module else entry.name) for entry in entries)


def _write_shards(
    method: Method, job: Job, shards: Mapping[str, list[Entry]], folder: Path, progress: Progress
) -> None:
    total = sum(entry.nbytes for entries in shards.values() for entry in entries)
    done, metadata = 0, _metadata(method, job, shards)
    for file, entries in shards.items():
        size = sum(entry.nbytes for entry in entries)
        part = part_of(progress, done / max(total, 1), (done + size) / max(total, 1))
        write_safetensors(folder / file, entries, metadata, part)
        done += size
    if len(shards) > 1:
        weight_map = {entry.name: file for file, entries in shards.items() for entry in entries}
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
        text = json.dumps(index, indent=2, ensure_ascii=False) + "\n"
        (folder / "model.safetensors.index.json").write_text(text, encoding="utf-8")


def _metadata(method: Method, job: Job, shards: Mapping[str, list[Entry]]) -> dict[str, str]:
    """Return what the header of every file says."""
    names = [entry.name for entries in shards.values() for entry in entries]
    return {"format": "pt", **method.metadata(job, names)}


def _prove(method: Method, job: Job, shards: Mapping[str, list[Entry]], folder: Path, progress: Progress) -> None:
    """Raise ExportError unless the libraries read the evaluated values out of the folder."""
    from workbench.models.sources.stored import tensors_in_files

    store = tensors_in_files([folder / file for file in shards], ExportError, passing=True)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    modules: dict[str, list[str]] = {}
    for name in store.tensors:
        modules.setdefault(name.rpartition(".")[0], []).append(name)
    read, weights = set(), list(job.modules())
    for number, (name, layer, stored) in enumerate(weights):
        progress(number / max(len(weights), 1), f"checking {layer.name}")
        module = name.rpartition(".")[0]
        tensors = {name.rpartition(".")[2]: store.read(name) for name in modules.get(module, ())}
        if name in job.origin.stacks:
            tensors = {part: tensor.flatten(0, 1) for part, tensor in tensors.items()}
            stored = replace(stored, arrays=dict(stored.arrays))
        if layer.parameter in job.origin.pieces or name in job.origin.stacks:
            layer = replace(layer, name=module, kind=LayerKind.LINEAR)
        layer = replace(layer, parameter=name)
        _prove_weight(method, layer, tensors, stored, {**config, "__metadata__": store.metadata})
        put_away_again()
        read |= {each for each in modules[module] if not each.endswith(".bias") and store.tensors[each].nbytes > FEW}
    others = [entry for entries in shards.values() for entry in entries if entry.name not in read]
    prove_bytes(store, others)


def _prove_weight(
    method: Method, layer: Layer, tensors: Mapping[str, torch.Tensor], stored: QuantizedTensor,
    config: Mapping[str, Any],
) -> None:  # fmt: skip
    """Raise ExportError unless the library reads a layer's evaluated values, a band of rows at a time."""
    scheme = parse_scheme(stored.scheme)
    whole = None if scheme.rows_apart else scheme.decode(stored)
    high = scheme.granularity.rows if isinstance(scheme.granularity, PerBlock) else 1

    def prove(rows: slice) -> None:
        evaluated = whole[rows] if whole is not None else scheme.decode(stored_rows(stored, rows))
        try:
            values, ulps = method.read(layer, tensors, stored, config, rows)
        except (RuntimeError, ValueError, TypeError, KeyError, IndexError) as error:
            raise ExportError(
                f"{layer.name} in {stored.scheme} cannot be read back from {method.what}: {first_line(error)}"
            ) from error
        require_equal(layer.name, values, evaluated, ulps=ulps, start=rows.start)

    if method.reads_whole:
        prove(slice(0, stored.shape[0]))
    else:
        in_parallel(prove, row_tiles(*stored.shape, multiple=32 * high, elements=BAND))


def unpacked_words(words: torch.Tensor, count: int, bits: int) -> torch.Tensor:
    """Return ``count`` codes a row, int64, of rows of 32-bit words that hold a stream of bits, the lowest first."""
    import torch

    wide = torch.nn.functional.pad(words.view(torch.int32).long() & 0xFFFFFFFF, (0, 1))
    first = torch.arange(count) * bits
    low, shift = first // 32, first % 32
    both = wide[:, low] | (wide[:, low + 1] << 32)
    return torch.bitwise_and(both >> shift, 2**bits - 1)
