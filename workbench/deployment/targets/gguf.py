"""What llama.cpp runs."""

from __future__ import annotations

from workbench.deployment.targets.runtime import HALVES, PRODUCTS, Runtime
from workbench.models.layer import LayerKind
from workbench.planning.acceptance import Acceptance

GGUF = Runtime(
    name="gguf", title="GGUF (llama.cpp)", source="github.com/ggml-org/ggml: docs/gguf.md and ggml-quants",
    kinds=PRODUCTS | {LayerKind.EMBEDDING},
    accepts=(
        Acceptance(title="GGUF blocks", weights=("q?_?", "q?_k", "iq4_nl", "mxfp4-gguf", "tq?_0"), whole_groups=True,
                   native=False),
        HALVES,
    ),
)  # fmt: skip
