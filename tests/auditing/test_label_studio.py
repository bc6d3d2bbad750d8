"""Label Studio gets tasks with a first annotation that can be read back, and an interface that fits them."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from dmt.auditing import label_studio
from dmt.auditing.label_studio import LabelingTask

CLASSES = ("cat", 'a "dog" & <b>', "café")


def test_an_image_gets_its_class_as_a_choice() -> None:
    labeling = LabelingTask("un labeled/ü#1.png", 1, None, 0.75, why=(("doubt", 0.5),))
    (task,) = json.loads(label_studio.tasks([labeling], CLASSES, "dmt"))
    assert task["data"] == {
        "image": "/data/local-files/?d=un%20labeled/%C3%BC%231.png",
        "file": "un labeled/ü#1.png",
        "doubt": 0.5,
    }
    (prediction,) = task["predictions"]
    assert prediction["score"] == 0.75
    (result,) = prediction["result"]
    assert (result["type"], result["value"]) == ("choices", {"choices": ['a "dog" & <b>']})


@pytest.mark.parametrize("size", [None, (12, 10)])
def test_pixels_get_a_stroke_for_each_class_that_can_be_read_back(size: tuple[int, int] | None) -> None:
    mask = np.random.default_rng(0).integers(0, 2, (6, 5)).astype(np.uint8) * 2  # classes 0 and 2
    (task,) = json.loads(label_studio.tasks([LabelingTask("a.png", None, mask, 0.5, size)], CLASSES, "dmt"))
    results = task["predictions"][0]["result"]
    assert [each["value"]["brushlabels"] for each in results] == [["cat"], ["café"]]
    height, width = size or mask.shape
    whole = mask if size is None else mask.repeat(2, 0).repeat(2, 1)
    for number, each in zip((0, 2), results, strict=True):
        assert (each["original_height"], each["original_width"]) == (height, width)
        assert each["value"]["format"] == "rle"
        assert np.array_equal(label_studio.unstroke(each["value"]["rle"], (height, width)), whole == number)


@pytest.mark.parametrize("pixels", [False, True])
def test_the_interface_names_what_the_tasks_name(pixels: bool) -> None:
    palette = ((0, 0, 0), (255, 0, 16), (1, 2, 3))
    root = ElementTree.fromstring(label_studio.interface(CLASSES, palette, pixels=pixels))
    labels = root.find("BrushLabels" if pixels else "Choices")
    assert labels is not None
    assert [each.get("value") for each in labels] == list(CLASSES)
    assert [each.get("background") for each in labels] == (["#000000", "#ff0010", "#010203"] if pixels else [None] * 3)
    labeling = LabelingTask("a.png", None if pixels else 0, np.zeros((2, 2), np.uint8) if pixels else None, 1.0)
    (task,) = json.loads(label_studio.tasks([labeling], CLASSES, "dmt"))
    (result,) = task["predictions"][0]["result"]
    image = root.find("Image")
    assert image is not None
    assert (result["from_name"], result["to_name"]) == (labels.get("name"), image.get("name"))
    assert image.get("value") == "$image"
    assert "image" in task["data"]


def test_a_control_character_in_a_name_is_the_same_in_both_files() -> None:
    text = label_studio.interface(("a\x01\nb", "c"), (), pixels=False)
    choices = ElementTree.fromstring(text).find("Choices")
    assert choices is not None
    (task,) = json.loads(label_studio.tasks([LabelingTask("a.png", 0, None, 1.0)], ("a\x01\nb", "c"), "dmt"))
    assert task["predictions"][0]["result"][0]["value"]["choices"] == [choices[0].get("value")]
