import dataclasses
from pathlib import Path

import torch

from dmt.data.images.datasets import DATASETS
from dmt.data.sets import LabeledSet, UnlabeledSet


def test_digits_are_what_is_said_of_them() -> None:
    data = DATASETS["digits"]
    train, test = data.read(Path("nowhere"), print)
    assert (len(train), len(test)) == (data.train, data.test)
    assert train.images.dtype == torch.uint8
    assert tuple(train.images.shape[1:]) == data.shape
    assert int(train.images.max()) == 255
    assert not set(train.ids) & set(test.ids)
    assert torch.bincount(test.labels).tolist() == [40] * 10
    scaled = train.images.float() / 255
    assert abs(float(scaled.mean()) - data.normalization.mean[0]) < 5e-3
    assert abs(float(scaled.std()) - data.normalization.std[0]) < 5e-3


def test_an_unlabeled_sample_has_no_truth_by_type() -> None:
    assert {field.name for field in dataclasses.fields(UnlabeledSet)} == {"ids", "images", "digests"}


def test_fingerprints_see_every_bit() -> None:
    base = LabeledSet(("a", "b"), torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 1]))
    images = base.images.clone()
    images[1, 0, 1, 1] = 1
    others = [
        LabeledSet(("a", "c"), base.images, base.labels),
        LabeledSet(base.ids, images, base.labels),
        LabeledSet(base.ids, base.images, torch.tensor([1, 1])),
    ]
    prints = {each.fingerprint for each in [base, *others]}
    assert len(prints) == 4
    assert base.without_truth().fingerprint == others[2].without_truth().fingerprint
