"""A model of the workbench as lm-evaluation-harness asks it; texts become tokens as in the harness's own models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from workbench.errors import DataError
from workbench.measurement.harness.answers import Scored, continued, scores
from workbench.models.model import Model

LONGEST = 2048
"""Tokens that are seen at once where the model does not say."""

GENERATED = 256
"""Tokens that are generated where a task does not say."""


class LanguageModel(TemplateLM):  # type: ignore[misc]
    """``tokenizer`` is that of transformers; ``done(requests)`` hears how many requests were answered."""

    def __init__(self, model: Model, tokenizer: Any, batch_size: int, done: Callable[[int], None]) -> None:
        super().__init__()
        self._model, self.tokenizer, self._batch_size, self._done = model, tokenizer, batch_size, done
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

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Return a conversation as text."""
        return str(self.tokenizer.apply_chat_template(
            chat_history, tokenize=False, add_generation_prompt=add_generation_prompt
        ))  # fmt: skip

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        """Return token ids; with the tokenizer's own special tokens unless they are there already."""
        begin = self.tokenizer.decode(self.prefix_token_id)
        if add_special_tokens is None and begin and string.startswith(begin):
            add_special_tokens = False
        options = {} if add_special_tokens is None else {"add_special_tokens": add_special_tokens}
        return list(self.tokenizer.encode(string, **options))

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, Sequence[int], Sequence[int]]], **kwargs: Any
    ) -> list[Scored]:
        rows = [(context, continuation) for _, context, continuation in requests]
        return scores(self._model, rows, longest=self._longest, batch_size=self._batch_size, done=self._done)

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """Return the log-likelihood of whole texts, in windows side by side."""
        totals = []
        for request in requests:
            windows = get_rolling_token_windows(
                token_list=self.tok_encode(request.args[0]), prefix_token=self.prefix_token_id,
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
        for request in requests:
            context, options = request.args
            if options.get("do_sample") and options.get("temperature", 1.0) > 0:
                raise DataError("the task draws its answers at random (do_sample), so they differ from run to run; "
                                "set do_sample: false in its generation_kwargs")  # fmt: skip
            until = options.get("until") or []
            stops = [until] if isinstance(until, str) else list(until)
            texts.append(self._answer(context, stops, int(options.get("max_gen_toks", GENERATED))))
            self._done(1)
        return texts

    def _answer(self, context: str, until: Sequence[str], most: int) -> str:
        ends = (self.eot_token_id,)

        def stop(new: list[int]) -> bool:
            return bool(new) and (new[-1] in ends or any(each in self.tokenizer.decode(new) for each in until if each))

        ids = self.tok_encode(context)[-max(self._longest - most, 1) :]
        text: str = self.tokenizer.decode(continued(self._model, ids, most=most, stops=stop), skip_special_tokens=True)
        return min((text.split(each)[0] for each in until if each), key=len, default=text)
