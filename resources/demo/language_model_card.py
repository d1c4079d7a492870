"""Measure the demo language model as written to disk, and describe it in its model card."""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass
from pathlib import Path

import torch
from python_documentation import Document, joined
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

GROUP = 32
WINDOW, LONG_WINDOW = 256, 512  # tokens; the last fifth of the training sees long windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Cross-entropy over `tokens` scored tokens that stand for `size` bytes of UTF-8."""

    nats: float
    tokens: int
    size: int

    @property
    def perplexity(self) -> float:
        """exp(nats per token)."""
        return math.exp(self.nats / self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """Independent of the tokenizer."""
        return self.nats / math.log(2.0) / self.size


def token_ids(tokenizer: PreTrainedTokenizerFast, text: str) -> torch.Tensor:
    """Token ids, int64, shape (tokens,)."""
    return torch.tensor(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"], dtype=torch.int64)


def loss_of(model: LlamaForCausalLM, windows: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    """Cross-entropy in nats of every token of `windows` (batch, length) but each window's first."""
    logits = model(input_ids=windows, use_cache=False).logits[:, :-1].float()
    return functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction=reduction)


def measure(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, text: str, length: int = WINDOW) -> Measured:
    """Score `text` in windows of `length` tokens that do not overlap; a short last window is left out."""
    ids = token_ids(tokenizer, text)
    windows = ids[: len(ids) // length * length].view(-1, length)
    scored = windows[:, 1:].flatten().tolist()
    with torch.inference_mode():
        nats = math.fsum(float(loss_of(model.eval(), batch, "sum")) for batch in torch.split(windows, 16))
    size = sum(map(len, tokenizer.convert_ids_to_tokens(scored)))
    return Measured(nats=nats, tokens=len(scored), size=size)


def rounded(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """Symmetric integers, one scale for each GROUP inputs: s = max|w| / (2^(bits-1) - 1), w' = s * round(w / s)."""
    top = 2 ** (bits - 1) - 1
    groups = torch.unflatten(weight, -1, (-1, GROUP))
    scale = (groups.abs().amax(-1, keepdim=True) / top).clamp_min(torch.finfo(weight.dtype).tiny)
    codes: torch.Tensor = (groups / scale).round().clamp(-top, top)
    return torch.flatten(scale * codes, -2)


def block_layers(model: LlamaForCausalLM) -> list[torch.nn.Linear]:
    """The linear layers of the decoder blocks; the embedding, tied to the output head, is not among them."""
    return [m for m in model.model.layers.modules() if isinstance(m, torch.nn.Linear)]


def table(folder: Path, text: str) -> list[tuple[str, Measured]]:
    """Reload the written model and measure it as stored, then with its blocks' linear layers rounded."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    rows: list[tuple[str, Measured]] = []
    for bits in (None, 8, 4, 3, 2):
        model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
        if bits is not None:
            for layer in block_layers(model):
                layer.weight.data = rounded(layer.weight.data, bits)
        name = "float16, as stored" if bits is None else f"int{bits}, group of {GROUP}"
        rows.append((name, measure(model, tokenizer, text)))
        print(f"{rows[-1][0]:24s} perplexity {rows[-1][1].perplexity:9.3f}  bits/byte {rows[-1][1].bits_per_byte:.3f}")
    return rows


CARD = """# Demo language model

A small decoder for trying the workbench on. It continues English about Python; it knows nothing else and is meant for
nothing but demonstrations and tests of quantization.

| | |
|---|---|
| architecture | Llama: {layers} blocks, hidden {hidden}, {heads} heads of {head_dim}, {kv_heads} KV heads, FFN {ffn}, \
{positions} positions, embedding tied to the output head |
| parameters | {parameters:,}, of which {linear_parameters:,} in the {linear_layers} linear layers of the blocks |
| tokenizer | byte-level BPE, {vocabulary} tokens, GPT-2 pre-tokenizer |
| stored as | float16 safetensors; load it with `AutoModelForCausalLM.from_pretrained(folder)` |
| training | {training} |
| made by | `python resources/demo/train_language_model.py` with Python {python}, torch {torch} |

## Data and licence

The docstrings of the standard library and the language reference (`pydoc_data.topics`) of Python {python}. Copyright
Python Software Foundation and contributors, licence PSF-2.0, in `../text/LICENSE.txt` with the notices of incorporated
software. Changes made: paragraphs that occur twice are kept once; paragraphs with e-mail addresses or folder names are
left out. The split is by document (module or topic), so no paragraph is in two parts:

| part | documents | bytes | tokens |
|---|---:|---:|---:|
{parts}

## Measured

On `../text/evaluation.txt`: {scored:,} scored tokens, windows of {window} tokens that do not overlap, the first token
of each not scored, float32 arithmetic. Rounded rows: the {linear_layers} linear layers of the blocks, symmetric
integers to nearest, one scale for each {group} inputs, scale = max |w| / (2^(bits-1) - 1); the embedding stays as
it is.

| linear layers | perplexity | bits per byte |
|---|---:|---:|
{rows}

In windows of {long_window} tokens, as stored: perplexity {long_perplexity:.2f}.
"""


def card(folder: Path, parts: dict[str, list[Document]], training: str) -> str:
    """The model card, measured on the files as written."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    evaluation = (folder.parent / "text" / "evaluation.txt").read_text(encoding="utf-8")
    config, layers, rows = model.config, block_layers(model), table(folder, evaluation)
    texts = {name: joined(part) for name, part in parts.items()}
    counts = {name: len(token_ids(tokenizer, text)) for name, text in texts.items()}
    return CARD.format(
        layers=config.num_hidden_layers, hidden=config.hidden_size, heads=config.num_attention_heads,
        head_dim=config.hidden_size // config.num_attention_heads, kv_heads=config.num_key_value_heads,
        ffn=config.intermediate_size, positions=config.max_position_embeddings, vocabulary=config.vocab_size,
        parameters=model.num_parameters(), linear_layers=len(layers), group=GROUP,
        linear_parameters=sum(layer.weight.numel() for layer in layers), training=training,
        window=WINDOW, long_window=LONG_WINDOW,
        python=platform.python_version(), torch=torch.__version__.split("+")[0], scored=rows[0][1].tokens,
        parts="\n".join(f"| {n} | {len(parts[n])} | {len(t.encode()):,} | {counts[n]:,} |" for n, t in texts.items()),
        rows="\n".join(f"| {name} | {m.perplexity:.2f} | {m.bits_per_byte:.3f} |" for name, m in rows),
        long_perplexity=measure(model, tokenizer, evaluation, LONG_WINDOW).perplexity,
    )  # fmt: skip
