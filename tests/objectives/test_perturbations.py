"""CCT's perturbations one by one: what they change, and that each alone lets unlabeled images teach the encoder."""

import copy
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from dmt import config as configuration
from dmt import presets
from dmt.core.execution import Execution
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.models import build
from dmt.objectives import auxiliary, perturbations
from dmt.objectives.auxiliary import CCT, SubPixel
from dmt.objectives.base import Cast, Progress
from dmt.objectives.perturbations import FEWER, KINDS, Clean, Seeds
from dmt.training import beside
from dmt.training.trainer import Student
from dmt.types import Batch, BatchShape
from tests.models.test_encoder_decoder import spec

CPU = torch.device("cpu")
SHAPE = BatchShape(2, 3, 40, 36)
SEEDS = Seeds(torch.tensor([3, 21]), torch.tensor([4, 28]), torch.tensor([5, 35]), torch.tensor(6), torch.tensor(7))
CLASSES = 4


def features(seed: int = 1) -> Tensor:
    return torch.randn(2, 6, 10, 9, generator=torch.Generator().manual_seed(seed))


def objects() -> Tensor:
    found = torch.zeros(2, 10, 9, dtype=torch.bool)
    found[0, 2:8, 1:7] = True
    found[1, :5, :5] = found[1, 7:, 6:] = True
    return found


def decoder() -> SubPixel:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return SubPixel(6, CLASSES, 2)


def perturbed(kind: str, clean: Tensor, module: nn.Module | None = None) -> Tensor:
    still = partial(auxiliary._still, module or decoder(), (33, 33))
    return perturbations.perturb(kind, Clean(clean, objects(), None), SEEDS, still)


def moved(unlabeled: int, objective: CCT) -> dict[str, Tensor]:
    """The gradient of a net and of auxiliary decoders when they see these unlabeled images, in eval mode."""
    net = build.build(spec("fcn-4"), seed=1).eval()
    given = torch.Generator().manual_seed(3)
    images = torch.rand(SHAPE.labeled, 3, SHAPE.height, SHAPE.width, generator=given)
    truth = torch.randint(0, CLASSES, (SHAPE.labeled, SHAPE.height, SHAPE.width), generator=given)
    other = torch.rand(SHAPE.unlabeled, *images.shape[1:], generator=torch.Generator().manual_seed(10 + unlabeled))
    part = beside.parts(objective, net, spec("fcn-4"), seed=2)["decoders"].module
    drawn = objective.draw(Progress(90, 100, 1), SHAPE, CPU)
    with torch.no_grad():  # some pixels are to be background, and others objects
        common = int(net(other).argmax(1).flatten().mode().values)
    objective = replace(objective, background=common)
    loss = objective.loss(
        Cast((Student(net, Execution(CPU)),), parts={"decoders": part}), Batch(images, truth, {"weak": other}), drawn
    )
    loss.total.backward()  # type: ignore[no-untyped-call]
    named = [*net.named_parameters("net"), *part.named_parameters("decoders")]
    return {name: each.grad for name, each in named if each.grad is not None}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_alone_lets_unlabeled_images_teach_encoder_and_decoders(kind: str) -> None:
    first, second = (moved(number, CCT(each=1, kinds=(kind,))) for number in (0, 1))
    differ = {name for name in first if not torch.allclose(first[name], second[name], atol=1e-7)}
    assert {"net.body.stem.0.weight", "decoders.0.body.0.weight"} <= differ
    assert "net.body.head.weight" not in differ, "the main decoder learns from labels alone"


@pytest.mark.parametrize("kind", KINDS)
def test_without_weight_none_of_them_does(kind: str) -> None:
    first, second = (moved(number, CCT(weight=0.0, each=1, kinds=(kind,))) for number in (0, 1))
    for name, gradient in first.items():
        torch.testing.assert_close(gradient, second[name])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_changes_features_and_passes_their_gradient_on(kind: str) -> None:
    clean, module = features().requires_grad_(), decoder()
    found = perturbed(kind, clean, module)
    assert not torch.equal(found, clean)
    assert torch.equal(found, perturbed(kind, clean, module)), "nothing is random but by its seeds"
    (gradient,) = torch.autograd.grad(found.sum(), clean)
    slope = torch.ones_like(clean) if kind == "adversarial" else found.detach() / clean.detach()
    torch.testing.assert_close(gradient, slope)
    assert all(each.grad is None for each in module.parameters())


def test_context_and_objects_are_masked_by_turns() -> None:
    """Without its context an object is left, and the other way round."""
    clean = features()
    left, rest = perturbed("context", clean), perturbed("objects", clean)
    assert torch.equal(left + rest, clean)
    assert torch.equal((left != 0).any(1), objects())


def test_parts_of_objects_are_cut_out_and_nothing_else() -> None:
    clean = features()
    gone = (perturbed("cutout", clean) == 0).all(1)
    assert gone.sum((1, 2)).tolist() == [2 * 2, 2 * 2 + 1 * 1]  # of boxes of 6 × 6; of 5 × 5 and 3 × 3
    assert not (gone & ~objects()).any()


def test_objects_are_what_is_not_background() -> None:
    labels = torch.tensor([[[2, 2, 0, 1], [2, 2, 0, 1], [2, 2, 2, 2], [2, 2, 2, 2]]])
    assert perturbations.objects_in(labels, 2, (2, 2)).tolist() == [[[False, True], [False, False]]]
    assert perturbations.objects_in(labels, 0, (2, 2)).tolist() == [[[True, False], [True, True]]]


def probe(clean: Tensor, direction: Tensor, module: nn.Module, reach: float, side: int = 33) -> Tensor:
    """The gradient of KL(p(h) ‖ p(h + ξd)) with respect to ξd, as published."""
    with torch.no_grad():
        target = module(clean, (side, side)).softmax(1)
    step = (reach * direction / direction.norm()).expand_as(clean).clone().requires_grad_()
    told = module(clean + step, (side, side)).log_softmax(1)
    found: Tensor = torch.autograd.grad((target * (target.log() - told)).sum(), step)[0]
    return found


def alike(first: Tensor, second: Tensor) -> Tensor:
    """The cosine between them, image by image."""
    units = (nn.functional.normalize(each.double().flatten(1), eps=1e-300) for each in (first, second))
    return torch.stack(list(units)).prod(0).sum(1)


def test_adversarial_noise_is_where_a_small_probe_leads() -> None:
    clean, module = features(), decoder()
    direction = perturbations._map(clean, SEEDS.adversarial)
    found = perturbed("adversarial", clean, module) - clean
    torch.testing.assert_close(found.flatten(1).norm(dim=1), torch.full((2,), 2.0))
    true = probe(clean.double(), direction.double(), module.double(), 1e-6)
    assert (alike(found, true) > 0.999).all()


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_of_the_published_probe_rounding_would_leave_nothing(kind: torch.dtype) -> None:
    """Which is why there is none; another one a hundred thousand times as long leads where ours does."""
    module = SubPixel(64, CLASSES, 1)
    clean = torch.randn(1, 64, 41, 41, generator=torch.Generator().manual_seed(1)).relu()
    direction = perturbations._map(clean, SEEDS.adversarial)
    found = perturbations.worst(clean, direction, lambda maps: module(maps, (81, 81)))
    double = [each.double() for each in (clean, direction)]
    assert alike(probe(clean, direction, module, 0.1, 81), found) > 0.999
    lost = probe(clean.to(kind), direction.to(kind), copy.deepcopy(module).to(kind), 1e-6, 81)
    assert alike(lost, found).abs() < 0.1
    assert alike(probe(double[0], double[1], module.double(), 1e-6, 81), found) > 0.999


def test_it_changes_probabilities_more_than_other_noise_of_its_length() -> None:
    clean, module = features(), decoder()

    def change(by: Tensor) -> float:
        with torch.no_grad():
            target, found = (module(each, (33, 33)) for each in (clean, clean + by))
            return float((target.softmax(1) * (target.log_softmax(1) - found.log_softmax(1))).sum())

    found = perturbed("adversarial", clean, module) - clean
    others = torch.randn(20, *clean.shape, generator=torch.Generator().manual_seed(1))
    others *= 2.0 / others.flatten(2).norm(dim=2)[:, :, None, None, None]
    assert change(found) > 2 * max(map(change, others))


def test_pixels_outside_of_images_have_no_say_in_it() -> None:
    clean, module = features(), decoder()
    valid = torch.ones(2, 33, 33, dtype=torch.bool)
    valid[:, 20:] = False  # five of ten rows of features
    still = partial(auxiliary._still, module, (33, 33))
    found = perturbations.worst(clean, perturbations._map(clean, SEEDS.noise), still, valid)
    assert found[:, :, :5].abs().amax() > 0
    assert found[:, :, 5:].abs().amax() == 0


def test_some_kinds_have_fewer_decoders() -> None:
    found = [kind for kind, _ in CCT().decoders]
    assert [found.count(kind) for kind in KINDS] == [2 if kind in FEWER else 6 for kind in KINDS]
    assert len(CCT(each=1).decoders) == len(KINDS)


def test_kinds_are_chosen_by_name_in_any_order() -> None:
    base = presets.get("scenes").config
    plans = [
        catalogue.plan("cct", configuration.override(base, {"cct.perturbations": names}).recipe)
        for names in ("noise,cutout", "cutout,noise")
    ]
    assert plans[0] == plans[1]
    objective = plans[0].stages[-1].objective
    assert isinstance(objective, CCT)
    assert objective.kinds == ("noise", "cutout")


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("perturbations", "noise,cut-out", "unknown cct.perturbations 'cut-out'; did you mean 'cutout'"),
        ("perturbations", (), "cct.perturbations must be some of channels"),
        ("background", -1, "cct.background must be at least 0"),
    ],
)
def test_what_no_training_could_mean_is_refused(key: str, value: object, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        configuration.override(presets.get("scenes").config, {f"cct.{key}": value})
