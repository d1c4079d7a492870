"""Texts with pictures, for networks that read both: by the processor of the model's folder, through transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from workbench.errors import DataError, first_line
from workbench.limited import SECONDS, limited
from workbench.models.data.arrays import with_decoder_mask
from workbench.models.data.classes import classes_of
from workbench.models.data.files import Stored
from workbench.models.data.inputs import IN_A_ROW, InputSpec
from workbench.models.data.pictures.images import LEAST, ROOM, contents_of, decode, load_codecs
from workbench.models.data.pictures.pictured_rows import Row, read_pictured_rows
from workbench.models.data.pictures.processor import FILES
from workbench.models.data.text import SETTINGS, answer_ids, padded, tokenizer_of
from workbench.models.data.tried import in_one_thread, tried
from workbench.readable import few

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURE_MEMORY = 1 << 30
"""Memory that what a processor makes of one row may take: 17 tiles of 512 pixels are 53 MB, and it copies them."""


@dataclass(slots=True, eq=False)
class Reader:
    """What makes rows of ``file`` inputs: ``processor`` is transformers', ``tokenizer`` its own; ``notes`` grow."""

    rows: Sequence[Row]
    file: Path
    spec: InputSpec
    processor: Any
    tokenizer: Any
    notes: list[str] = field(default_factory=list)

    def load(self, chosen: np.ndarray) -> dict[str, torch.Tensor]:
        """Return the inputs of the chosen rows, one row each; raises DataError, which names the row that fails.

        Pictures that would give other numbers of tiles or patches than the first row's are resized to those.
        """
        first, sizes = self._made(0)
        answers, resized = [], 0
        for row in chosen.tolist():
            answer = self._made(row)[0] if row else first
            if _shapes(answer) != _shapes(first) and len(self.rows[row].pictures) == len(sizes):
                (answer, _), resized = self._made(row, sizes), resized + 1
            if _shapes(answer) != _shapes(first):
                raise DataError(
                    f"{self.file}: the processor makes {_in_words(answer)} of row {row + 1}, and {_in_words(first)} of "
                    "row 1; give every row the same number of pictures"
                )
            answers.append(answer)
        if resized:
            side = " x ".join(map(str, sizes[0]))
            rows = f"{resized} of {len(answers)} rows"
            self.notes.append(f"{self.file.name}: the pictures of {rows} were resized to row 1's, {side} pixels")
        return self._joined(answers)

    def _made(self, number: int, sizes: Sequence[tuple[int, int]] = ()) -> tuple[dict[str, np.ndarray], list[Any]]:
        """Return the processor's answer to a row, and its pictures' sizes; resized to ``sizes`` where they are given.

        The pictures, the template, the tokenizer and the processor's settings are strangers': a limited process works.
        """
        row, folder = self.rows[number], self.spec.folder
        assert folder is not None
        contents, what = contents_of(row.pictures), f"row {number + 1} of {self.file}"

        def work() -> list[np.ndarray]:
            in_one_thread()
            pictures = [
                decode(content, source, self.spec) for content, source in zip(contents, row.pictures, strict=True)
            ]
            measured = [picture.size for picture in pictures]
            pictures = [each.resize(size) for each, size in zip(pictures, sizes, strict=True)] if sizes else pictures
            try:
                answer = self._processed(row, pictures)
            except MemoryError:
                raise
            except Exception as error:  # processors and templates raise nearly everything
                raise DataError(f"the processor in {folder} cannot read {what}: {first_line(error)}; fix the row "
                                "or the processor's files") from error  # fmt: skip
            if pictures and not _shapes(answer):
                raise DataError(f"the processor in {folder} makes no input of the pictures of {what}; fetch the folder "
                                "again, or give texts alone")  # fmt: skip
            listed = json.dumps([measured, list(answer)]).encode()
            return [np.frombuffer(listed, np.uint8), *answer.values()]

        memory = LEAST + ROOM * max(map(len, contents), default=0) + PICTURE_MEMORY
        seconds = 2 * SECONDS + sum(map(len, contents)) / 5e6
        listed, *arrays = limited(work, what, DataError, seconds=seconds, memory=memory, reads=[folder])
        measured, names = json.loads(listed.tobytes())
        return dict(zip(names, arrays, strict=True)), [tuple(each) for each in measured]

    def _processed(self, row: Row, pictures: list[Image]) -> dict[str, np.ndarray]:
        if self.processor.chat_template:
            text = self.processor.apply_chat_template(row.messages, tokenize=False)
            first = self.processor.tokenizer.bos_token  # as transformers, which adds one that the template does not
            written = {"add_special_tokens": False} if first and text.startswith(first) else {}
            return self._called(text, pictures, **written)
        mark, own = getattr(self.processor, "image_token", None), getattr(self.processor, "image_token_id", None)
        if mark is None or str(mark) in row.text:
            return self._called(row.text, pictures)
        marked = str(mark) * len(pictures) + "\n" + row.text
        try:  # some put the places of pictures into the text themselves
            answer = self._called(row.text, pictures)
        except Exception:
            return self._called(marked, pictures)
        return answer if own is None or own in answer["input_ids"] else self._called(marked, pictures)

    def _called(self, text: str, pictures: list[Image], **options: Any) -> dict[str, np.ndarray]:
        answer = self.processor(text=[text], images=pictures or None, return_tensors="np", **options)
        names = {*self.spec.takes} & {*answer} - {"labels"}  # PaliGemma's, of which none counts without an answer
        return {name: np.ascontiguousarray(array) for name, array in answer.items() if name in names}

    def _joined(self, answers: Sequence[Mapping[str, np.ndarray]]) -> dict[str, torch.Tensor]:
        """Return the answers as samples: what belongs to tokens filled up at the end, the rest side by side.

        What has more than one entry for a sample (pictures, tiles or patches) has the name that says so.
        """
        fillers, joined = {"input_ids": self.tokenizer.pad_token_id or 0}, dict[str, torch.Tensor]()
        longest, most = max(answer["input_ids"].shape[1] for answer in answers), self.spec.positions
        if most is not None and longest > most:
            raise DataError(f"{self.file}: a text with its picture has {longest} tokens, the model takes {most}; give "
                            "shorter texts or smaller pictures")  # fmt: skip
        for name in answers[0]:
            arrays = [answer[name] for answer in answers]
            if _of_tokens(name, answers[0]):
                joined[name] = padded([array[0].tolist() for array in arrays], fillers.get(name, 0))
                continue
            kind = np.float32 if arrays[0].dtype.kind == "f" else np.int64
            single = all(len(array) == 1 for array in arrays)
            samples = np.stack([array[0] if single else array for array in arrays]).astype(kind)
            joined[name if single else name + IN_A_ROW] = torch.from_numpy(samples)
        mark = getattr(self.processor, "image_token_id", None)
        if mark is not None:  # what stands for a picture, of which no network predicts anything
            joined["scored"] = (joined["input_ids"] != mark).to(torch.int64)
        return joined


def _of_tokens(name: str, answer: Mapping[str, np.ndarray]) -> bool:
    return name == "input_ids" or answer[name].shape == answer["input_ids"].shape


def _shapes(answer: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in answer.items() if not _of_tokens(name, answer)}


def _in_words(answer: Mapping[str, np.ndarray]) -> str:
    return few([f"{name} {shape}" for name, shape in _shapes(answer).items()], 4) or "no picture"


def read_pictured_texts(file: Path, column: str, spec: InputSpec, window: int | None) -> Stored | None:
    """Return a table's rows of texts (or conversations) with pictures; None where it holds none, or the folder has no
    processor.  Raises DataError.
    """
    folder = spec.folder
    if folder is None or not any((folder / name).is_file() for name in FILES):
        return None
    rows, labels = read_pictured_rows(file, column, generates=spec.has_decoder or not spec.sentences)
    if not any(row.pictures for row in rows):
        return None
    tokenizer = tokenizer_of(spec, file)
    settings = sorted(each for each in folder.iterdir() if each.suffix in SETTINGS)
    processor = _loaded(folder, *((each.name, each.stat().st_mtime_ns) for each in settings))
    answers = [row.answer for row in rows if row.answer is not None] if spec.has_decoder else []
    classes = classes_of(labels, folder, file)
    reader = Reader(rows if spec.has_decoder else [row.answered for row in rows], file, spec, processor, tokenizer,
                    list(classes.notes))  # fmt: skip

    def load(chosen: np.ndarray) -> dict[str, torch.Tensor]:
        tensors = reader.load(chosen)
        if len(answers) == len(rows):
            ids, notes = answer_ids([answers[row] for row in chosen], spec, file, window)
            reader.notes.extend(notes)
            return with_decoder_mask({**tensors, "labels": padded(ids, -100)})
        return tensors | {name: each[chosen] for name, each in classes.tensors().items()}

    return Stored(count=len(rows), load=load, notes=reader.notes, by_rows=True)


@lru_cache(maxsize=2)
def _loaded(folder: Path, *changed: tuple[str, int]) -> Any:
    """Return transformers' processor of a folder; loads what the limited process, a fork, cannot load itself."""
    from workbench.models.sources.lean_transformers import quiet, transformers

    load_codecs()
    load = partial(
        transformers.AutoProcessor.from_pretrained, str(folder), local_files_only=True, trust_remote_code=False
    )
    with quiet():
        return tried(load, f"the processor in {folder}", folder)
