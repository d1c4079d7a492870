"""GGUF files (llama.cpp): the container, the architectures, the tokenizers, in both directions."""
