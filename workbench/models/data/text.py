"""Text as a model expects it: windows of running text, or sentences with special tokens, padding and masks."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.errors import DataError, first_line
from workbench.limited import SECONDS, limited
from workbench.models.data.inputs import InputSpec, fast_tokenizer
from workbench.models.data.tables import messages_of
from workbench.models.data.tokenizing import Rows, texts_of, tokenized
from workbench.models.data.tried import tried
from workbench.models.readers.tokenizer import require_tokenizer
from workbench.plain_file import decoded, read_bytes, read_json

LONGEST_SENTENCE = 512
"""Tokens after which a sentence is cut where nothing is asked for and the model could take more."""

NO_LIMIT = int(1e30)
"""Tokens that a tokenizer takes where its settings do not say: transformers' own number."""

LONGEST_CHAT, CHAT_GROWTH = 1 << 16, 16
"""Characters that a chat template writes at most: a prompt and tools of its own, and so many times the conversation."""

ROWS_PER_SECOND, CHAT_MEMORY = 100, 1 << 28
"""Conversations that a chat template writes in a second at least; bytes that any template may take."""

SETTINGS = (".json", ".jinja", ".model", ".spm", ".txt")
"""What a tokenizer is made of: it is loaded again when one of these files has changed."""

OTHER_FILES = ("vocab", "merges", "gguf_file", "init_inputs")
"""Settings of a tokenizer that transformers takes for paths, and that it never writes."""


def read_text(file: Path, spec: InputSpec) -> str:
    """Return a text file's text; raises DataError for what is not text, or where the model takes none."""
    if spec.tokens is False:
        raise DataError(f"{file} is text, but the model does not take token ids; give images or arrays")
    try:
        text = decoded(read_bytes(file))
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read as UTF-8 text: {error}") from None
    if not text.strip():
        raise DataError(f"{file} is empty; give a text")
    return text


def encode(text: str, spec: InputSpec, file: Path) -> list[int]:
    """Return the token ids of ``text`` without special tokens; raises DataError where the model has no tokenizer."""
    tokenizer = fast_tokenizer(spec.tokenizer)
    if tokenizer is None:
        return ids_of([text], spec, file, add_special_tokens=False)[0]
    tokenizer.no_truncation()
    tokenizer.no_padding()
    assert spec.tokenizer is not None

    def work() -> list[Rows]:
        return [[tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids]]  # without each token's place

    ((ids,),) = tokenized(work, spec.tokenizer, [text])
    return ids


def ids_of(texts: Sequence[str], spec: InputSpec, file: Path, **options: Any) -> list[list[int]]:
    """Return the token ids of each text by transformers' tokenizer of the model's folder; raises DataError."""
    tokenizer, folder = tokenizer_of(spec, file), spec.tokenizer
    assert folder is not None
    return tokenized(lambda: [tokenizer(list(texts), verbose=False, **options)["input_ids"]], folder, texts)[0]


def tokenizer_of(spec: InputSpec, file: Path) -> Any:
    """Return the tokenizer of the model's folder as transformers loads it; raises DataError where there is none."""
    if spec.tokenizer is None:
        raise DataError(
            f"{file} is text, but the model has no tokenizer; put tokenizer.json into its folder, or give token "
            "windows (.npy)"
        )
    if (spec.tokenizer / "tokenizer.json").is_file():
        require_tokenizer(spec.tokenizer / "tokenizer.json")
    if spec.tokenizer.is_file():
        return _in_file(spec.tokenizer, spec.tokenizer.stat().st_mtime_ns)
    try:
        settings = sorted(each for each in spec.tokenizer.iterdir() if each.suffix in SETTINGS)
        return _loaded(spec.tokenizer, tuple((each.name, each.stat().st_mtime_ns) for each in settings))
    except DataError:
        raise
    except Exception as error:  # transformers raises nearly everything for a folder that it does not understand
        raise DataError(f"the tokenizer in {spec.tokenizer} cannot be used: {first_line(error)}") from error


@lru_cache(maxsize=2)
def _in_file(file: Path, changed: int) -> Any:
    """Return the tokenizer in a GGUF file, which holds the very tokens, as transformers knows one."""
    from workbench.models.sources.lean_transformers import transformers

    own: Any = transformers.PreTrainedTokenizerFast
    return own(tokenizer_object=fast_tokenizer(file), model_max_length=NO_LIMIT)


@lru_cache(maxsize=2)
def _loaded(folder: Path, changed: tuple[tuple[str, int], ...]) -> Any:
    from workbench.models.sources.lean_transformers import quiet, transformers

    if not ((folder / "config.json").is_file() or (folder / "tokenizer_config.json").is_file()):
        plain: Any = transformers.PreTrainedTokenizerFast
        return plain(tokenizer_file=str(folder / "tokenizer.json"))
    _require_own_files(folder / "tokenizer_config.json")
    nbytes = sum((folder / name).stat().st_size for name, _ in changed)
    load = partial(
        transformers.AutoTokenizer.from_pretrained, str(folder), local_files_only=True, trust_remote_code=False
    )
    with quiet():
        own = tried(load, f"the tokenizer in {folder}", folder, nbytes)
    if not isinstance(own, transformers.PreTrainedTokenizerBase):
        raise ValueError(f"{type(own).__name__} does not tokenize a single text")
    longest: Any = own.model_max_length
    if isinstance(longest, bool) or not isinstance(longest, int | float) or not longest >= 1:
        own.model_max_length = NO_LIMIT
    return own


def _require_own_files(file: Path) -> None:
    """Raise DataError for settings by which transformers reads other files than the folder's own."""
    settings = read_json(file) if file.is_file() else {}
    named = [name for name in OTHER_FILES if isinstance(settings, dict) and isinstance(settings.get(name), str | list)]
    if any(settings[name] for name in named):
        raise DataError(f"{file} names files of its own ({named[0]}), which are not read; remove that entry")


@dataclass(frozen=True, slots=True)
class Transcriber:
    """Token ids and frames of speech as text, by the tokenizer of a folder; raises DataError where that fails."""

    tokenizer: Any
    folder: Path

    def written(self, rows: Rows) -> list[str]:
        """Return transcripts' ids as text."""
        options = {"group_tokens": False} if hasattr(self.tokenizer, "word_delimiter_token") else {}
        return texts_of(partial(self.tokenizer.decode, skip_special_tokens=True, **options), self.folder, rows)

    def heard(self, rows: Rows) -> list[str]:
        """Return the texts of frames' likeliest ids: each run of an id once, without blanks."""
        blank = self.tokenizer.pad_token_id
        return self.written([[each for each, _ in groupby(frames) if each != blank] for frames in rows])


def first_tokens(spec: InputSpec, file: Path) -> list[int]:
    """Return the special tokens that the tokenizer puts before a text, such as Gemma's BOS; an encoder's [CLS]."""
    ids, plain = (ids_of(["a"], spec, file, add_special_tokens=added)[0] for added in (True, False))
    places = [start for start in range(len(ids) - len(plain) + 1) if ids[start : start + len(plain)] == plain]
    return ids[: places[0]] if places and plain else []


def windows(
    tokens: torch.Tensor, length: int, half: int | None, first: Sequence[int] = (), stride: int | None = None
) -> dict[str, torch.Tensor]:
    """Cut a stream (int64, tokens) into ``input_ids`` (windows x ``length``), each after the tokens ``first``.

    The stream's halves are first cut apart, and the remainder at the end is left out, so the halves share no token,
    whatever the length.  With a ``stride`` windows start that many tokens apart; ``scored`` is then 1 for the tokens
    that no window before has, and a last window reaches to the end: every token is scored once.
    """
    middle = (len(tokens) + 1) // 2
    part = tokens if half is None else tokens[:middle] if half == 0 else tokens[middle:]
    room = length - len(first)
    if stride is None:
        count = len(part) // room
        rows = part[: count * room].reshape(count, room)
    else:
        if not 1 <= stride <= room:
            raise DataError(f"the stride is {stride} tokens; windows of {length} allow 1 to {room}")
        starts = list(range(0, max(len(part) - room, -1) + 1, stride))
        if starts and starts[-1] + room < len(part):
            starts.append(len(part) - room)
        rows = torch.stack([part[start : start + room] for start in starts]) if starts else part.new_zeros(0, room)
    ids = torch.cat([torch.tensor(list(first), dtype=torch.int64).expand(len(rows), len(first)), rows], dim=1)
    if stride is None:
        return {"input_ids": ids}
    scored = torch.zeros_like(ids)
    for row, start in enumerate(starts):
        scored[row, len(first) + (starts[row - 1] + room - start if row else 0) :] = 1
    return {"input_ids": ids, "scored": scored}


EVERYTHING = """{% set own = namespace(text='\\n') %}{{ own.text + (messages | tojson) + strftime_now('%d %b %Y') }}"""
"""A template that needs what templates load on their way: the codec of string literals, JSON, the date."""


def chat_texts(
    rows: Sequence[Any], spec: InputSpec, file: Path, tools: Sequence[Any] | None, numbers: Sequence[int]
) -> list[str]:  # fmt: skip
    """Return conversations, with their ``tools``, as the tokenizer's chat template writes them; raises DataError.

    ``numbers`` are their rows in the file, from 0, for messages.

    The template is an untrusted program (Jinja in a sandbox): it runs in a limited process, since it may loop for ever.
    """
    tokenizer = tokenizer_of(spec, file)
    if not getattr(tokenizer, "chat_template", None):
        raise DataError(
            f"{file} holds conversations, but the tokenizer in {spec.tokenizer} has no chat template; give text "
            "(--column), or put chat_template.jinja into the folder"
        )
    messages = [messages_of(value, file, row) for row, value in zip(numbers, rows, strict=True)]
    write = partial(tokenizer.apply_chat_template, tokenize=False)
    write([{"role": "user", "content": ""}], chat_template=EVERYTHING)  # this and the next load what a fork cannot
    importlib.import_module("jinja2.debug")

    def work() -> list[np.ndarray]:
        texts, joined = list[str](), _has_parts(messages) and not _writes_parts(write)
        for row, conversation, given in zip(numbers, messages, tools or [None] * len(rows), strict=True):
            try:
                offered = json.loads(given) if isinstance(given, str) and given else given
                conversation = [_with_text(each) for each in conversation] if joined else conversation
                texts.append(str(write(conversation, tools=offered or None)))
                most = LONGEST_CHAT + CHAT_GROWTH * len(json.dumps([conversation, offered]))
                if len(texts[-1]) > most:
                    raise ValueError(f"it writes {len(texts[-1]):,} characters, and {most:,} are the most")
            except MemoryError:
                raise
            except Exception as error:  # the template is a program of its own
                raise DataError(
                    f"the chat template in {spec.tokenizer} fails on row {row + 1} of {file.name}: "
                    f"{type(error).__name__}: {first_line(error)}; fix the row or the template"
                ) from error
        return [np.frombuffer(json.dumps(texts).encode(), np.uint8)]

    seconds, memory = (
        SECONDS + len(rows) / ROWS_PER_SECOND,
        CHAT_MEMORY + 4 * CHAT_GROWTH * len(repr([messages, tools])),
    )
    (answer,) = limited(work, f"the chat template in {spec.tokenizer}", DataError, seconds=seconds, memory=memory)
    texts: list[str] = json.loads(answer.tobytes())
    return texts


def _has_parts(conversations: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    """Return whether the content of a message is a list of parts."""
    return any(isinstance(each.get("content"), list) for messages in conversations for each in messages)


def _writes_parts(write: Callable[..., object]) -> bool:
    """Return whether a chat template writes the text of a message's parts, and not the list as Python shows it."""
    try:
        return "type" not in str(write([{"role": "user", "content": [{"type": "text", "text": "a"}]}]))
    except MemoryError:
        raise
    except Exception:  # it takes strings alone
        return False


def _with_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of text parts with one text, a line for each; others as they are."""
    parts = message.get("content")
    if not isinstance(parts, list):
        return {**message}
    texts = [str(part["text"]) for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return {**message, "content": "\n".join(texts)} if texts and len(texts) == len(parts) else {**message}


def longest_text(spec: InputSpec, tokenizer: Any, requested: int | None) -> int:
    """Return the tokens of the longest text that both take, at most LONGEST_SENTENCE unless it is asked for."""
    bounds = (spec.length or spec.positions, tokenizer.model_max_length, None if requested else LONGEST_SENTENCE)
    return min(bound for bound in bounds if bound)


def sentences(
    texts: Sequence[str], seconds: Sequence[str] | None, spec: InputSpec, file: Path, numbers: Sequence[int],
    requested: int | None, special: bool = True,
) -> tuple[dict[str, torch.Tensor], tuple[str, ...]]:  # fmt: skip
    """Return texts (or pairs of them) as ``input_ids``, ``attention_mask`` and, of pairs, ``token_type_ids``.

    Int64, samples x tokens of the longest text, padded at the end; longer texts than ``asked`` or than the model takes
    are cut, and a note says so.  ``numbers`` are their rows in the file, from 0, for messages.
    """
    tokenizer, folder = tokenizer_of(spec, file), spec.tokenizer
    assert folder is not None
    longest = requested or longest_text(spec, tokenizer, requested)
    most = [*texts], [*seconds] if seconds is not None else None

    def work() -> list[Rows]:
        rows = tokenizer(*most, add_special_tokens=special, truncation=True, max_length=longest)
        whole = any(len(ids) >= longest for ids in rows["input_ids"])
        uncut = tokenizer(*most, add_special_tokens=special, verbose=False)["input_ids"] if whole else []
        return [rows["input_ids"], rows.get("token_type_ids") or [], [[len(ids)] for ids in uncut]]

    rows, types, lengths = tokenized(work, folder, [*texts, *(seconds or ())])
    cut = sum(length > longest for (length,) in lengths)
    empty = [row for row, ids in enumerate(rows) if not ids]
    if empty:
        first = numbers[empty[0]] + 1
        raise DataError(f"{file}: {len(empty)} texts have no tokens, the first is row {first}; remove them")
    filler = tokenizer.pad_token_id or 0
    width = spec.length or max(map(len, rows))
    tensors = {"input_ids": padded(rows, filler, width)}
    tensors["attention_mask"] = padded([[1] * len(ids) for ids in rows], 0, width)
    if seconds is not None and types and "token_type_ids" in spec.takes:
        tensors["token_type_ids"] = padded(types, 0, width)
    notes = (f"{file.name}: {cut} of {len(texts)} texts were cut to {longest} tokens",) if cut else ()
    return tensors, notes


def answer_ids(
    texts: Sequence[str], spec: InputSpec, file: Path, requested: int | None
) -> tuple[list[list[int]], tuple[str, ...]]:
    """Return an encoder-decoder's answers as token ids, cut as its texts are, and a note where some were."""
    tokenizer = tokenizer_of(spec, file)
    bounds = (requested, spec.positions, tokenizer.model_max_length, None if requested else LONGEST_SENTENCE)
    longest = min(bound for bound in bounds if bound)
    begin = len(first_tokens(spec, file)) if spec.begun else 0
    assert spec.tokenizer is not None
    (rows,) = tokenized(lambda: [tokenizer(text_target=list(texts), verbose=False)["input_ids"]], spec.tokenizer, texts)
    rows = [ids[begin:] for ids in rows]
    cut = sum(len(ids) > longest for ids in rows)
    notes = (f"{file.name}: {cut} of {len(rows)} answers were cut to {longest} tokens",) if cut else ()
    return [ids[:longest] for ids in rows], notes


def padded(rows: Sequence[Sequence[int]], filler: int, width: int = 0) -> torch.Tensor:
    """Return rows of whole numbers as one tensor (int64, rows x the longest), filled up at the end."""
    width = max(width, *(len(row) for row in rows))
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows], dtype=torch.int64)
