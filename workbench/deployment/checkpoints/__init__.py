"""Quantized checkpoints of the Hugging Face layout: config.json, shards under the original names, tokenizer."""
