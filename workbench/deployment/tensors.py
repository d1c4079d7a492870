"""The tensors of a quantized model under the names and in the shapes that the model stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import ExportError
from workbench.models.layer import Layer
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import KEEP, resolve
from workbench.planning.totals import totals

if TYPE_CHECKING:
    import torch

    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One tensor of a file to be: ``dtype`` by torch's name, ``load`` gives its bytes as uint8 ``[nbytes]``."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    load: Callable[[], np.ndarray]


def check(quantized: QuantizedModel, model: Model | None) -> Model:
    """Return ``model`` as the plan's transforms left it, with tensors that are not quantized as they are evaluated.

    Raises if it is missing, is another one, or if a tensor of the plan was not quantized.

    Layers that could not be quantized (``left``) may be missing: the quantizer keeps them and says why.
    """
    if model is None:
        raise ExportError("this export reads the model's weights: open the model and export again")
    model = quantized.rewritten(model)
    for name, assignment in resolve(quantized.plan, model.summary.layers).items():
        layer = model.summary.by_name[name]
        required = layer.tied_to is None and assignment.weights != KEEP and name not in quantized.left
        if required and name not in quantized.tensors:
            raise ExportError(f"the plan gives {name} the scheme {assignment.weights}, but it was not quantized")
    return model


def expected_nbytes(quantized: QuantizedModel, model: Model) -> int:
    """Return the bytes of all tensors under the plan, with what could not be quantized kept as it is."""
    assignments = resolve(quantized.plan, model.summary.layers)
    for layer in model.summary.stored:
        if layer.name not in quantized.tensors:
            assignments[layer.name] = replace(assignments[layer.name], weights=KEEP)
    return totals(model.summary, assignments).nbytes


def refuse_quantized_activations(quantized: QuantizedModel, model: Model, kind: str) -> None:
    """Raise ExportError if the plan quantizes inputs or a KV cache, which a file of weights cannot say."""
    given = resolve(quantized.plan, model.summary.layers)
    inputs = [name for name, assignment in given.items() if assignment.inputs is not None]
    cached = [name for name, assignment in given.items() if assignment.cache is not None]
    for layers, what, schemes in (
        (inputs, "the inputs", "the input schemes"), (cached, "the KV cache", "the cache schemes")
    ):  # fmt: skip
        if layers:
            raise ExportError(
                f"the plan quantizes {what} of {len(layers)} layers ({layers[0]}, ...), which {kind} cannot say: who "
                "loads it would compute something else than was evaluated; export to script or safetensors, or take "
                f"{schemes} out of the plan"
            )


def kept_entries(quantized: QuantizedModel, model: Model) -> Iterator[Entry]:
    """Yield what is stored as it is: layers that the plan keeps, norms, biases, buffers; tied tensors once."""
    for layer in model.summary.stored:
        if layer.name not in quantized.tensors:
            yield Entry(
                name=layer.parameter,
                dtype=layer.dtype,
                shape=layer.shape,
                load=partial(kept_bytes, model, layer),
            )
    for tensor in model.summary.kept:
        yield Entry(
            name=tensor.name, dtype=tensor.dtype, shape=tensor.shape,
            load=partial(_kept_tensor_bytes, quantized, model, tensor.name),
        )  # fmt: skip


def decoded_entries(quantized: QuantizedModel, model: Model) -> Iterator[Entry]:
    """Yield every quantized tensor, decoded to float32, in the shape that the model stores it."""
    for layer in model.summary.stored:
        if layer.name in quantized.tensors:
            yield Entry(
                name=layer.parameter, dtype="float32", shape=layer.shape,
                load=partial(_decoded_bytes, quantized, layer),
            )  # fmt: skip


def decoded(quantized: QuantizedModel, layer: Layer) -> torch.Tensor:
    """Return the float32 values of a quantized layer in its stored shape."""
    stored = quantized.tensors[layer.name]
    return stored_form(layer, parse_scheme(stored.scheme).decode(stored))


def stored_form(layer: Layer, matrix: torch.Tensor) -> torch.Tensor:
    """Return the matrix of outputs x inputs as the tensor that the model stores: the view's permutation undone."""
    back = sorted(range(len(layer.axes)), key=lambda position: layer.axes[position])
    return matrix.reshape([layer.shape[axis] for axis in layer.axes]).permute(back)


def kept_bytes(model: Model, layer: Layer) -> np.ndarray:
    """Return the bytes of a layer's weight as the model stores it."""
    return tensor_bytes(stored_form(layer, model.weight(layer.name)))


def _kept_tensor_bytes(quantized: QuantizedModel, model: Model, name: str) -> np.ndarray:
    """Return the bytes of a norm, a bias or a buffer: the corrected one where there is one."""
    tensor = model.kept(name)
    return tensor_bytes(quantized.kept.get(name, tensor).to(tensor.dtype))


def _decoded_bytes(quantized: QuantizedModel, layer: Layer) -> np.ndarray:
    return tensor_bytes(decoded(quantized, layer))


def tensor_bytes(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor's bytes, row-major and little-endian, as uint8 ``[nbytes]``."""
    import torch

    flat = tensor.detach().cpu().contiguous().reshape(-1)
    data: np.ndarray = flat.view(torch.uint8).numpy() if flat.numel() else np.zeros(0, np.uint8)
    return data


def array_entries(name: str, arrays: Mapping[str, np.ndarray]) -> Iterator[Entry]:
    """Yield one entry for each stored array of a quantized tensor: ``<name>.codes``, ``<name>.scales``, ..."""
    for part, array in arrays.items():
        yield Entry(
            name=f"{name}.{part}", dtype=array.dtype.name, shape=array.shape,
            load=partial(array_bytes, array),
        )  # fmt: skip


def array_bytes(array: np.ndarray) -> np.ndarray:
    """Return an array's bytes as uint8 ``[nbytes]``."""
    flat: Any = np.ascontiguousarray(array).reshape(-1)
    data: np.ndarray = flat.view(np.uint8)
    return data
