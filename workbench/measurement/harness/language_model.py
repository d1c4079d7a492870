"""A model of the workbench as lm-evaluation-harness asks it; texts become tokens as in the harness's own models.

The tokenizer is untrusted: it works in limited processes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from workbench.errors import DataError
from workbench.measurement.harness.answers import Scored, continued, scores
from workbench.models.data.tokenizing import Rows, texts_of, tokenized
from workbench.models.model import Model

LONGEST = 2048
"""Tokens that are seen at once where the model does not say."""

GENERATED = 256
"""Tokens that are generated where a task does not say."""


class LanguageModel(TemplateLM):  # type: ignore[misc]
    """``tokenizer`` is that of transformers in ``folder``; ``done(requests)`` hears how many requests were answered."""

    def __init__(
        self, model: Model, tokenizer: Any, folder: Path, batch_size: int, done: Callable[[int], None]
    ) -> None:
        super().__init__()
        self._model, self.tokenizer, self._batch_size, self._done = model, tokenizer, batch_size, done
        self._folder = folder
        self._longest = model.inputs.positions or LONGEST

    @property
    def eot_token_id(self) -> int:
        """The token that ends a text."""
        return int(self.tokenizer.eos_token_id)

    @property
    def prefix_token_id(self) -> int:
        """The token before a text that has no context."""
        first = self.tokenizer.bos_token_id
        return int(first) if first is not None else self.eot_token_id

    @property
    def tokenizer_name(self) -> str:
        """What tells this tokenizer from others."""
        return str(self.tokenizer.name_or_path)

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        """Return token ids; with the tokenizer's own special tokens unless they are there already.

        For limited processes alone.
        """
        begin = self.tokenizer.decode(self.prefix_token_id)
        if add_special_tokens is None and begin and string.startswith(begin):
            add_special_tokens = False
        options = {} if add_special_tokens is None else {"add_special_tokens": add_special_tokens}
        return list(self.tokenizer.encode(string, **options))

    def _tokenized(self, work: Callable[[], Sequence[Rows]], requests: Sequence[Any]) -> list[list[list[int]]]:
        """Return the tables of ids that ``work`` makes of the requests' texts."""
        texts = [each for request in requests for each in request.args if isinstance(each, str)]
        return tokenized(work, self._folder, texts * 2)  # a context alone and with its ending

    def _pair(self, context: str, ending: str) -> tuple[list[int], list[int]]:
        """Return a context and its ending as token ids; for limited processes alone."""
        if context:
            ids, after = self._encode_pair(context, ending)
            return list(ids), list(after)
        ids = self.tok_encode(ending, add_special_tokens=False)
        return (ids[:1], ids[1:]) if ids[:1] == [self.prefix_token_id] else ([self.prefix_token_id], ids)

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Scored]:
        """Return the log-likelihood of endings after their contexts."""

        def work() -> list[list[list[int]]]:
            pairs = [self._pair(*request.args) for request in requests]
            return [[context for context, _ in pairs], [ending for _, ending in pairs]]

        pairs = zip(requests, *self._tokenized(work, requests), strict=True)
        return self._loglikelihood_tokens([(request.args, context, ending) for request, context, ending in pairs])

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, Sequence[int], Sequence[int]]], **kwargs: Any
    ) -> list[Scored]:
        rows = [(context, continuation) for _, context, continuation in requests]
        return scores(self._model, rows, longest=self._longest, batch_size=self._batch_size, done=self._done)

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """Return the log-likelihood of whole texts, in windows side by side."""
        totals = []
        (texts,) = self._tokenized(lambda: [[self.tok_encode(request.args[0]) for request in requests]], requests)
        for text in texts:
            windows = get_rolling_token_windows(
                token_list=text, prefix_token=self.prefix_token_id,
                max_seq_len=self._longest, context_len=1,
            )  # fmt: skip
            rows = [make_disjoint_window(window) for window in windows]
            answers = scores(self._model, rows, longest=self._longest, batch_size=self._batch_size)
            totals.append(sum(score for score, _ in answers))
            self._done(1)
        return totals

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """Return the likeliest continuation of each context up to a stop; raises DataError for a task that samples."""
        texts = []
        (contexts,) = self._tokenized(lambda: [[self.tok_encode(request.args[0]) for request in requests]], requests)
        for request, context in zip(requests, contexts, strict=True):
            options = request.args[1]
            if options.get("do_sample") and options.get("temperature", 1.0) > 0:
                raise DataError("the task draws its answers at random (do_sample), so they differ from run to run; "
                                "set do_sample: false in its generation_kwargs")  # fmt: skip
            until = options.get("until") or []
            stops = [until] if isinstance(until, str) else list(until)
            texts.append(self._answer(context, stops, int(options.get("max_gen_toks", GENERATED))))
            self._done(1)
        return texts

    def _answer(self, context: Sequence[int], until: Sequence[str], most: int) -> str:
        endings, checked = [each for each in until if each], 0

        def texts(rows: Rows, **options: bool) -> list[str]:
            return texts_of(partial(self.tokenizer.decode, **options), self._folder, rows)

        def kept(new: list[int], last: bool) -> int | None:
            """Look for endings in an eighth more tokens at once: each look takes a process."""
            nonlocal checked
            last = last or new[-1:] == [self.eot_token_id]
            if endings and new and (last or len(new) > checked + checked // 8):
                lengths = range(checked + 1, len(new) + 1)
                written, checked = texts([new[:length] for length in lengths]), len(new)
                for length, text in zip(lengths, written, strict=True):
                    if any(each in text for each in endings):
                        return length
            return len(new) if last else None

        new = continued(self._model, context[-max(self._longest - most, 1) :], most=most, kept=kept)
        (answer,) = texts([new], skip_special_tokens=True)
        return min((answer.split(each)[0] for each in endings), key=len, default=answer)
