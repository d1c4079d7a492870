"""Labels: by the model's own classes, by number, by order, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from tests.models.data.test_datasets import model
from workbench.errors import DataError
from workbench.models.data.classes import classes_of
from workbench.models.data.datasets import open_dataset

FILE = Path("/data/pets")


def of(folder: Path, **config: object) -> Path:
    (folder / "config.json").write_text(json.dumps({"model_type": "vit", **config}))
    return folder


def test_folders_called_by_numbers_are_those_classes(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / "digits" / str(number)).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "digits" / str(number) / "a.png")
    data = open_dataset(tmp_path / "digits", model(tokens=False, channels=3))
    assert sorted(data.tensors["labels"].tolist()) == list(range(12))
    names = sorted(str(number) for number in range(12))  # the order of the paths
    assert data.tensors["labels"].tolist() == [int(name) for name in names]
    assert data.notes == ("digits: the labels 0, 1, 2, 3, ..., 11 are taken for the numbers of the model's classes",)


@pytest.mark.parametrize("config", [
    {"id2label": {"0": "3", "1": "10", "2": "7"}},
    {"label2id": {"3": 0, "10": 1, "7": 2}},
])  # fmt: skip
def test_names_of_digits_are_the_models_own_names_where_it_has_them(tmp_path: Path, config: dict[str, object]) -> None:
    classes = classes_of(["7", "10", "3"], of(tmp_path, **config), FILE)
    assert classes.numbers == [2, 1, 0] and not classes.notes


def test_numbers_that_the_model_has_no_class_for(tmp_path: Path) -> None:
    folder = of(tmp_path, id2label={str(number): f"LABEL_{number}" for number in range(3)})
    assert classes_of(["02", "00"], folder, FILE).numbers == [2, 0]
    with pytest.raises(DataError, match="3 is not a class of the model, which has 0 to 2; name the classes by"):
        classes_of(["1", "2", "3"], folder, FILE)


def test_names_are_compared_as_people_write_them(tmp_path: Path) -> None:
    folder = of(tmp_path, id2label={"0": "golden retriever", "1": "Tabby"})
    assert classes_of(["tabby", "Golden_Retriever"], folder, FILE).numbers == [1, 0]


def test_other_names_are_numbered_in_their_order_and_that_is_said(tmp_path: Path) -> None:
    folder = of(tmp_path, id2label={"0": "LABEL_0", "1": "LABEL_1"})
    for place in (folder, None):
        classes = classes_of(["dog", "cat", "dog"], place, FILE)
        assert classes.numbers == [1, 0, 1]
        assert classes.notes == ("pets: the classes are numbered in the order of their names: cat = 0, dog = 1",)


def test_fewer_names_than_classes_are_no_labels(tmp_path: Path) -> None:
    folder = of(tmp_path, id2label={str(number): f"c{number}" for number in range(1000)})
    classes = classes_of(["tench", "english_springer"], folder, FILE)
    assert classes.numbers is None and not classes.tensors()
    assert classes.notes == (
        "pets: english_springer, tench are none of the model's 1000 classes (c0, c1, c2, c3, ..., c999), so there are "
        "no labels; name them as the model does, or by its numbers",
    )


def test_more_names_than_classes_are_refused(tmp_path: Path) -> None:
    folder = of(tmp_path, id2label={"0": "LABEL_0", "1": "LABEL_1"})
    with pytest.raises(DataError, match=r"/data/pets has 3 classes \(a, b, c\), the model 2 \(LABEL_0, LABEL_1\)"):
        classes_of(["a", "b", "c"], folder, FILE)


def test_numbers_stay() -> None:
    assert classes_of([0.5, 2], None, FILE).numbers == [0.5, 2]
    assert classes_of(None, None, FILE).numbers is None


@pytest.mark.parametrize("config", [
    {}, {"id2label": {"1" * 5000: "a"}}, {"label2id": {"a": 10**400, "b": 1}}, {"id2label": []},
    {"id2label": {"": "a"}},
])  # fmt: skip
def test_names_of_thousands_of_digits_are_names(tmp_path: Path, config: dict[str, object]) -> None:
    """Python turns no more than 4,300 into a number."""
    classes = classes_of(["1" * 5000, "2" * 5000], of(tmp_path, **config), FILE)
    assert classes.numbers == [0, 1]


def test_settings_that_are_no_table_name_no_classes(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[1]")
    assert classes_of(["a", "b"], tmp_path, FILE).numbers == [0, 1]
