"""The block formats of GGUF files (llama.cpp)."""
