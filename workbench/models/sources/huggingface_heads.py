"""What a network of transformers gives and takes: its output's meaning, how it is called, and a small sample for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from workbench.models.data.batches import frames
from workbench.models.data.inputs import InputSpec, arguments_for, arguments_of, parameters_of
from workbench.models.execution.dependence import places
from workbench.models.execution.network import Call, Forward
from workbench.models.execution.products import PRODUCTS
from workbench.models.execution.stacked import tensors_of
from workbench.models.layer import LayerKind
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

MATCHES = "ForKeypointMatching"
"""Such a class's samples are pairs of pictures."""

POOLED = ("ForSequenceClassification", "ForQuestionAnswering", "ForTokenClassification")
"""Heads of encoder-decoders that make the decoder's ids of the encoder's; the first pools at the end of the text."""

MULTI_LABEL = "multi_label_classification"
BANDS = ("num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim", "input_dim")
"""What configurations call the number of a sound's frequency bands."""

LARGEST = 30.0
"""Logits of labels are held to this: a detector that reads texts gives minus infinity for words that are not there."""

CHARACTERS = 256
"""Ids of a sample for a model that takes any character."""

LENGTH, DECODER_LENGTH, CHOICES, PIXELS, POINTS, FIRST_ID = 7, 5, 4, 64, 1600, 4
"""Sizes of a sample where the configuration gives none; ids below the fourth are special in most vocabularies."""

LARGEST_SAMPLE = 1 << 26
"""Numbers of one sample at most: videos take some millions."""


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
    without_padding_id = text is not None and getattr(text, "pad_token_id", 0) is None

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
    padding = -1
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
        config.pad_token_id = None


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
        return pooled(states, batch.get("attention_mask"), pooling)
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


PAIRS = {"pixel_values": "vision_config", "input_features": "audio_config"}
"""The other input of models that compare it with texts, and the part of their configuration that is about it."""

INTERNAL = ("embeds", "head_mask", "labels", "past_key_values", "encoder_outputs", "position_ids", "hidden_states")
"""Endings of arguments of the forward pass that no data hold."""

IDS = ("input_ids", "task_inputs", "timesteps")
"""Endings of inputs that are ids of tokens, or numbers of steps."""

EPISODE = {"states": "state_dim", "actions": "act_dim", "rewards": "", "returns_to_go": "", "timesteps": ""}
"""What a Decision Transformer takes of each step, and the setting that says how many numbers that is, if not one."""

PATCHES = "flattened_patches"
"""Pix2Struct's pictures: of each patch its row, its column and its pixels."""

ONE_ENCODER = {"image_size", "num_channels"}
"""Settings of pictures among those of the text: one encoder reads both, and runs with both only."""


def with_answers(network: Any) -> Any:
    """Return ``network``; BLIP for questions then answers its decoder's logits, which it makes for its loss alone.

    The decoder's ids are labels shifted right, as its own generation begins, with zeros where nothing counts.
    """
    if not answers_apart(network):
        return network
    logits = list[torch.Tensor]()

    def begin(module: Any, args: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        labels = given.pop("labels", None)
        if labels is not None:
            shifted = torch.nn.functional.pad(labels[:, :-1], (1, 0), value=network.decoder_start_token_id)
            given["decoder_input_ids"] = shifted.clamp_min(0)
        return args, given

    network.register_forward_pre_hook(begin, with_kwargs=True)
    network.text_decoder.register_forward_hook(lambda decoder, args, answer: logits.append(answer.logits))
    network.register_forward_hook(lambda module, args, answer: {**answer, "logits": logits.pop()})
    return network


def answers_apart(network: Any) -> bool:
    """Return whether a network has a decoder of answers that only its loss and its generation use (BLIP's)."""
    return hasattr(network, "text_decoder") and hasattr(network, "decoder_start_token_id")


def main_inputs(network: Any) -> list[str]:
    """Return the names of what the network is made for, mostly one; OneFormer takes a picture and a task.

    Perceiver's ``inputs`` may be anything: they are ids where a table's rows are looked up by them.
    """
    names = network.main_input_name
    names = [names] if isinstance(names, str) else list(names)
    unclear = names[0] != "input_ids" and "input_ids" in arguments_of(network.forward)[0]
    return ["input_ids"] if unclear and _looks_up(network, names[0]) else names


class _LookedUp(Exception):
    """An input's numbers are places in a table."""


class _LookUps(TorchFunctionMode):
    """Raises _LookedUp where the very numbers of ``ids`` are places in a table."""

    def __init__(self, ids: torch.Tensor) -> None:
        super().__init__()
        self.ids = places([ids])

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        products = PRODUCTS.get(func, lambda args, kwargs: [])(args, kwargs or {})
        if any(each.kind is LayerKind.EMBEDDING and places([each.x]) == self.ids for each in products):
            raise _LookedUp
        return func(*args, **(kwargs or {}))


def _looks_up(network: Any, name: str) -> bool:
    """Return whether the network looks the numbers of the input ``name`` up in a table."""
    ids = torch.ones(1, LENGTH, dtype=torch.int64)
    try:
        with torch.no_grad(), _LookUps(ids):
            network(**{name: ids})
    except _LookedUp:
        return True
    except Exception:  # networks raise anything for what they do not take
        return False
    return False


def required_inputs(network: Any) -> tuple[str, ...]:
    """Return the arguments without which the network cannot run: those without a default, both ends of an
    encoder-decoder, both of a pair, the picture that one encoder reads with the text (ViLT, UDOP)."""
    (takes, needed), (main, *others) = arguments_of(network.forward), main_inputs(network)
    name, names = type(network).__name__, [main, *others] if main not in EPISODE else list(EPISODE)
    settings = network.config.to_dict()
    pairs = {} if "image_token_id" in settings else PAIRS  # a text whose pictures have places may have none
    other = next((end for end, part in pairs.items() if end in takes and part in settings), None)
    if main == "input_ids" and other and not name.endswith(("ForConditionalGeneration", "ForCausalLM")):
        names.append(other)
    elif main == "input_ids" and "pixel_values" in takes and settings.keys() >= ONE_ENCODER:
        names.append("pixel_values")
    if answers_apart(network):
        names += ["input_ids", "decoder_input_ids"]
    elif network.config.is_encoder_decoder and "decoder_input_ids" in takes and not name.endswith(POOLED):
        names.append("decoder_input_ids")
    elif main != "input_ids" and "input_ids" in takes and head_of(name) is OutputKind.TOKEN_LOGITS:
        names.append("input_ids")  # a text beside the picture (BLIP, Kosmos-2)
    return (*names, *(each for each in needed if each not in names))


def tensors_taken(network: Any) -> tuple[str, ...]:
    """Return the arguments whose annotation says that they are tensors, without those that stand for parts of the
    network's own work (embedded inputs, masks of heads)."""
    annotated = {each.name: str(each.annotation) for each in parameters_of(network.forward)}
    return tuple(
        name for name, kind in annotated.items()
        if "Tensor" in kind and not {"tuple", "int"} & set(kind.lower().split()) and not name.endswith(INTERNAL)
    )  # fmt: skip


def sample_of(network: Any, spec: InputSpec) -> Callable[[int], Batch]:
    """Return what makes random samples for a network, of the sizes that its configuration gives: an empty batch where
    one of them is not known."""

    end: Any = getattr(network.config, "eos_token_id", None)
    pools = network.config.is_encoder_decoder and isinstance(end, int) and type(network).__name__.endswith(POOLED[0])

    def sample(count: int) -> Batch:
        generator = torch.Generator().manual_seed(0)
        batch: dict[str, torch.Tensor] = {}
        for name in spec.requires:
            shape = _possible(network, spec, name)
            if shape is None:
                return {}
            if name.endswith(IDS):
                top = spec.vocabulary or getattr(text_config(network.config), "vocab_size", None) or CHARACTERS
                batch[name] = torch.randint(min(FIRST_ID, top - 1), top, (count, *shape), generator=generator)
                if pools:
                    batch[name][:, -1] = end
            else:
                batch[name] = torch.randn(count, *shape, generator=generator)
                if name == PATCHES:
                    batch[name][..., :2].abs_()
        return batch

    return sample


def _possible(network: Any, spec: InputSpec, name: str) -> tuple[int, ...] | None:
    """Return one sample's shape, None also where the folder's settings make no sense: they are untrusted."""
    try:
        shape = _shape(network, spec, name)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, KeyError):
        return None
    whole = shape is not None and all(isinstance(size, int) and size > 0 for size in shape)
    return shape if shape is not None and whole and math.prod(shape) <= LARGEST_SAMPLE else None


def _shape(network: Any, spec: InputSpec, name: str) -> tuple[int, ...] | None:
    """Return one sample's shape of the input ``name``, None where it is not known.  SegGPT's example is a picture and
    a mask, Perceiver's pictures are called ``inputs``."""
    settings = network.config.to_dict()
    if name == "task_inputs":
        return (settings["task_seq_len"],)
    if name in EPISODE:
        return (LENGTH,) if name == "timesteps" else (LENGTH, settings.get(EPISODE[name], 1))
    if name.endswith("input_ids") and not name.startswith("decoder"):  # an InstructBLIP's Q-Former reads ids too
        choices = (CHOICES,) if type(network).__name__.endswith(CHOOSES) else ()
        return (*choices, min(LENGTH, spec.positions or LENGTH))
    if name == "decoder_input_ids":
        return (DECODER_LENGTH,)
    vision = {**settings, **(settings.get("vision_config") or settings.get("encoder") or {})}
    if name == PATCHES:
        return (LENGTH, 2 + vision["patch_embed_hidden_size"])
    if name.endswith(("pixel_values", "prompt_masks")) or (name == "inputs" and "image_size" in settings):
        size = spec.size or vision.get("image_size") or PIXELS
        height, width = size if isinstance(size, list | tuple) else (size, size)
        clip = (vision["num_frames"],) if "num_frames" in vision and name != "inputs" else ()
        clip = (2,) if type(network).__name__.endswith(MATCHES) else clip
        height = height // 2 if "prompt_pixel_values" in spec.takes else height  # the example stands above the picture
        return (*clip, spec.channels or vision.get("num_channels", 3), height, width)
    if name == "pixel_values_videos" and settings.keys() >= {"frames_per_clip", "in_chans", "crop_size"}:
        return (settings["frames_per_clip"], settings["in_chans"], settings["crop_size"], settings["crop_size"])
    if name == "pixel_values_videos" and "num_frames" in vision:
        return (vision["num_frames"], vision.get("num_channels", 3), vision["image_size"], vision["image_size"])
    if name == "past_values" and "context_length" in settings:
        channels = settings.get("num_input_channels")
        return (settings["context_length"], *([channels] if channels else ()))
    return _shape_of_sound(settings, name)


def _shape_of_sound(settings: dict[str, Any], name: str) -> tuple[int, ...] | None:
    """Return the shape of a sound's points or of its spectrogram, None for other inputs."""
    audio = {**settings}
    for part in ("audio_config", "encoder_config", "encoder"):
        audio |= settings.get(part) or {}
    bands = next((audio[key] for key in BANDS if audio.get(key)), None)
    if name in ("input_features", "inputs") and bands:
        if "spec_size" in audio:  # CLAP: the spectrogram is folded into a square picture
            return (1, audio["spec_size"] * (audio["spec_size"] // bands), bands)
        frames = 2 * settings.get("max_source_positions", 32)
        return (bands, frames) if settings["model_type"] == "whisper" else (min(frames, PIXELS), bands)
    if name == "input_values" and ("audio_channels" in settings or "codebook_size" in settings):  # a codec
        return (settings.get("audio_channels", 1), POINTS)
    if name in ("input_values", "inputs"):
        return (settings["max_length"], bands) if bands and "max_length" in settings else (POINTS,)
    return None
