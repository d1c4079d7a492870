"""How the names of exported files end."""

from __future__ import annotations

ENDINGS = {
    "plan": ".json", "script": ".py", "safetensors": ".safetensors", "state-dict": ".safetensors", "gguf": ".gguf",
    "huggingface": "", "compressed-tensors": "", "gptq": "", "mlx": "", "torchao": "",
    "onnx": ".onnx", "onnx-genai": "",
}  # fmt: skip
"""How the names of what is written end; a folder's has no ending.  Other endings than these are the user's affair."""
