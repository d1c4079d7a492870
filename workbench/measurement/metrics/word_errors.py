"""Word error rate of speech recognition by connectionist temporal classification (CTC)."""

from __future__ import annotations

from workbench.errors import BackendUnavailableError
from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.measurement.units import PERCENT
from workbench.models.summary import OutputKind


def _word_errors(outputs: Outputs) -> Sums | None:
    """Return the word errors of the likeliest frames' text and the words of the transcript, of each sample."""
    labels, text = outputs.batch.get("labels"), outputs.text
    if outputs.kind is not OutputKind.POSITION_CLASSES or labels is None or labels.ndim != 2 or text is None:
        return None
    try:
        import jiwer
    except ImportError as error:
        raise BackendUnavailableError(
            f"the word error rate needs the package jiwer: {error}; pip install 'quantization-workbench[data]'"
        ) from None
    spoken = text.written([row[row >= 0].tolist() for row in labels])
    import torch

    rows = []
    for logits in (outputs.quantized, outputs.reference):
        frames = [row.argmax(dim=-1)[counts].tolist() for row, counts in zip(logits, outputs.counted, strict=True)]
        pairs = zip(spoken, text.heard(frames), strict=True)
        counts = [jiwer.process_words(transcript, each) if transcript.split() else None for transcript, each in pairs]
        rows.append([0 if it is None else it.substitutions + it.deletions + it.insertions for it in counts])
    quantized, baseline = (100.0 * torch.tensor(row, dtype=torch.float64) for row in rows)
    return Sums(quantized, baseline, torch.tensor([len(transcript.split()) for transcript in spoken]))


WORD_ERROR_RATE = EvaluationMetric(
    name="wer", title="Word error rate", unit=PERCENT, higher_is_better=False, measure=_word_errors,
    meaning="Words that are wrong, missing or too many, over the words of the transcripts, in %; lower is better",
)  # fmt: skip
