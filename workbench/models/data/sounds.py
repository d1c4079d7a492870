"""Sounds: decoded, mixed to one channel, brought to the processor's rate, and made into what a model takes."""

from __future__ import annotations

import inspect
import io
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.errors import BackendUnavailableError, DataError, first_line
from workbench.limited import MEMORY, SECONDS, limited
from workbench.models.data.arrays import rows_of, with_decoder_mask
from workbench.models.data.classes import classes_of
from workbench.models.data.files import Stored
from workbench.models.data.inputs import InputSpec
from workbench.models.data.pictures.images import preparation
from workbench.models.data.pictures.processor import FILES
from workbench.models.data.reading import Reading
from workbench.models.data.text import Transcriber, ids_of, padded, tokenizer_of
from workbench.models.data.tried import in_one_thread, tried
from workbench.plain_file import read_bytes
from workbench.readable import few

RATES = LOW, HIGH = (100, 1_000_000)
"""Points in a second: others come from damage, and the filter that brings them to a usual rate fills the memory."""

BYTES_A_SECOND, SECONDS_A_SOUND, POINTS_A_SECOND = 5e6, 1.0, 1e6
ROOM_A_SOUND, ROOM_A_POINT = 1 << 26, 64
"""Processor time and memory (bytes) that sounds may take: some processors fill each up to half a minute."""


def read_sounds(
    sources: Sequence[Any], labels: Sequence[Any] | None, file: Path, spec: InputSpec, reading: Reading
) -> Stored:
    """Return sounds (paths, bytes, or points with their rate) as samples: by the processor of the model's folder, else
    cut to frames.

    Without a processor a sample is ``reading.window`` points.  Texts as labels are transcripts for a model with a
    tokenizer, else classes.  Notes say what was resampled and mixed.  Raises DataError.
    """
    processor = _processor(spec)
    rate = rate_of(processor, spec)
    decoded, notes = heard_at(sources, rate, file)
    made = _made(decoded, rate, processor, spec)
    if processor is None:
        return _frames(made, labels, file, spec, reading, notes)
    tensors = {"inputs": torch.from_numpy(made[0]).to(torch.float32)}
    if len(made) > 1:
        tensors["attention_mask"] = torch.from_numpy(made[1]).to(torch.int64)
    if labels is not None and isinstance(labels[0], str) and spec.tokenizer is not None:
        ids, more = _transcripts(labels, spec, file)
        tensors["labels"], notes = padded(ids, -100), (*notes, *more)
        tensors = with_decoder_mask(tensors) if spec.has_decoder else tensors
    else:
        classes = classes_of(labels, spec.folder, file)
        tensors, notes = {**tensors, **classes.tensors()}, (*notes, *classes.notes)
    if spec.has_decoder and "labels" not in tensors:
        raise DataError(f"{file}: the model also needs transcripts; give a table with audio and transcription columns")
    text = None
    if spec.tokenizer is not None and tensors.get("labels", torch.zeros(1)).ndim == 2:
        text = Transcriber(tokenizer_of(spec, file), spec.tokenizer)
    return Stored(count=len(decoded), load=lambda rows: rows_of(tensors, rows), notes=notes, text=text)


def _transcripts(texts: Sequence[str], spec: InputSpec, file: Path) -> tuple[list[list[int]], tuple[str, ...]]:
    """Return transcripts as token ids, in capitals or small letters where the tokenizer knows more of them so."""
    unknown = tokenizer_of(spec, file).unk_token_id
    ways = [ids_of([write(text) for text in texts], spec, file) for write in (str, str.upper, str.lower)]
    missing = [sum(row.count(unknown) for row in rows) for rows in ways]
    best = missing.index(min(missing))
    cases = ("", "capitals", "small letters")
    notes = [f"{file.name}: transcripts are read in {cases[best]}, which the model writes"] if best else []
    if missing[best]:
        notes += [f"{file.name}: the tokenizer does not know {missing[best]} letters or words of the transcripts"]
    return ways[best], tuple(notes)


def _processor(spec: InputSpec) -> Any:
    if spec.folder is None or not any((spec.folder / name).is_file() for name in FILES):
        if spec.folder is not None and spec.takes_sound:
            raise DataError(f"{spec.folder} has no preprocessor_config.json, so sounds cannot be made into its inputs; "
                            "put the file into the folder, or give arrays (.npz)")  # fmt: skip
        return None
    from workbench.models.sources.lean_transformers import quiet, transformers

    loader: Any = transformers.AutoFeatureExtractor
    load = partial(loader.from_pretrained, str(spec.folder), local_files_only=True, trust_remote_code=False)
    with quiet():
        return tried(load, f"the processor in {spec.folder}", spec.folder)


def rate_of(processor: Any, spec: InputSpec) -> int | None:
    """Return the sampling rate in Hz that the model takes, None where nothing states it; DataError for an odd one."""
    rate = getattr(processor, "sampling_rate", None) or spec.rate
    if rate is not None and (not isinstance(rate, int | float) or not LOW <= rate <= HIGH or rate != int(rate)):
        raise DataError(f"the processor in {spec.folder} has the sampling_rate {str(rate)[:40]}; expected "
                        f"{LOW} to {HIGH:,} Hz: correct it")  # fmt: skip
    return None if rate is None else int(rate)


def _made(
    decoded: Sequence[tuple[np.ndarray, int]], rate: int | None, processor: Any, spec: InputSpec
) -> list[np.ndarray]:
    """Return the sounds at the model's rate; with a processor, what it makes of them and, where the model takes it, its
    mask.  Untrusted settings can make that endless: it is done in a limited process.
    """
    same = all(own == (rate or own) for _, own in decoded)
    usual = None if processor is None else inspect.signature(type(processor).__call__).parameters.get("padding")
    padding = {"padding": True} if usual is None or usual.default is False else {}  # Whisper's pads to its window

    def work() -> list[np.ndarray]:
        in_one_thread()
        waves = [resampled(wave, own, rate or own) for wave, own in decoded]
        if processor is None:
            return waves
        try:
            features = processor(waves, sampling_rate=rate, return_tensors="np", **padding)
            masks = ["attention_mask"] if "attention_mask" in features and "attention_mask" in spec.takes else []
            return [np.ascontiguousarray(features[name]) for name in (spec.main, *masks)]
        except MemoryError:
            raise
        except Exception as error:  # transformers raises nearly everything for settings that it does not understand
            raise DataError(f"the processor in {spec.folder} cannot be used: {first_line(error)}") from error

    if processor is None and same:
        return [wave for wave, _ in decoded]
    points = sum(len(wave) * (1 + (rate or own) / own) for wave, own in decoded)
    what = f"{spec.folder}: making its inputs of the sounds" if processor is not None else "resampling the sounds"
    return limited(
        work, what, DataError, seconds=SECONDS + SECONDS_A_SOUND * len(decoded) + points / POINTS_A_SECOND,
        memory=MEMORY + ROOM_A_SOUND * len(decoded) + int(ROOM_A_POINT * points),
    )  # fmt: skip


def heard_at(
    sources: Sequence[Any], rate: int | None, file: Path
) -> tuple[list[tuple[np.ndarray, int]], tuple[str, ...]]:
    """Return each sound's points (float32) and its own rate, and notes of what is resampled to ``rate`` and mixed.

    Raises DataError naming the sound.
    """
    decoded, mixed = _decoded(sources)
    others = sorted({own for _, own in decoded if rate and own != rate})
    notes: tuple[str, ...] = ()
    if others:
        import scipy.signal  # noqa: F401 - here, because the limited process cannot

        notes = (f"{file.name}: resampled from {few(others, 8)} to {rate} Hz, the model's rate",)
    elif decoded and not rate:
        notes = (f"{file.name}: the model does not state its sampling rate; {decoded[0][1]} Hz are taken as they are",)
    if mixed:
        notes += (f"{file.name}: the channels of {mixed:,} of {len(decoded):,} sounds are mixed to one, their mean",)
    return decoded, notes


def _decoded(sources: Sequence[Any]) -> tuple[list[tuple[np.ndarray, int]], int]:
    """Return each sound's points (float32) and rate, and how many had several channels.

    Files are decoded in a limited process.  Raises DataError naming the sound.
    """
    names = [str(each) if isinstance(each, Path) else f"sound {number + 1}" for number, each in enumerate(sources)]
    files = {number: name for number, name in enumerate(names) if not isinstance(sources[number], tuple)}
    read = dict(zip(files, _read([sources[number] for number in files], list(files.values())), strict=True))
    sounds = [
        read[number] if number in read else (_points(source[0], names[number]), float(source[1]))
        for number, source in enumerate(sources)
    ]
    pairs = [_one_channel(wave, rate, name) for (wave, rate), name in zip(sounds, names, strict=True)]
    return pairs, sum(wave.ndim > 1 and min(wave.shape) > 1 for wave, _ in sounds)


def _points(array: Any, name: str) -> np.ndarray:
    """Return decoded points, ``[channels, points]`` or ``[points]``, as ``[points, channels]`` or ``[points]``."""
    try:
        wave: np.ndarray = np.array(array, dtype=np.float32)
    except (TypeError, ValueError):
        wave = np.full(1, np.nan, np.float32)
    if wave.ndim not in (1, 2) or not np.isfinite(wave).all():
        raise DataError(f"{name} is no array of finite numbers, points or channels x points; correct it")
    return wave.T if wave.ndim > 1 else wave


def _read(sources: Sequence[Any], names: Sequence[str]) -> list[tuple[np.ndarray, float]]:
    """Decode paths and bytes; float32 ``[points, channels]`` or ``[points]``."""
    if not sources:
        return []
    try:
        import soundfile  # noqa: F401 - here, because the limited process cannot
    except ImportError as error:
        raise BackendUnavailableError(
            f"reading sounds needs the package soundfile: {error}; pip install 'quantization-workbench[data]'"
        ) from None
    try:
        contents = [each if isinstance(each, bytes) else read_bytes(Path(each)) for each in sources]
    except OSError as error:
        raise DataError(f"{error.filename} cannot be read as a sound: {error.strerror}") from None

    def work() -> list[np.ndarray]:
        pairs = [_decode(content, name) for content, name in zip(contents, names, strict=True)]
        return [array for wave, rate in pairs for array in (wave, np.array(rate))]

    nbytes = sum(map(len, contents))
    what = names[0] if len(names) == 1 else f"one of {len(names)} sounds from {names[0]} on"
    seconds, memory = SECONDS + 0.2 * len(names) + nbytes / BYTES_A_SECOND, MEMORY + 40 * nbytes
    arrays = limited(work, what, DataError, seconds=seconds, memory=memory, answer=(1 << 28) + 20 * nbytes)
    return [(wave, float(rate)) for wave, rate in zip(arrays[::2], arrays[1::2], strict=True)]


def _decode(content: bytes, name: str) -> tuple[np.ndarray, float]:
    import soundfile

    try:
        wave, rate = soundfile.read(io.BytesIO(content), dtype="float32")
    except Exception as error:  # the codecs raise nearly everything
        raise DataError(f"{name} cannot be read as a sound: {first_line(error)}") from None
    return wave, rate


def _one_channel(wave: np.ndarray, rate: float, name: str) -> tuple[np.ndarray, int]:
    """Return a sound as points of one channel, the mean of its channels, and its rate."""
    if not wave.size:
        raise DataError(f"{name} is empty; remove it")
    if not RATES[0] <= rate <= RATES[1]:
        raise DataError(f"{name} has the sampling rate {rate:.0f} Hz; expected {RATES[0]} to {RATES[1]}; "
                        "it may be damaged")  # fmt: skip
    return (wave.mean(axis=1) if wave.ndim > 1 else wave), int(rate)


def resampled(wave: np.ndarray, own: int, rate: int) -> np.ndarray:
    """Return float32 points at ``rate`` of those at ``own`` (Hz), by SciPy's polyphase filter."""
    if own == rate:
        return wave
    from scipy.signal import resample_poly

    common = math.gcd(own, rate)
    return np.asarray(resample_poly(wave, rate // common, own // common), dtype=np.float32)


def _frames(
    waves: Sequence[np.ndarray], labels: Sequence[Any] | None, file: Path, spec: InputSpec, reading: Reading,
    notes: tuple[str, ...],
) -> Stored:  # fmt: skip
    """Return whole sounds of one length, or frames of ``reading.window`` points (float32, samples x points)."""
    size = reading.window or len(waves[0])
    if reading.window is None and any(len(wave) != size for wave in waves):
        raise DataError(f"{file}: the sounds have different lengths; say how many points a sample has (--window N)")
    counts = [len(wave) // size for wave in waves]
    if not sum(counts):
        raise DataError(f"{file}: no sound has {size} points; the longest has {max(map(len, waves))} (--window N)")
    rows = [wave[: count * size].reshape(count, size) for wave, count in zip(waves, counts, strict=True)]
    tensors = {"inputs": torch.from_numpy(np.concatenate(rows))}
    classes = classes_of(labels, spec.folder, file)
    frames = {name: each.repeat_interleave(torch.tensor(counts)) for name, each in classes.tensors().items()}
    tensors, notes = {**tensors, **frames}, (*notes, *classes.notes)
    prepare = None if spec.preprocess is None else preparation(spec)
    return Stored(
        count=sum(counts), load=lambda chosen: rows_of(tensors, chosen), prepare=prepare, notes=notes,
        groups=np.repeat(np.arange(len(counts)), counts),
    )  # fmt: skip
