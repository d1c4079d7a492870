"""Texts with pictures or sounds, for networks that read both: by the processor of the model's folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from workbench.errors import DataError, first_line
from workbench.limited import SECONDS, limited
from workbench.models.data.arrays import with_decoder_mask
from workbench.models.data.classes import classes_of
from workbench.models.data.files import Stored
from workbench.models.data.inputs import IN_A_ROW, NOTHING, InputSpec
from workbench.models.data.pictures.images import LEAST, ROOM, contents_of, decode, load_codecs
from workbench.models.data.pictures.pictured_rows import Row, read_pictured_rows
from workbench.models.data.pictures.processor import FILES
from workbench.models.data.sounds import POINTS_A_SECOND, ROOM_A_POINT, SECONDS_A_SOUND, heard_at, rate_of, resampled
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
    rate: int | None
    notes: list[str] = field(default_factory=list)

    def load(self, chosen: np.ndarray) -> dict[str, torch.Tensor]:
        """Return the inputs of the chosen rows, one row each; raises DataError, which names the row that fails."""
        sounds = [source for row in chosen for source in self.rows[row].sounds]
        heard, notes = heard_at(sounds, self.rate, self.file)
        self.notes.extend(notes)
        waves, answers, cut = iter(heard), list[dict[str, np.ndarray]](), 0
        for row in chosen.tolist():
            answer, shortened = self._made(row, list(islice(waves, len(self.rows[row].sounds))))
            answers.append(answer)
            cut += shortened
        if cut:
            most = self.spec.positions
            self.notes.append(f"{self.file.name}: {cut} of {len(answers)} texts were cut to {most} tokens")
        return self._joined(answers, chosen.tolist())

    def _made(self, number: int, heard: list[tuple[np.ndarray, int]]) -> tuple[dict[str, np.ndarray], bool]:
        """Return the processor's answer to a row, and whether its text was cut.

        The pictures, the template, the tokenizer and the processor's settings are strangers': a limited process works.
        """
        row, folder, most = self.rows[number], self.spec.folder, self.spec.positions
        assert folder is not None
        contents, what = contents_of(row.pictures), f"row {number + 1} of {self.file}"
        points = sum(len(wave) for wave, _ in heard)

        def work() -> list[np.ndarray]:
            in_one_thread()
            pictures = [
                decode(content, source, self.spec) for content, source in zip(contents, row.pictures, strict=True)
            ]
            waves = [resampled(wave, own, self.rate or own) for wave, own in heard]
            try:
                answer = self._processed(row, pictures, waves)
                cut = most is not None and answer["input_ids"].shape[1] > most
                answer = self._shorter(answer, row, pictures, waves) if cut else answer
            except (MemoryError, DataError):
                raise
            except Exception as error:  # processors and templates raise nearly everything
                raise DataError(f"the processor in {folder} cannot read {what}: {first_line(error)}; fix the row "
                                "or the processor's files") from error  # fmt: skip
            missed = [name for name, each in (("pictures", pictures), ("sounds", waves)) if each]
            if missed and not _shapes(answer):
                raise DataError(f"the processor in {folder} makes no input of the {missed[0]} of {what}; fetch the "
                                "folder again, or give texts alone")  # fmt: skip
            listed = json.dumps([cut, list(answer)]).encode()
            return [np.frombuffer(listed, np.uint8), *answer.values()]

        memory = LEAST + ROOM * max(map(len, contents), default=0) + PICTURE_MEMORY + ROOM_A_POINT * points
        seconds = 2 * SECONDS + sum(map(len, contents)) / 5e6 + len(heard) * SECONDS_A_SOUND + points / POINTS_A_SECOND
        listed, *arrays = limited(work, what, DataError, seconds=seconds, memory=memory, reads=[folder])
        cut, names = json.loads(listed.tobytes())
        return dict(zip(names, arrays, strict=True)), cut

    def _shorter(
        self, answer: dict[str, np.ndarray], row: Row, pictures: list[Image], waves: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return a row whose text is cut to what the model takes; raises DataError where that cuts off a picture."""
        ids, most = answer["input_ids"], self.spec.positions
        try:
            shorter = self._processed(row, pictures, waves, text_kwargs={"truncation": True, "max_length": most})
        except MemoryError:
            raise
        except Exception:  # processors count the places of pictures
            shorter = answer
        kept, marks = shorter["input_ids"], self._marks()
        if kept.shape[1] > (most or 0) or np.isin(kept, marks).sum() < np.isin(ids, marks).sum():
            raise DataError(f"{self.file}: a text with its picture or sound has {ids.shape[1]} tokens, the model takes "
                            f"{most}; give shorter texts, or smaller pictures or sounds")  # fmt: skip
        return shorter

    def _marks(self) -> list[int]:
        """Return the ids of the tokens that stand for a picture, a sound or a film."""
        ids = (getattr(self.processor, f"{kind}_token_id", None) for kind in ("image", "audio", "video"))
        return [each for each in ids if isinstance(each, int)]

    def _processed(
        self, row: Row, pictures: list[Image], waves: list[np.ndarray], **options: Any
    ) -> dict[str, np.ndarray]:
        options |= {"images": pictures} if pictures else {}
        options |= {"audio": waves, "sampling_rate": self.rate} if waves else {}
        if self.processor.chat_template:
            text = self.processor.apply_chat_template(row.messages, tokenize=False)
            first = self.processor.tokenizer.bos_token  # as transformers, which adds one that the template does not
            written = {"add_special_tokens": False} if first and text.startswith(first) else {}
            return self._called(text, **options, **written)
        kind, count = ("image", len(pictures)) if pictures else ("audio", len(waves))
        mark, own = (getattr(self.processor, f"{kind}_token{end}", None) for end in ("", "_id"))
        if mark is None or str(mark) in row.text:
            return self._called(row.text, **options)
        marked = str(mark) * count + "\n" + row.text
        try:  # some put the places of pictures into the text themselves
            answer = self._called(row.text, **options)
        except Exception:
            return self._called(marked, **options)
        return answer if own is None or own in answer["input_ids"] else self._called(marked, **options)

    def _called(self, text: str, **options: Any) -> dict[str, np.ndarray]:
        from workbench.models.sources.lean_transformers import quiet

        with quiet():
            answer = self.processor(text=[text], return_tensors="pt", **options)  # which all of them make
        names = {*self.spec.takes} & {*answer} - {"labels"}  # PaliGemma's, of which none counts without an answer
        return {name: np.ascontiguousarray(array) for name, array in answer.items() if name in names}

    def _joined(self, answers: Sequence[Mapping[str, np.ndarray]], rows: Sequence[int]) -> dict[str, torch.Tensor]:
        """Return the answers as samples: what belongs to tokens filled up at the end, the rest side by side."""
        odd = next((number for number, answer in enumerate(answers) if _apart(answer, answers[0])), None)
        if odd is not None:
            named = {each: [" ".join(map(str, pair)) for pair in _shapes(answers[each]).items()] for each in (odd, 0)}
            one, other = (f"{few(shapes, 4)} of row {rows[each] + 1}" for each, shapes in named.items())
            raise DataError(f"{self.file}: the processor makes {one}, and {other}; give pictures or sounds of one size")
        fillers, joined = {"input_ids": self.tokenizer.pad_token_id or 0}, dict[str, torch.Tensor]()
        for name in dict.fromkeys(name for answer in answers for name in answer):
            arrays = [answer.get(name) for answer in answers]
            if any(_of_tokens(name, answer) for answer in answers):
                joined[name] = padded([[] if array is None else array[0].tolist() for array in arrays],
                                      fillers.get(name, 0))  # fmt: skip
                continue
            joined |= in_a_row(name, arrays)
        if (marks := self._marks()) and not self.spec.has_decoder:  # of what no network predicts anything
            joined["scored"] = (~torch.isin(joined["input_ids"], torch.tensor(marks))).to(torch.int64)
        return joined


def _apart(answer: Mapping[str, np.ndarray], first: Mapping[str, np.ndarray]) -> bool:
    """Return whether two rows do not go together: nothing beside pictures that are filled up would say their size."""
    one, other = _shapes(answer), _shapes(first)
    alone, both = len(one | other) == 1, one.keys() & other.keys()
    return any(len(one[x]) != len(other[x]) or (alone and one[x][1:] != other[x][1:]) for x in both)


def in_a_row(name: str, arrays: Sequence[np.ndarray | None]) -> dict[str, torch.Tensor]:
    """Return what samples have of an input, filled up with zeros where entries are smaller.

    Where one has other than one entry (pictures, tiles or patches), the name says so and NOTHING fills up, which no
    network sees.
    """
    present = [array for array in arrays if array is not None]
    floats = present[0].dtype.kind == "f"
    single = len(present) == len(arrays) and all(len(array) == 1 for array in present)
    size = np.max([array.shape for array in present], axis=0)
    filler, kind = (math.nan, np.float32) if floats else (NOTHING, np.int64)
    samples = np.full((len(arrays), *size), filler, kind)
    for own, array in zip(samples, arrays, strict=True):
        if array is not None:
            own[: len(array)] = 0
            own[tuple(map(slice, array.shape))] = array
    tensor = torch.from_numpy(samples)
    return {name: tensor[:, 0]} if single else {name + IN_A_ROW: tensor}


def _of_tokens(name: str, answer: Mapping[str, np.ndarray]) -> bool:
    return name in answer and (name == "input_ids" or answer[name].shape == answer["input_ids"].shape)


def _shapes(answer: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in answer.items() if not _of_tokens(name, answer)}


def read_pictured_texts(file: Path, column: str, spec: InputSpec, window: int | None) -> Stored | None:
    """Return a table's rows of texts (or conversations) with pictures or sounds; None where it holds none, or the
    folder has no processor.  Raises DataError.
    """
    folder = spec.folder
    if folder is None or not any((folder / name).is_file() for name in FILES):
        return None
    rows, labels = read_pictured_rows(file, column, generates=spec.has_decoder or not spec.sentences)
    if not any(row.pictures or row.sounds for row in rows):
        return None
    tokenizer = tokenizer_of(spec, file)
    settings = sorted(each for each in folder.iterdir() if each.suffix in SETTINGS)
    processor = _loaded(folder, *((each.name, each.stat().st_mtime_ns) for each in settings))
    answers = [row.answer for row in rows if row.answer is not None] if spec.has_decoder else []
    classes = classes_of(labels, folder, file)
    parts = (getattr(processor, name, None) for name in ("feature_extractor", "audio_processor"))
    rate = rate_of(next((part for part in parts if part is not None), None), spec)
    reader = Reader(rows if spec.has_decoder else [row.answered for row in rows], file, spec, processor, tokenizer,
                    rate, list(classes.notes))  # fmt: skip

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
