"""What a network of transformers takes: the inputs that it is made for, how it counts them, and a small sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from workbench.models.data.batches import FRAMES, Padding
from workbench.models.data.inputs import InputSpec, arguments_of, parameters_of
from workbench.models.execution.dependence import places
from workbench.models.execution.products import PRODUCTS
from workbench.models.layer import LayerKind
from workbench.models.model import Batch
from workbench.models.sources.heads.outputs import CHOOSES, head_of, text_config
from workbench.models.summary import OutputKind

MATCHES = "ForKeypointMatching"
"""Such a class's samples are pairs of pictures."""

POOLED = ("ForSequenceClassification", "ForQuestionAnswering", "ForTokenClassification")
"""Heads of encoder-decoders that make the decoder's ids of the encoder's; the first pools at the end of the text."""

BANDS = ("num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim", "input_dim")
"""What configurations call the number of a sound's frequency bands."""

CHARACTERS = 256
"""Ids of a sample for a model that takes any character."""

LENGTH, DECODER_LENGTH, CHOICES, PIXELS, POINTS, FIRST_ID = 7, 5, 4, 64, 1600, 4
"""Sizes of a sample where the configuration gives none; ids below the fourth are special in most vocabularies."""

LARGEST_SAMPLE = 1 << 26
"""Numbers of one sample at most: videos take some millions."""

PAIRS = {"pixel_values": "vision_config", "input_features": "audio_config"}
"""The other input of models that compare it with texts, and the part of their configuration that is about it."""

INTERNAL = ("embeds", "head_mask", "labels", "past_key_values", "encoder_outputs", "position_ids", "hidden_states")
"""Endings of arguments of the forward pass that no data hold."""

IDS = ("input_ids", "task_inputs", "timesteps")
"""Endings of inputs that are ids of tokens, or numbers of steps."""

EPISODE = {"states": "state_dim", "actions": "act_dim", "rewards": "", "returns_to_go": "", "timesteps": ""}
"""What a Decision Transformer takes of each step, and the setting that says how many numbers that is, if not one."""

LENGTHS = ("_get_feat_extract_output_lengths", "_get_subsampling_output_length")
"""Functions by which networks count the frames of so many points of sound."""

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


def arrangement(network: Any) -> Callable[[Batch], Batch] | None:
    """Return what makes of a batch with padding what the network goes by; None where that is the batch itself.

    Classifiers of texts that look for the last token before the padding's id find it, those that read the last place
    (XLNet) have the padding before it, and sounds get the masks of their frames as the network counts them.
    """
    if (
        head_of(type(network).__name__) is not OutputKind.CLASS_LOGITS
        or "input_ids" not in arguments_of(network.forward)[0]
    ):
        return _frames_of(network)
    config = text_config(network.config)
    padding, last = getattr(config, "pad_token_id", None), getattr(config, "summary_type", "") == "last"

    def arrange(batch: Batch) -> Batch:
        mask, ids = batch.get("attention_mask"), batch.get("input_ids")
        if mask is None or ids is None or mask.shape != ids.shape or bool((mask != 0).all()):
            return batch
        if padding is not None and padding >= 0:
            batch = {**batch, "input_ids": ids.where(mask != 0, padding)}
        if not last:
            return batch
        width = mask.shape[-1]
        places = torch.arange(width, device=mask.device)
        end = ((mask != 0) * (places + 1)).amax(dim=-1, keepdim=True)
        return {
            name: each.gather(-1, (places + end) % width) if each.shape == mask.shape else each
            for name, each in batch.items()
        }  # fmt: skip

    return arrange


def _frames_of(network: Any) -> Callable[[Batch], Batch] | None:
    """Return what adds to a batch of padded sounds the masks of their frames as the network counts them; None where it
    has no function that does."""
    named = ((getattr(module, name, None) for name in LENGTHS) for module in network.modules())
    function = next((each for found in named for each in found if each is not None), None)
    if function is None:
        return None

    def counts(points: int) -> list[int]:
        counted = function(torch.tensor(points))  # one of them by one, as Moonshine's takes them
        return [int(count) for count in (counted if isinstance(counted, tuple) else [counted])]

    def add(batch: Batch) -> Batch:
        masks = dict[str, torch.Tensor]()
        for mask in Padding.of(batch).sounds if not any(name.startswith(FRAMES) for name in batch) else ():
            own = [counts(points) for points in (mask.shape[1], *mask.sum(dim=1).tolist())]
            for total, *each in zip(*own, strict=True):
                places = torch.arange(max(total, 0), device=mask.device)
                masks[f"{FRAMES}{len(masks)}"] = places < torch.tensor(each, device=mask.device)[:, None]
        return {**batch, **masks}

    try:
        counts(POINTS)
    except Exception:  # configurations of networks with other inputs leave it without its settings
        return None
    return add


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
        reader = PRODUCTS.get(func)
        products = [] if reader is None else reader(args, kwargs or {})
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
