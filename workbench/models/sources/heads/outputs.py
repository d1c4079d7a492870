"""What a network of transformers gives: its output's meaning, and how it is called for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from workbench.models.data.batches import FRAMES, frames
from workbench.models.data.inputs import InputSpec, arguments_for
from workbench.models.execution.network import Call, Forward
from workbench.models.execution.stacked import tensors_of
from workbench.models.model import Batch
from workbench.models.readers.pooling import Pooling
from workbench.models.sources.probabilities import label_logits
from workbench.models.summary import OutputKind
from workbench.readable import few

HEADS: Mapping[str, OutputKind] = {
    "BlipForQuestionAnswering": OutputKind.TOKEN_LOGITS,  # of its decoder's answer
    "ForCausalLM": OutputKind.TOKEN_LOGITS, "LMHeadModel": OutputKind.TOKEN_LOGITS, "MTModel": OutputKind.TOKEN_LOGITS,
    "ForConditionalGeneration": OutputKind.TOKEN_LOGITS, "ForMaskedLM": OutputKind.TOKEN_CLASSES,
    "ForTokenClassification": OutputKind.TOKEN_CLASSES, "ForSequenceClassification": OutputKind.CLASS_LOGITS,
    "ForImageClassification": OutputKind.CLASS_LOGITS, "ForImageClassificationWithTeacher": OutputKind.CLASS_LOGITS,
    "ForAudioClassification": OutputKind.CLASS_LOGITS, "ForVideoClassification": OutputKind.CLASS_LOGITS,
    "ForNextSentencePrediction": OutputKind.CLASS_LOGITS, "ForXVector": OutputKind.CLASS_LOGITS,
    "ForMultipleChoice": OutputKind.CLASS_LOGITS,
    "ForQuestionAnswering": OutputKind.POSITION_CLASSES, "ForAudioFrameClassification": OutputKind.POSITION_CLASSES,
    "ForSemanticSegmentation": OutputKind.POSITION_CLASSES, "ForUniversalSegmentation": OutputKind.POSITION_CLASSES,
    "DetrForSegmentation": OutputKind.POSITION_CLASSES,
    "ForInstanceSegmentation": OutputKind.POSITION_CLASSES, "DetForObjectDetection": OutputKind.POSITION_CLASSES,
    "ForObjectDetection": OutputKind.DETECTIONS, "ForCTC": OutputKind.POSITION_CLASSES,
    "ForQuestionAnsweringSimple": OutputKind.POSITION_CLASSES,
    **dict.fromkeys(
        ("EncoderDecoderModel", "DoubleHeadsModel", "ModelWithLMHead", "GenerationDecoder", "ForCausalImageModeling",
         "Text2Text", "ForTextToText", "ForSpeechToText", "Reasoning_V3"), OutputKind.TOKEN_LOGITS),
    **dict.fromkeys(
        ("ForClassification", "ForTimeSeriesClassification", "ForImageClassificationConvProcessing",
         "ForImageClassificationFourier", "ForImageClassificationLearned"), OutputKind.CLASS_LOGITS),
    "Model": OutputKind.EMBEDDING,
}  # fmt: skip
"""What comes out of a network, by the ending of its class's name in transformers; the first that fits holds.

Detectors of text (PP-OCR, ``...DetForObjectDetection``) answer pixels.

Any other class with a head gives plain numbers: its first output with a row for each sample (depths, boxes, pixels).
"""

CHOOSES = "ForMultipleChoice"
"""Such a class's ids are samples x choices x tokens, and its classes the choices, whatever ``num_labels`` says."""

MULTI_LABEL = "multi_label_classification"

LARGEST = 30.0
"""Logits of labels are held to this: a detector that reads texts gives minus infinity for words that are not there."""


def head_of(architecture: str) -> OutputKind | None:
    """Return what the class gives, None for one whose name does not tell."""
    return next((output for ending, output in HEADS.items() if architecture.endswith(ending)), None)


def network_head(network: Any) -> OutputKind | None:
    """Return what a network gives by its class, or of words' probabilities the classes of the words themselves where
    each place sees all of them: XLNet, CPM-Ant, XLM by ``causal``, encoders that ``is_decoder`` makes no decoders."""
    head, config = head_of(type(network).__name__), network.config
    knows = frozenset(dir(type(config)))  # GPT-NeoX's and Evolla's have is_decoder and go by it nowhere
    decides = {"is_decoder", "add_cross_attention"} <= knows and not config.sub_configs
    encodes = decides and not config.is_decoder
    sees_all = encodes or config.model_type in ("xlnet", "cpmant") or ("causal" in knows and not config.causal)
    if head is OutputKind.TOKEN_LOGITS and sees_all and not config.is_encoder_decoder:
        return OutputKind.TOKEN_CLASSES
    return head


def output_kind(network: Any) -> OutputKind:
    """Return what a network gives: logits of labels (or choices) that exclude each other or not, or plain numbers."""
    head, config = network_head(network), network.config
    if type(network).__name__.endswith(CHOOSES):
        return OutputKind.CLASS_LOGITS
    if head is OutputKind.CLASS_LOGITS and config.problem_type == MULTI_LABEL:
        return OutputKind.POSITION_CLASSES
    plain = config.num_labels == 1 or config.problem_type == "regression"
    return OutputKind.EMBEDDING if head is None or (head is OutputKind.CLASS_LOGITS and plain) else head


def call_of(head: OutputKind | None, spec: InputSpec, config: Any) -> Call:
    """Return how a batch is handed to the network, and what of its answer is the output."""
    several = head is OutputKind.CLASS_LOGITS and config.problem_type == MULTI_LABEL
    positions = head is OutputKind.POSITION_CLASSES
    labels = None if "input_ids" in spec.takes else config.num_labels  # those of a text are as many as its words
    options = {"use_cache": False} if head is OutputKind.TOKEN_LOGITS and "use_cache" in spec.takes else {}
    text = text_config(config) if head is OutputKind.CLASS_LOGITS and "input_ids" in spec.takes else None
    known = getattr(text, "pad_token_id", 0)
    without_padding_id = text is not None and (known is None or known < 0)

    def call(forward: Forward, batch: Batch) -> torch.Tensor:
        with padding_id(text, batch) if without_padding_id else nullcontext():
            answer = forward(**arguments_for(batch, spec), **options)
        result = _result(answer, head, batch, labels, spec.pooling)
        single = positions and result.ndim == 2  # one number for each position: in the answer or not (TAPAS)
        return label_logits(result) if several or single else result

    return call


@contextmanager
def padding_id(config: Any, batch: Batch) -> Iterator[None]:
    """Let a classifier that looks for the last token before the padding know which id that is in ``batch``.

    Its configuration names none, and it refuses more than one sample.  Without padding no id is one.  Raises ValueError
    where the padding's id also ends a text.
    """
    mask, ids = batch.get("attention_mask"), batch.get("input_ids")
    before, padding = config.pad_token_id, -1
    if mask is not None and ids is not None and mask.shape == ids.shape and bool((mask == 0).any()):
        fillers = list(set(ids[mask == 0].tolist()))
        places = torch.arange(ids.shape[1], device=ids.device)
        last = ids.gather(1, ((mask != 0) * places).argmax(dim=1, keepdim=True))
        if len(fillers) > 1 or bool((last == fillers[0]).any()):
            raise ValueError(
                "config.json names no pad_token_id, and the ids that fill up the texts also end one: name it there"
            )
        padding = fillers[0]
    config.pad_token_id = padding
    try:
        yield
    finally:
        config.pad_token_id = before


def _result(
    answer: Any, head: OutputKind | None, batch: Batch, labels: int | None, pooling: Pooling
) -> torch.Tensor:  # fmt: skip
    if "action_preds" in answer:  # of a Decision Transformer, which predicts what it sees as well
        actions: torch.Tensor = answer["action_preds"]
        return actions
    if head is OutputKind.EMBEDDING:
        pair = [answer.get(name) for name in ("image_embeds", "audio_embeds", "text_embeds")]
        if sum(each is not None for each in pair) == 2:  # of a pair of towers, whose logits mix the samples
            return torch.cat([each.flatten(1) for each in pair if each is not None], dim=1)
        outputs = [value for name, value in answer.items() if name != "loss"]  # a codec answers its own, and codes
        states = next((each for each in tensors_of(outputs) if each.is_floating_point()), answer[0])
        own = (each for name, each in batch.items() if name.startswith(FRAMES))
        counted = next((mask for mask in own if mask.shape == states.shape[:2]), None)
        return pooled(states, batch.get("attention_mask") if counted is None else counted, pooling)
    if "start_logits" in answer:
        return torch.stack([answer["start_logits"], answer["end_logits"]], dim=1)
    if head is OutputKind.DETECTIONS:
        return _objects(answer, labels)
    if answer.get("masks_queries_logits") is not None:
        return _segmented(answer["class_queries_logits"], answer["masks_queries_logits"])
    if answer.get("pred_masks") is not None and head is OutputKind.POSITION_CLASSES:  # of DETR for segmentation
        return _segmented(answer["logits"], answer["pred_masks"])
    logits = answer.get("logits")
    if head is not None and logits is not None:
        single = head is OutputKind.CLASS_LOGITS and logits.ndim == 3 and logits.shape[1] == 1  # VideoPrism's query
        ids = batch.get("input_ids") if head is OutputKind.TOKEN_CLASSES else None
        places = None if ids is None else ids.shape[1]  # Perceiver answers for all that it could be given
        result: torch.Tensor = logits.squeeze(1) if single else logits[:, :places]
        return result
    if head in (OutputKind.TOKEN_LOGITS, OutputKind.TOKEN_CLASSES, OutputKind.POSITION_CLASSES):
        raise ValueError(f"its answer has no logits, only {few(answer, 8)}: nothing of it tells what the head gives")
    samples = len(next(iter(batch.values())))
    for _, value in sorted(answer.items(), key=lambda item: "hidden_state" in item[0]):  # a forecast after its states
        alike = isinstance(value, tuple) and len({getattr(each, "shape", None) for each in value}) == 1
        tensor = torch.stack(value, dim=-1) if alike else value  # of a forecast, the parameters of its distribution
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.shape[:1] == (samples,):
            return tensor
    raise ValueError(f"its answer has no tensor with a row for each sample: {few(answer, 8)}")


def _objects(answer: Any, labels: int | None) -> torch.Tensor:
    """Return a detector's objects, ``[samples, objects, labels + 4]``.

    ``labels`` is the number of the model's classes, None where a text gives them.
    One more logit than labels is that of no object at all: the classes exclude each other, and each one's logit is that
    of its probability.
    """
    logits, boxes = answer.get("logits"), answer.get("pred_boxes")
    if logits is None or boxes is None:
        raise ValueError(f"a detector answers logits and pred_boxes; its answer has {few(answer, 8)}")
    if labels is not None and logits.shape[-1] == labels + 1:
        probabilities = torch.softmax(logits.double(), dim=-1)[..., :-1]
        logits = (probabilities.log() - torch.log1p(-probabilities)).to(boxes.dtype)
    return torch.cat([logits.clamp(-LARGEST, LARGEST), boxes], dim=-1)


def _segmented(classes: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return the logits of every pixel's class, ``[samples, classes, height, width]``, from those of masks.

    ``classes`` are ``[samples, masks, classes + 1]``, the last of no object; ``masks`` ``[samples, masks, height,
    width]``.  Pixels get the sum of the masks' probabilities times those of their classes (Cheng et al., "Per-Pixel
    Classification is Not All You Need for Semantic Segmentation", NeurIPS 2021).
    """
    shares = torch.softmax(classes, dim=-1)[..., :-1]
    return torch.einsum("bqc,bqhw->bchw", shares, masks.sigmoid()).clamp_min(torch.finfo(masks.dtype).tiny).log()


def pooled(states: torch.Tensor, mask: torch.Tensor | None, pooling: Pooling = Pooling.MEAN) -> torch.Tensor:
    """Return one vector for each sample of ``states`` (samples x tokens x features): of the tokens whose ``mask`` is 1
    the mean, the first or the last one.  States of other ranks are no tokens': their mean over space."""
    if states.ndim != 3:
        return states.flatten(1) if states.ndim < 3 else states.mean(dim=tuple(range(2, states.ndim)))
    if mask is not None and len(mask) == len(states) and mask.ndim == 2 and mask.shape[1] > states.shape[1]:
        mask = frames(mask, states.shape[1])
    if mask is None or mask.shape != states.shape[:2]:
        return states.mean(dim=1) if pooling is Pooling.MEAN else states[:, -1 if pooling is Pooling.LAST else 0]
    if pooling is not Pooling.MEAN:
        places = torch.arange(mask.shape[1], device=mask.device)
        seen = mask != 0
        place = (seen * places).argmax(dim=1) if pooling is Pooling.LAST else seen.int().argmax(dim=1)
        return states[torch.arange(len(states), device=states.device), place.to(states.device)]
    weights = mask.to(states.dtype).unsqueeze(-1)
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def text_config(config: Any) -> Any:
    """Return the part of a configuration that is about text: its encoder's where it has several (MusicGen)."""
    try:
        return config.get_text_config()
    except ValueError:
        return config.get_text_config(encoder=True)
