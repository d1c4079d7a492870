"""What transformers calls a checkpoint's tensors: since version 5 many have other names in the network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def loaded_names(network: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the parameter that each tensor of a checkpoint becomes, unchanged; tensors of another kind are left out.

    ``network`` may be on the meta device.  Empty for networks that are not of transformers.
    """
    from workbench.models.sources.lean_transformers import transformers

    if not isinstance(network, transformers.PreTrainedModel):
        return {}
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

    changes = get_model_conversion_mapping(network)
    converters = [change for change in changes if isinstance(change, WeightConverter)]
    renamings = [change for change in changes if isinstance(change, WeightRenaming)]
    state, loaded = network.state_dict(), {}
    for name in names:
        new, pattern = rename_source_key(name, renamings, converters, network.base_model_prefix, state)
        if pattern is None and new in state:
            loaded[name] = new
    return loaded
