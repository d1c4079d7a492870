"""Train the demo language model: a small Llama on the documentation that ships with Python.

Run from anywhere:  python resources/demo/train_language_model.py
Writes beside this file: language-model/ (weights, tokenizer, README.md) and text/ (calibration, evaluation, licence).
The text comes from the running interpreter, so another Python version gives a slightly different model.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path

import torch
from language_model_card import LONG_WINDOW, WINDOW, card, loss_of, measure, token_ids
from python_documentation import Document, documents, joined, licence, split
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

HERE = Path(__file__).resolve().parent
END = "<|endoftext|>"


def make_tokenizer(train: list[Document], vocabulary: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE with GPT-2's pre-tokenizer; every token's text has one character for each byte."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator((d.text for d in train), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END,
        eos_token=END,
        pad_token=END,
        model_max_length=LONG_WINDOW,
        clean_up_tokenization_spaces=False,
    )


def save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """tokenizer.json and tokenizer_config.json, with the class name that transformers 4 and 5 both know."""
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    entries = json.loads(path.read_text(encoding="utf-8")) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    entries.pop("backend", None)
    path.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8", newline="\n")


def schedule(step: int, steps: int) -> float:
    """Share of the peak learning rate: linear warm-up, then a cosine down to 2 %."""
    warm = max(1, steps // 20)
    if step < warm:
        return (step + 1) / warm
    return 0.02 + 0.49 * (1.0 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def fit(model: LlamaForCausalLM, stream: torch.Tensor, options: argparse.Namespace) -> Iterator[tuple[int, float]]:
    """AdamW on windows cut from `stream` (tokens,) at random places; bfloat16 products, float32 weights.

    Yields every hundredth step and its training loss in nats.
    """
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": options.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.95))
    cosine = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule(step, options.steps))
    generator = torch.Generator().manual_seed(options.seed)
    for step in range(options.steps):
        length = WINDOW if step < 0.8 * options.steps else LONG_WINDOW
        starts = torch.randint(0, len(stream) - length + 1, (options.batch_tokens // length, 1), generator=generator)
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model.train(), stream[starts + torch.arange(length)])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        cosine.step()
        optimizer.zero_grad()
        if (step + 1) % 100 == 0:
            yield step + 1, loss.item()


def arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=HERE, help="folder that gets language-model/ and text/")
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--weight-decay", type=float, default=0.3)
    parser.add_argument("--held-out", type=int, default=150_000, help="characters of each text not trained on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    """Data, tokenizer, training, files, measurements."""
    options = arguments()
    logging.disable_progress_bar()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # a debugging aid that costs a tenth of the time
    train, calibration, evaluation = split(documents(), options.held_out)
    folder, texts = options.output / "language-model", options.output / "text"
    texts.mkdir(parents=True, exist_ok=True)
    (texts / "calibration.txt").write_text(joined(calibration), encoding="utf-8", newline="\n")
    (texts / "evaluation.txt").write_text(joined(evaluation), encoding="utf-8", newline="\n")
    (texts / "LICENSE.txt").write_text(licence(), encoding="utf-8", newline="\n")
    tokenizer = make_tokenizer(train, vocabulary=1024)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=LONG_WINDOW, tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    for step, loss in fit(model, token_ids(tokenizer, END + joined(train, END)), options):
        watched = measure(model, tokenizer, joined(calibration)[:50_000]).perplexity
        print(f"step {step:5d}  training perplexity {math.exp(loss):6.2f}  calibration {watched:6.2f}", flush=True)
    model.half().save_pretrained(folder)
    save_tokenizer(tokenizer, folder)
    parts = {"train": train, "calibration": calibration, "evaluation": evaluation}
    training = (
        f"{options.steps} steps of {options.batch_tokens} tokens, AdamW (rate {options.rate}, weight decay "
        f"{options.weight_decay}), cosine schedule, windows of {WINDOW} tokens, "
        f"then of {LONG_WINDOW} for the last fifth"
    )
    (folder / "README.md").write_text(card(folder, parts, training), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
