from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from dmt.data.images.datasets import DATASETS
from dmt.data.images.options import DataOptions
from dmt.pseudo import labeler
from dmt.pseudo.image_store import ImageStore
from dmt.pseudo.labeler import Teacher
from dmt.tasks import classification
from dmt.tasks.classification import Classification
from dmt.training import inference

CPU = torch.device("cpu")


class Brightness(nn.Module):
    """Labels by mean gray, in train mode wrongly: labeling must use eval mode."""

    def forward(self, images: Tensor) -> Tensor:
        level = images.mean((1, 2, 3)) * 10 if not self.training else torch.zeros(len(images))
        return -(level[:, None] - torch.arange(10)).abs()


@pytest.fixture(scope="module")
def task() -> Classification:
    options = DataOptions("digits", labels=100, validation=200, augment="shift")
    return classification.split_up(options, DATASETS["digits"].read(Path("nowhere"), print), seed=1)[0]


def label(task: Classification, fraction: float = 0.4, per_class: bool = False, noise: float = 0.0) -> ImageStore:
    wish = labeler.Wish(fraction, per_class, noise, seed=1, provenance={"by": "A0"})
    return labeler.label(Teacher((Brightness().train(),), task, CPU), wish)


def test_keeps_the_most_confident_of_all(task: Classification) -> None:
    store = label(task)
    expected = Brightness().eval()(task.unlabeled.images[:] / 255).softmax(1).max(1)
    assert torch.equal(store.target.labels, expected.indices)
    torch.testing.assert_close(store.target.confidence, expected.values)
    kept = store.target.confidence[store.selected]
    assert len(kept) == 439  # floor(0.4 · 1097 + 0.5)
    assert kept.min() >= store.target.confidence[~store.selected].max()
    coverage = store.coverage(10)
    assert sum(coverage["predicted"]) == 1097
    assert sum(coverage["kept"]) == 439


def test_per_class_covers_every_predicted_class(task: Classification) -> None:
    coverage = label(task, per_class=True).coverage(10)
    for predicted, kept in zip(coverage["predicted"], coverage["kept"], strict=True):
        assert kept == int(0.4 * predicted + 0.5)


def test_noise_corrupts_exactly_its_share_of_the_kept(task: Classification) -> None:
    clean, noisy = label(task), label(task, noise=0.3)
    changed = clean.target.labels != noisy.target.labels
    assert int(changed.sum()) == 132  # floor(0.3 · 439 + 0.5), and every one is another class
    assert bool((changed & ~clean.selected).sum() == 0)
    assert torch.equal(clean.target.confidence, noisy.target.confidence)


def test_store_comes_back_bit_for_bit(task: Classification, tmp_path: Path) -> None:
    store = label(task)
    assert not ImageStore.exists(tmp_path)
    store.save(tmp_path)
    again = ImageStore.load(tmp_path)
    assert torch.equal(again.target.labels, store.target.labels)
    assert torch.equal(again.target.confidence, store.target.confidence)
    assert torch.equal(again.selected, store.selected)
    assert again.provenance == {"by": "A0"}


def test_scores_leave_the_mode_of_the_net_alone(task: Classification) -> None:
    net = Brightness().train()
    score = inference.score(net, task, task.test, CPU)
    assert net.training
    assert score.count == 400
    assert sum(map(sum, score.confusion)) == 400
    assert score.fine_grained < score.accuracy
