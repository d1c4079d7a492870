"""Layers whose weight is used without calling their module: tapped at the function that multiplies it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from workbench.models.execution.products import PRODUCTS, Product
from workbench.models.layer import LayerKind
from workbench.models.model import Replacement, Tap


class FunctionTaps(TorchFunctionMode):
    """Calls ``tap(layer, input, output)`` after each product of a layer, and replaces inputs and outputs.

    ``tensors`` maps layers to the weights that this run uses, ``kinds`` to what they do, ``samples`` to the axis of
    their input along which the samples lie: the tap sees that axis first.
    """

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], kinds: Mapping[str, LayerKind], samples: Mapping[str, int],
        tap: Tap | None, inputs: Mapping[str, Replacement], outputs: Mapping[str, Replacement],
    ) -> None:  # fmt: skip
        super().__init__()
        self._layers = {(tensor.data_ptr(), kinds[name]): name for name, tensor in tensors.items()}
        self._sizes = {name: tensor.numel() for name, tensor in tensors.items()}
        self._samples, self._tap, self._inputs, self._outputs = samples, tap, inputs, outputs

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        reader = PRODUCTS.get(func)
        for product in reader(args, kwargs) if reader is not None else ():
            name = self._layers.get((product.weight.data_ptr(), product.kind))
            if name is not None and product.weight.numel() == self._sizes[name]:
                return self._run(name, product, func, args, kwargs)
        return func(*args, **kwargs)

    def _run(self, name: str, product: Product, func: Any, args: Any, kwargs: Any) -> Any:
        axis = self._samples.get(name, 0)

        def seen(tensor: torch.Tensor) -> torch.Tensor:
            tensor = tensor.movedim(axis, 0) if axis else tensor
            return tensor.mT if product.left else tensor

        def back(tensor: torch.Tensor) -> torch.Tensor:
            tensor = tensor.mT if product.left else tensor
            return tensor.movedim(0, axis) if axis else tensor

        x = seen(product.x)
        given = product.x
        if name in self._inputs:
            x = self._inputs[name](x)
            given = back(x)
        if isinstance(product.place, str):
            kwargs = {**kwargs, product.place: given}
        else:
            args = (*args[: product.place], given, *args[product.place + 1 :])
        output = seen(func(*args, **kwargs))
        if name in self._outputs:
            output = self._outputs[name](output)
        if self._tap is not None:
            self._tap(name, x, output)
        moved = axis or product.left
        return back(output).clone() if moved else output  # a copy: what writes into a view would pass by the tap
