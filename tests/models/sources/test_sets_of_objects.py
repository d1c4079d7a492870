"""What detectors and universal segmentation answer, as transformers' own post-processing reads it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from workbench.models.data.inputs import InputSpec
from workbench.models.sources.heads.outputs import call_of, head_of
from workbench.models.summary import OutputKind
from workbench.numerics.detections import boxes_of, labels_of

BATCH = {"pixel_values": torch.zeros(2, 3, 8, 8)}


class Answer(dict[str, torch.Tensor]):
    """An answer of transformers."""


def answered(architecture: str, takes: frozenset[str] = frozenset({"pixel_values"}), **answer: torch.Tensor) -> Any:
    """The output that is read from an answer."""
    spec = InputSpec(takes=takes, requires=("pixel_values",))
    config = SimpleNamespace(num_labels=3, problem_type=None)
    return call_of(head_of(architecture), spec, config)(lambda **_: Answer(answer), BATCH)


def test_a_class_for_no_object_leaves_the_probabilities_of_the_others() -> None:
    logits, boxes = torch.randn(2, 5, 4) * 8, torch.rand(2, 5, 4)
    output = answered("DetrForObjectDetection", logits=logits, pred_boxes=boxes)
    assert head_of("DetrForObjectDetection") is OutputKind.DETECTIONS and output.shape == (2, 5, 7)
    torch.testing.assert_close(labels_of(output).sigmoid(), torch.softmax(logits, dim=-1)[..., :3])
    assert torch.equal(boxes_of(output), boxes)


def test_labels_of_their_own_and_words_of_a_text_are_logits_as_they_come() -> None:
    boxes = torch.rand(2, 5, 4)
    for architecture, words, takes in (
        ("RTDetrForObjectDetection", 3, {"pixel_values"}),
        ("OwlViTForObjectDetection", 4, {"pixel_values", "input_ids"}),  # four words, and no class for none of them
    ):
        logits = torch.randn(2, 5, words)
        logits[0, 0, 0] = -torch.inf
        output = answered(architecture, frozenset(takes), logits=logits, pred_boxes=boxes)
        assert torch.equal(labels_of(output), logits.clamp_min(-30.0))


def test_text_detectors_answer_pixels_and_others_say_what_is_missing() -> None:
    assert head_of("PPOCRV5MobileDetForObjectDetection") is OutputKind.POSITION_CLASSES
    with pytest.raises(ValueError, match="a detector answers logits and pred_boxes; its answer has logits"):
        answered("RTDetrForObjectDetection", logits=torch.zeros(2, 5, 3))


def test_masks_and_their_classes_become_classes_of_pixels() -> None:
    from transformers import Mask2FormerImageProcessor

    classes, masks = torch.randn(2, 6, 4), torch.randn(2, 6, 384, 384)
    output = answered("Mask2FormerForUniversalSegmentation", class_queries_logits=classes, masks_queries_logits=masks)
    assert head_of("Mask2FormerForUniversalSegmentation") is OutputKind.POSITION_CLASSES
    assert head_of("MaskFormerForInstanceSegmentation") is OutputKind.POSITION_CLASSES
    boxes = torch.rand(2, 6, 4)
    assert head_of("DetrForSegmentation") is OutputKind.POSITION_CLASSES
    assert torch.equal(answered("DetrForSegmentation", logits=classes, pred_boxes=boxes, pred_masks=masks), output)
    answer = SimpleNamespace(class_queries_logits=classes, masks_queries_logits=masks)
    theirs = Mask2FormerImageProcessor().post_process_semantic_segmentation(answer)
    assert all(torch.equal(own.argmax(dim=0), each) for own, each in zip(output, theirs, strict=True))
