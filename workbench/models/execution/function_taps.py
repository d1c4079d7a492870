"""Layers whose weight is used without calling their module: tapped at the function that multiplies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode

from workbench.models.execution.experts import AllExperts, ExpertProducts
from workbench.models.execution.products import PRODUCTS, Product
from workbench.models.layer import LayerKind
from workbench.models.model import ExpertTap, Replacement, Routed, Tap


class FunctionTaps(TorchFunctionMode):
    """Calls ``tap(layer, input, output)`` after each product of a layer, and replaces inputs and outputs.

    ``tensors`` maps layers to the weights that this run uses, ``kinds`` to what they do, ``samples`` to the axis of
    their input along which the samples lie: the tap sees that axis first.  ``mixtures`` finds the products of experts,
    which ``experts`` taps; ``again`` is open while the mode is.
    """

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], kinds: Mapping[str, LayerKind], samples: Mapping[str, int],
        tap: Tap | None, inputs: Mapping[str, Replacement], outputs: Mapping[str, Replacement],
        mixtures: ExpertProducts, experts: ExpertTap | None, again: AllExperts | None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._layers = {(tensor.data_ptr(), kinds[name]): name for name, tensor in tensors.items()}
        self._sizes = {name: tensor.numel() for name, tensor in tensors.items()}
        self._samples, self._tap, self._inputs, self._outputs = samples, tap, inputs, outputs
        self._mixtures, self._experts, self._again = mixtures, experts, again

    def __enter__(self) -> Self:
        if self._again is not None:
            self._again.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *failure: Any) -> None:
        super().__exit__(*failure)  # type: ignore[no-untyped-call]
        if self._again is not None:
            self._again.__exit__(*failure)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        reader = PRODUCTS.get(func)
        for product in reader(args, kwargs) if reader is not None else ():
            name = self._layers.get((product.weight.data_ptr(), product.kind))
            if name is not None and product.weight.numel() == self._sizes[name]:
                return self._run(name, product, func, args, kwargs)
            mixture = self._mixtures.find(product)
            if mixture is not None:
                return self._run(mixture[0], product, func, args, kwargs, mixture[1])
        result = func(*args, **kwargs)
        self._mixtures.note(func, args, result)
        return result

    def _run(
        self, name: str, product: Product, func: Any, args: Any, kwargs: Any,
        rows: Callable[[torch.Tensor], Routed] | None = None,
    ) -> Any:  # fmt: skip
        axis = self._samples.get(name, 0)

        def seen(tensor: torch.Tensor) -> torch.Tensor:
            tensor = tensor.movedim(axis, 0) if axis else tensor
            return tensor.mT if product.left else tensor

        def back(tensor: torch.Tensor) -> torch.Tensor:
            tensor = tensor.mT if product.left else tensor
            return tensor.movedim(0, axis) if axis else tensor

        x = seen(product.x)
        operand = product.x
        if name in self._inputs:
            x = self._inputs[name](x)
            operand = back(x)
        if isinstance(product.place, str):
            kwargs = {**kwargs, product.place: operand}
        elif product.place is not None:
            args = (*args[: product.place], operand, *args[product.place + 1 :])
        output = seen(func(*args, **kwargs))
        if name in self._outputs:
            output = self._outputs[name](output)
        if rows is not None and self._experts is not None:
            seen_by = replace(rows(output), again=self._again is not None and self._again.running)
            x = x.expand(*output.shape[:-1], x.shape[-1])
            self._experts(name, seen_by.of_tokens(x), x, output)
        elif self._tap is not None and rows is None:
            self._tap(name, x, output)
        moved = axis or product.left
        return back(output).clone() if moved else output  # a copy: what writes into a view would pass by the tap
