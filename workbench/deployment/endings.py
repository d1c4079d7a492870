"""How the names of exported files end, and what they hold."""

from __future__ import annotations

from workbench import content_kind

ENDINGS = {
    "plan": ".json", "script": ".py", "safetensors": ".safetensors", "state-dict": ".safetensors", "gguf": ".gguf",
    "huggingface": "", "compressed-tensors": "", "gptq": "", "mlx": "", "torchao": "",
    "onnx": ".onnx", "onnx-genai": "",
}  # fmt: skip
"""How the names of what is written end; a folder's has no ending.  Other endings than these are the user's affair."""

CONTENTS = {
    ".json": content_kind.PLAN, ".safetensors": "a safetensors file", ".gguf": "a GGUF file", ".onnx": "an ONNX file",
}  # fmt: skip
"""What a file of each ending holds, as :func:`workbench.content_kind.content_kind` says it."""


def renamed(place: str, before: str, kind: str) -> str:
    """Return the name of a file of the kind ``before`` as that of another kind; one with an ending of its own stays."""
    old, new = ENDINGS.get(before), ENDINGS.get(kind)
    if not place or old is None or new is None or not place.lower().endswith(old):
        return place
    return place[: len(place) - len(old)] + new
