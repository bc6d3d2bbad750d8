"""Labels that are the mean of several passes, computed again in numpy, image by image and without padding."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dmt.core import codes, dropout, labeling_views, streams
from dmt.data import ragged
from dmt.data.images import augment
from dmt.data.pixels.windows import Window
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.pseudo import labeler
from dmt.pseudo.labeler import Teacher, Wish
from dmt.pseudo.pixel_writer import PixelWriter
from dmt.tasks.classification import Classification
from dmt.tasks.segmentation import Segmentation
from dmt.types import IMAGENET

CPU = torch.device("cpu")
COLORS = ((0, 0, 0), (255, 0, 0), (0, 255, 0))
SIZES = [(30, 20), (17, 32), (40, 9), (30, 20), (2, 31)]


class Sided(nn.Module):
    """Looks at a pixel and its left neighbor, so that a mirror changes what it says; in train mode it is wrong."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) to as many logits."""
        found = self.factor * (images - 2 * functional.pad(images, (1, 0))[..., :-1])
        return -found if self.training else found


class Pooled(Sided):
    """The same for whole images: only their right column counts."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images)[..., -1].sum(2)


def said(image: np.ndarray, factor: float) -> np.ndarray:
    """What `Sided` says of (3, H, W), in numpy."""
    return np.asarray(factor * (image - 2 * np.pad(image, ((0, 0), (0, 0), (1, 0)))[..., :-1]))


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(0))
    return np.asarray(raised / raised.sum(0))


@pytest.fixture
def images() -> Classification:
    pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (12, 3, 4, 5), dtype=np.uint8))
    unlabeled = UnlabeledSet(tuple(map(str, range(12))), pixels)
    labeled = LabeledSet(("one",), pixels[:1], torch.zeros(1, dtype=torch.int64))
    splits = (labeled, unlabeled, labeled, labeled)
    return Classification(("a", "b", "c"), (3, 4, 5), IMAGENET, augment.views("crop-flip"), *splits)


@pytest.fixture
def pixels() -> Segmentation:
    rng = np.random.default_rng(0)
    whole = ragged.stack([rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in SIZES])
    masks: Ragged = ragged.stack([np.zeros(size, np.uint8) for size in SIZES])
    ids = tuple(map(str, range(len(SIZES))))
    labeled = LabeledSet(ids, whole, masks)
    splits = (labeled, labeled.without_truth(), labeled, labeled)
    return Segmentation(("a", "b", "c"), COLORS, IMAGENET, Window(16, 16), *splits)


def labeled(teacher: Teacher, folder: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Labels and codes of all pixels, image by image."""
    sizes = teacher.task.unlabeled.images.sizes
    writer = PixelWriter(folder, teacher.task.unlabeled.ids, sizes, len(teacher.task.classes))
    labeler.label_pixels(teacher, writer)
    writer.select(1.0)
    planes, packed = writer.planes
    every = range(len(sizes))
    return [planes.image(at).numpy() for at in every], [codes.unpack(packed.image(at)).numpy() for at in every]


@pytest.mark.parametrize("factors", [(3.0,), (3.0, 1.0)], ids=["one net", "two nets"])
def test_images(images: Classification, factors: tuple[float, ...]) -> None:
    nets = tuple(Pooled(factor).train() for factor in factors)
    store = labeler.label(Teacher(nets, images, CPU, labeling_views.every(["flip"])), Wish(0.5))
    assert all(net.training for net in nets)
    changed = 0
    for row, image in enumerate(images.unlabeled.images[:].double().numpy() / 255):
        every = [
            softmax(said(view, factor)[..., -1].sum(1)) for factor in factors for view in (image, image[..., ::-1])
        ]
        mean = np.mean(every, axis=0)
        assert store.target.labels[row] == mean.argmax()
        assert float(store.target.confidence[row]) == pytest.approx(mean.max(), abs=1e-6)
        changed += int(mean.argmax() != every[0].argmax())
    assert changed  # one pass would have labeled otherwise


@pytest.mark.parametrize("factors", [(3.0,), (3.0, 1.0)], ids=["one net", "two nets"])
@pytest.mark.parametrize("views", [("flip",), ("0.75", "flip"), ()], ids=str)
def test_pixels_of_images_of_many_sizes(
    pixels: Segmentation, factors: tuple[float, ...], views: tuple[str, ...], tmp_path: Path
) -> None:
    nets = tuple(Sided(factor).train() for factor in factors)
    labels, found = labeled(Teacher(nets, pixels, CPU, labeling_views.every(views)), tmp_path / "stage")
    for at, (height, width) in enumerate(SIZES):
        image = pixels.unlabeled.images.image(at).permute(2, 0, 1).double() / 255
        every = []
        for factor in factors:
            for scale in (1.0, 0.75) if "0.75" in views else (1.0,):
                small = resized(image, (max(1, int(scale * height)), max(1, int(scale * width)))).numpy()
                outputs = [said(small, factor)]
                if "flip" in views:
                    outputs.append(said(small[..., ::-1], factor)[..., ::-1])
                back = (resized(torch.from_numpy(output.copy()), (height, width)).numpy() for output in outputs)
                every += [softmax(logits) for logits in back]
        mean = np.mean(every, axis=0)
        odds = np.log(mean.max(0) / (np.sort(mean, axis=0)[:-1].sum(0)))
        assert np.abs(found[at] - np.round((odds + 6) * 2048)).max() <= 1
        clear = np.diff(np.sort(mean, axis=0)[-2:], axis=0)[0] > 1e-5
        assert np.array_equal(labels[at][clear], mean.argmax(0)[clear])


def resized(plane: Tensor, size: tuple[int, int]) -> Tensor:
    return functional.interpolate(plane[None], size=size, mode="bilinear", align_corners=False)[0]


def test_one_pass_is_coded_from_its_logits(pixels: Segmentation, tmp_path: Path) -> None:
    net = Sided(40.0).eval()
    labels, found = labeled(Teacher((net,), pixels, CPU), tmp_path / "stage")
    for at in range(len(SIZES)):
        image = pixels.unlabeled.images.image(at).permute(2, 0, 1)[None].float() / 255
        expected, code = codes.confident(net(image))
        assert np.array_equal(labels[at], expected[0].numpy())
        assert np.array_equal(found[at], code[0].numpy())


class Dropping(nn.Module):
    """Adds noise by dropout to what `Pooled` says."""

    def __init__(self) -> None:
        super().__init__()
        self.says, self.drop = Pooled(3.0), nn.Dropout(0.5)

    def forward(self, images: Tensor) -> Tensor:
        return self.drop(self.says(images))  # type: ignore[no-any-return]


def test_passes_with_dropout_are_drawn_by_their_numbers(images: Classification) -> None:
    net = Dropping().train()
    teacher = Teacher((net,), images, CPU, labeling_views.every(["dropout"]))
    before = torch.get_rng_state()
    one, again = labeler.label(teacher, Wish(0.5)), labeler.label(teacher, Wish(0.5))
    assert torch.equal(torch.get_rng_state(), before)  # whoever draws next draws what it would have drawn
    assert torch.equal(one.target.confidence, again.target.confidence)
    assert net.training
    assert net.drop.training
    plain = labeler.label(Teacher((net,), images, CPU), Wish(0.5))
    assert not torch.equal(one.target.confidence, plain.target.confidence)
    # a fifth of the mean is the pass without dropout, and each of the others is a draw of its own
    whole = images.unlabeled.images[:].float() / 255
    net.eval()
    passes = [net(whole).softmax(1)]
    for number in range(1, 5):
        with dropout.active(net, streams.seed_of(0, "labeling dropout", number), CPU):
            passes.append(net(whole).softmax(1))
        assert not net.drop.training
    with pytest.raises(ZeroDivisionError), dropout.active(net, 0, CPU):
        raise ZeroDivisionError
    assert not net.drop.training  # else the next plain pass would drop units too
    assert len({tuple(each.flatten().tolist()) for each in passes}) == 5
    assert torch.allclose(torch.stack(passes).mean(0).max(1).values, one.target.confidence, atol=1e-6)
