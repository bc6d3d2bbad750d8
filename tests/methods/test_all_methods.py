"""What must hold for every method, new ones included: nothing here names one.

Objectives are asked on nets without BatchNorm and with mixup off, so that nothing but a loss can carry what unlabeled
images say; whole runs are shared by the tests that look at them.
"""

import dataclasses
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dmt
from dmt import config as configuration
from dmt import presets
from dmt.core.ema import SlowCopy
from dmt.core.execution import Execution
from dmt.core.mixing import Mix
from dmt.core.pasting import ClassDraw, Paste
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.methods.method import Labeled, Method
from dmt.methods.plan import Plan
from dmt.objectives.base import Cast, ClassTeller, DividedNet, Net, Objective, Progress
from dmt.reporting import report_file
from dmt.results.report import Report
from dmt.runs import stopping
from dmt.runs.progress import Silent
from dmt.training.trainer import SlowTeacher, Student
from dmt.types import IGNORE, Batch, BatchShape, FeatureMap, Sizes, Target
from tests.conftest import TINY, TINY_PIXELS
from tests.fitting.test_run import journal, nets
from tests.objectives import by_hand, cases

CPU = torch.device("cpu")
PLAIN = Execution(CPU)
SHAPE = BatchShape(labeled=4, unlabeled=12, height=6, width=5)
CLASSES, WIDTH = 4, 8
LATE = Progress(step=99, steps=100, seed=5)
"""Ramps are over, and thresholds can be passed."""

PRESETS: dict[Labeled, str] = {"images": "digits", "pixels": "scenes"}


@dataclass(frozen=True)
class Lesson:
    """An objective of a stage of a method."""

    method: Method
    kind: Labeled
    stage: str
    objective: Objective

    def __str__(self) -> str:
        return f"{self.method.name}-{self.kind}-{self.stage}"


def plan(method: Method, kind: Labeled) -> Plan:
    """Few rounds, no mixup, small judges."""
    config = presets.get(PRESETS[kind]).config
    settings = {"mixup": "none", "fractions": "0.5,1"}
    settings |= {f"{name}.mixup": "none" for name, group in catalogue.groups().items() if hasattr(group, "mixup")}
    return method.plan(configuration.override(config, settings | small_judges()).recipe)


def small_judges() -> dict[str, int]:
    known = catalogue.groups().items()
    return {f"{group}.judge_width": 8 for group, options in known if hasattr(options, "judge_width")}


def lessons(method: Method, kind: Labeled) -> list[Lesson]:
    """Of stages that differ in their objective."""
    first = {stage.objective: stage for stage in reversed(plan(method, kind).stages)}
    return [Lesson(method, kind, stage.name, objective) for objective, stage in first.items()]


LESSONS = [
    lesson for method in catalogue.METHODS.values() for kind in method.serves for lesson in lessons(method, kind)
]
TAUGHT = [lesson for lesson in LESSONS if lesson.objective.views]
every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=str)
every_taught = pytest.mark.parametrize("lesson", TAUGHT, ids=str)


class Sure(nn.Module):
    """A net without BatchNorm that is sure of much, though not of everything."""

    def __init__(self, pixels: bool, seed: int) -> None:
        super().__init__()
        head = nn.Conv2d(WIDTH, CLASSES, 1) if pixels else nn.Conv2d(WIDTH, CLASSES, (SHAPE.height, SHAPE.width))
        self.body = nn.Sequential(nn.Conv2d(3, WIDTH, 3, padding=1), nn.Tanh(), head)
        self.encoder, self.head, self.teller = self.body[:2], head, nn.Linear(WIDTH, CLASSES)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in self.parameters():
                count = parameter[0].numel() if parameter.ndim > 1 else 100
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / count**0.5)
        self.pixels = pixels

    def forward(self, images: Tensor) -> Tensor:
        logits = self.decode(self.features(images), (SHAPE.height, SHAPE.width))
        return logits if self.pixels else logits.flatten(1)

    def embed(self, images: Tensor) -> Tensor:
        return self.body[:2](images - 0.5).mean((2, 3))  # type: ignore[no-any-return]

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        return (self.encoder(images - 0.5),)

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        return 20 * self.head(features[0])  # type: ignore[no-any-return]

    def presence(self, images: Tensor) -> Tensor:
        return self.teller(self.embed(images))  # type: ignore[no-any-return]


class Deaf:
    """A net that nobody can teach by unlabeled images: as if their term were multiplied by 0."""

    def __init__(self, net: Net, labeled: Tensor) -> None:
        self._net, self._labeled = net, labeled

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        logits = self._net(images, update_statistics=update_statistics)
        return _still(logits, _among(images, self._labeled))

    def input_gradient(self, images: Tensor, labels: Tensor) -> Tensor:
        return self._net.input_gradient(images, labels)

    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        return self._net.peek(images, update_statistics=update_statistics)

    def embed(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        return self._net.embed(images, update_statistics=update_statistics).detach()

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        assert isinstance(self._net, DividedNet)
        known = _among(images, self._labeled)
        return tuple(_still(each, known) for each in self._net.features(images))

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        assert isinstance(self._net, DividedNet)
        known = _among(features[0], self._net.features(self._labeled)[0])
        return _still(self._net.decode(features, size), known)

    def presence(self, images: Tensor) -> Tensor:
        assert isinstance(self._net, ClassTeller)
        return _still(self._net.presence(images), _among(images, self._labeled))


def _among(rows: Tensor, known: Tensor) -> Tensor:
    return (rows[:, None] == known[None]).flatten(2).all(2).any(1)


def _still(values: Tensor, known: Tensor) -> Tensor:
    """Without gradient, but for known rows."""
    return torch.where(known.view(-1, *[1] * (values.ndim - 1)), values, values.detach())


class Counting(Student):
    """Counts the images that it is shown."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__(net, PLAIN)
        self.learned = self.looked = 0

    def _shared(self, forward: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        self._count(images)
        return super()._shared(forward, images)

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        self._count(images)
        return super().features(images)

    def _count(self, images: Tensor) -> None:
        self.learned += len(images) * torch.is_grad_enabled()
        self.looked += len(images) * (not torch.is_grad_enabled())


@dataclass
class Stage:
    """Everybody that an objective asks for."""

    lesson: Lesson
    nets: list[nn.Module]
    slow: list[SlowCopy]
    cast: Cast


def stage(lesson: Lesson, student: Callable[[nn.Module], Net] = lambda net: Student(net, PLAIN)) -> Stage:
    objective, pixels = lesson.objective, lesson.kind == "pixels"
    trained: list[nn.Module] = [Sure(pixels, seed=3 + line) for line in range(objective.lines)]
    slow = [SlowCopy(net, 0.9) for net in trained] if objective.slow else []
    for each, other in zip(slow, (Sure(pixels, seed=8 + line) for line in range(objective.lines)), strict=False):
        with torch.no_grad():
            for mine, theirs in zip(each.net.parameters(), other.parameters(), strict=True):
                mine.lerp_(theirs, 0.1)
    sizes = Sizes(SHAPE.labeled, SHAPE.unlabeled, SHAPE.images, pixels)
    cast = Cast(
        nets=tuple(map(student, trained)),
        slow=tuple(SlowTeacher(each, PLAIN) for each in slow),
        parts=parts(objective),
        memory=objective.memory(sizes, CLASSES),
    )
    if cast.memory:  # as a first step left it: what remembers earlier passes has nothing to teach before
        first = objective.loss(dataclasses.replace(cast, nets=_students(trained)), batch(lesson), draw(lesson))
        cast = dataclasses.replace(cast, memory={**cast.memory, **first.memory})
    return Stage(lesson, trained, slow, cast)


def _students(nets: Sequence[nn.Module]) -> tuple[Net, ...]:
    return tuple(Student(net, PLAIN) for net in nets)


def parts(objective: Objective) -> dict[str, nn.Module]:
    """Fresh ones, the same every time."""
    with torch.random.fork_rng():
        torch.manual_seed(4)
        made = dict(objective.parts(WIDTH if objective.embeds else 3, CLASSES))
        made |= objective.parts_on((FeatureMap(WIDTH, 1),), CLASSES)
    return {name: part.module for name, part in made.items()}


def batch(lesson: Lesson, unlabeled: int = 0) -> Batch:
    """The same labeled images and stored labels, whatever number the unlabeled images have."""
    generator = torch.Generator().manual_seed(7)
    size = (SHAPE.height, SHAPE.width)
    sites = size if lesson.kind == "pixels" else ()

    def labels(count: int) -> Tensor:
        return torch.randint(0, CLASSES, (count, *sites), generator=generator)

    images, truth = torch.rand(SHAPE.labeled, 3, *size, generator=generator), labels(SHAPE.labeled)
    pseudo = Target(labels(SHAPE.unlabeled), 0.5 + 0.5 * torch.rand(SHAPE.unlabeled, *sites, generator=generator))
    valid = torch.rand(SHAPE.unlabeled, *sites, generator=generator) < 0.9
    if sites:
        truth[:, -1:] = IGNORE
    other = torch.Generator().manual_seed(100 + unlabeled)
    shown = torch.rand(SHAPE.unlabeled, 3, *size, generator=other)
    views = {
        view: (shown + 0.2 * torch.rand(shown.shape, generator=other)).clamp(0, 1) for view in lesson.objective.views
    }
    stored = lesson.objective.stored
    return Batch(
        images=images,
        truth=truth,
        views=views,
        pseudo=pseudo if stored else None,
        positions=torch.arange(SHAPE.unlabeled),
        valid=valid if sites and not stored else None,
    )


def draw(lesson: Lesson) -> Any:
    shape = SHAPE if lesson.objective.views else SHAPE._replace(unlabeled=0)
    return lesson.objective.draw(LATE, shape, CPU)


def gradients(scene: Stage, given: Batch) -> list[Tensor]:
    """Of each net, flat."""
    scene.lesson.objective.loss(scene.cast, given, draw(scene.lesson)).total.backward()  # type: ignore[no-untyped-call]
    return [torch.cat([_gradient(each) for each in net.parameters()]) for net in scene.nets]


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter).flatten() if parameter.grad is None else parameter.grad.flatten()


def turned(first: Tensor, second: Tensor) -> bool:
    """Whether two gradients differ in direction: another number of sure sites may scale them, and teaches nothing."""
    rest = second - first * (first @ second) / (first @ first)
    return bool(rest.norm() > 1e-3 * second.norm())


def taught(lesson: Lesson, student: Callable[[nn.Module], Net] = lambda net: Student(net, PLAIN)) -> list[bool]:
    """Which of its nets unlabeled images move: their gradient turns when only those change."""
    first, second = (gradients(stage(lesson, student), batch(lesson, number)) for number in (0, 1))
    return [turned(*each) for each in zip(first, second, strict=True)]


@every_taught
def test_unlabeled_images_move_every_net(lesson: Lesson) -> None:
    assert all(taught(lesson))


@every_taught
def test_that_test_would_notice_a_loss_multiplied_by_0(lesson: Lesson) -> None:
    labeled = batch(lesson).images
    assert not any(taught(lesson, lambda net: Deaf(Student(net, PLAIN), labeled)))


@pytest.mark.parametrize("lesson", [each for each in TAUGHT if hasattr(each.objective, "weight")], ids=str)
def test_without_weight_no_net_is_moved(lesson: Lesson) -> None:
    objective = dataclasses.replace(lesson.objective, **by_hand.weightless(lesson.objective))  # type: ignore[type-var]
    assert not any(taught(dataclasses.replace(lesson, objective=objective)))


@pytest.mark.parametrize("method", catalogue.METHODS.values(), ids=lambda method: method.name)
def test_who_learns_from_unlabeled_images_takes_some_in_its_last_stage(method: Method) -> None:
    for kind in method.serves:
        made = plan(method, kind)
        assert all(bool(made[name].objective.views) == method.semi_supervised for name in made.results)


@every_taught
def test_what_teaches_gets_no_gradient(lesson: Lesson) -> None:
    """Peers and other views are held still by hand, in tests/objectives/by_hand.py."""
    scene, given = stage(lesson), batch(lesson)
    if given.pseudo is not None:
        given.pseudo.confidence.requires_grad_()
    for view in given.views.values():
        assert not view.requires_grad
    gradients(scene, given)
    for slow in scene.slow:
        assert all(not each.requires_grad and each.grad is None for each in slow.net.parameters())
        assert not slow.net.training
    assert given.pseudo is None or given.pseudo.confidence.grad is None
    assert not any(tensor.requires_grad for tensor in scene.cast.memory.values())


@every_lesson
def test_the_loss_was_computed_by_hand(lesson: Lesson) -> None:
    """A new objective adds its case to tests/objectives/by_hand.py."""
    name = type(lesson.objective).__name__
    assert name in cases.CASES, f"{name} has no hand-computed loss"
    assert lesson.kind in {"pixels" if case.pixels else "images" for case in cases.CASES[name]}


@every_lesson
def test_the_loss_is_finite_when_nothing_is_labeled(lesson: Lesson) -> None:
    given = batch(lesson)
    given = dataclasses.replace(given, truth=torch.full_like(given.truth, IGNORE))
    assert all(bool(torch.isfinite(each).all()) for each in gradients(stage(lesson), given))


@every_lesson
def test_a_step_costs_what_it_says(lesson: Lesson) -> None:
    scene = stage(lesson, Counting)
    slow = tuple(Counting(each.net) for each in scene.slow)
    teachers = tuple(_Looking(each) for each in slow)
    cast = dataclasses.replace(scene.cast, slow=teachers)
    lesson.objective.loss(cast, batch(lesson), draw(lesson))
    counted = [each for each in (*scene.cast.nets, *slow) if isinstance(each, Counting)]
    shape = SHAPE if lesson.objective.views else SHAPE._replace(unlabeled=0)
    assert lesson.objective.cost(shape) == (sum(each.learned for each in counted), sum(each.looked for each in counted))


class _Looking:
    def __init__(self, net: Counting) -> None:
        self._net = net

    def __call__(self, images: Tensor) -> Tensor:
        return self._net.peek(images)

    @torch.no_grad()
    def presence(self, images: Tensor) -> Tensor:
        return self._net.presence(images)


@every_taught
def test_the_order_of_unlabeled_images_does_not_matter(lesson: Lesson) -> None:
    """Where something is pasted, what is pasted into whom is shuffled alike; where something is mixed, it matters."""
    given, plain = batch(lesson), draw(lesson)
    order = torch.randperm(SHAPE.unlabeled, generator=torch.Generator().manual_seed(1))
    losses = [
        lesson.objective.loss(stage(lesson).cast, each, drawn)
        for each, drawn in ((given, plain), (shuffled(given, order), replanned(plain, order)))
    ]
    torch.testing.assert_close(losses[0].total, losses[1].total)
    for name, number in losses[0].logged.items():
        torch.testing.assert_close(number, losses[1].logged[name])


def shuffled(given: Batch, order: Tensor) -> Batch:
    assert given.positions is not None
    pseudo = given.pseudo and Target(given.pseudo.labels[order], given.pseudo.confidence[order])
    return dataclasses.replace(
        given,
        views={name: view[order] for name, view in given.views.items()},
        pseudo=pseudo,
        positions=given.positions[order],
        valid=None if given.valid is None else given.valid[order],
    )


def replanned(tree: Any, order: Tensor) -> Any:
    """What was drawn, for samples in another order."""
    if isinstance(tree, Mix):
        pytest.skip("its unlabeled images are mixed, even without the option mixup")
    if isinstance(tree, Paste | ClassDraw):
        what, partners = tree
        return type(tree)(what[order], order.argsort()[partners[order]])
    if isinstance(tree, tuple):
        branches = [replanned(branch, order) for branch in tree]
        return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)
    return tree[order] if by_sample(tree) else tree


def by_sample(tree: Any) -> bool:
    """Whether it is a tensor with a row for every unlabeled image."""
    return isinstance(tree, Tensor) and tree.shape[:1] == (SHAPE.unlabeled,)


@every_taught
def test_means_are_separate_unless_a_method_has_one_for_all(lesson: Lesson) -> None:
    """Showing every unlabeled image twice then changes nothing: each term is a mean over its own samples."""
    given, plain = batch(lesson), draw(lesson)
    twice = torch.arange(SHAPE.unlabeled).repeat(2)
    once, again = (
        lesson.objective.loss(stage(lesson).cast, *each).total
        for each in ((given, plain), (shuffled(given, twice), repeated(plain)))
    )
    separate = cases.CASES[type(lesson.objective).__name__][0].separate
    assert torch.allclose(once, again, rtol=1e-5) == separate


def repeated(tree: Any) -> Any:
    """What was drawn, for every sample twice."""
    if isinstance(tree, tuple):
        branches = [repeated(branch) for branch in tree]
        return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)
    return torch.cat([tree, tree]) if by_sample(tree) else tree


WRONG = {
    "epochs": 0, "labeled": 0, "unlabeled": 0, "rate": 0.0, "rate_ramp": "sine", "optimizer": "sgdd", "decay": "none",
    "weight_decay": -1.0, "encoder": 0.0, "ema": 1.0, "threshold": 1.5, "weight": -1.0, "ramp": 2.0, "temperature": 0.0,
    "memory": 1.0, "own": -1.0, "agree": -1.0, "differ": -1.0, "step": -1.0, "noise": 1.0, "start": 2.0,
    "neighbors": 0, "reach": 1.0,
}  # fmt: skip
"""Of options that several methods have, values that no training could mean."""


@pytest.mark.parametrize(("group", "options"), catalogue.groups().items(), ids=catalogue.groups())
def test_values_without_meaning_are_refused_in_one_line(group: str, options: type[Any]) -> None:
    base = presets.get("scenes").config
    for field in dataclasses.fields(options):
        if field.name in WRONG:
            with pytest.raises(ConfigError, match=rf"{group}\.{field.name}") as caught:
                configuration.override(base, {f"{group}.{field.name}": WRONG[field.name]})
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lesson", [each for each in TAUGHT if each.objective.slow], ids=str)
def test_a_method_that_asks_a_slow_copy_is_refused_without_one(lesson: Lesson) -> None:
    options = lesson.method.options
    assert options is not None
    changes = {"ema": "none", "labeler": "raw", f"{options.group}.ema": "none"}
    config = configuration.override(presets.get(PRESETS[lesson.kind]).config, changes)
    with pytest.raises(ConfigError, match=rf"--set {options.group}\.ema"):
        lesson.method.plan(config.recipe)


# ---- whole runs -----------------------------------------------------------------------------------------------------

OPTIMIZERS = ("sgd", "nesterov", "adam", "adamw")


def settings(kind: Labeled) -> dict[str, object]:
    """A few steps for every stage; online methods take turns in what they descend by."""
    few: dict[str, object] = (
        TINY | {"epochs": 2, "epochs_round": 1, "fractions": "1", "batch": 64, "batch_pseudo": 256}
        if kind == "images"
        else TINY_PIXELS | {"epochs": 2, "epochs_round": 1, "fractions": "1"}
    )
    for number, (group, options) in enumerate(sorted(catalogue.groups().items())):
        known = {field.name for field in dataclasses.fields(options)}
        few |= {f"{group}.epochs": 1} if "epochs" in known else {}
        few |= {f"{group}.optimizer": OPTIMIZERS[number % len(OPTIMIZERS)]} if "optimizer" in known else {}
    return few | small_judges()


class StopEach(Silent):
    """Stops every stage once, half way, as a signal would."""

    def __init__(self) -> None:
        self.stopped: set[str] = set()
        self._title, self._steps = "", 0

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._title, self._steps = title, steps

    def step(self, done: int) -> None:
        if done == self._steps // 2 and self._title not in self.stopped:
            self.stopped.add(self._title)
            signal.raise_signal(signal.SIGINT)


@dataclass(frozen=True)
class Runs:
    """All methods that serve a kind of data, trained at one go and stopped in every stage."""

    kind: Labeled
    methods: Sequence[str]
    unbroken: Path
    resumed: Path
    stopped: frozenset[str]


@pytest.fixture(scope="module", params=PRESETS)
def runs(request: pytest.FixtureRequest, few_scenes: SegmentSet, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    kind: Labeled = request.param
    methods = [method.name for method in catalogue.METHODS.values() if kind in method.serves]
    folder, watcher = tmp_path_factory.mktemp(kind), StopEach()

    def fit(name: str, watching: Silent) -> None:
        dmt.fit(PRESETS[kind], out=folder / name, method=methods, settings=settings(kind), watcher=watching)

    fit("unbroken", Silent())
    while True:
        try:
            fit("resumed", watcher)
        except stopping.Stopped:
            continue
        break
    return Runs(kind, methods, folder / "unbroken", folder / "resumed", frozenset(watcher.stopped))


@pytest.mark.slow
def test_every_method_runs_and_is_told_of(runs: Runs) -> None:
    report = Report.read([runs.unbroken])
    assert {job.method for job in report.jobs} == set(runs.methods)
    assert all(job.finished for job in report.jobs)
    text, page = str(report), report_file.page([runs.unbroken])
    assert "nan" not in text
    for job in report.jobs:
        assert catalogue.get(job.method).title in text
        assert catalogue.get(job.method).title in page
        for stage in job.stages:
            score = stage.score("test", "raw")
            assert score is not None
            assert 0 <= score <= 100


@pytest.mark.slow
def test_equal_stages_are_trained_once(runs: Runs) -> None:
    """A stage is what the plan says of it and of its parents; plans call different ones by one name."""
    report = Report.read([runs.unbroken])
    recipe = configuration.override(presets.get(PRESETS[runs.kind]).config, settings(runs.kind)).recipe
    distinct = set()
    for job in report.jobs:
        made = catalogue.plan(job.method, recipe)

        def ancestry(name: str, made: Plan = made) -> tuple[Any, ...]:
            return made[name], *(ancestry(parent, made) for parent in made[name].parents)

        distinct |= {ancestry(stage.name) for stage in made.stages}
    assert len(list((runs.unbroken / "stages").iterdir())) == len(distinct)
    assert {stage.place for job in report.jobs for stage in job.stages} == {
        path.name for path in (runs.unbroken / "stages").iterdir()
    }
    assert len({job.stages[-1].place for job in report.jobs}) == len(runs.methods)


@pytest.mark.slow
def test_resumed_equals_unbroken(runs: Runs) -> None:
    """Bit for bit, though every stage of every method was stopped half way: nets, labels and journals."""
    stages = {path.name for path in (runs.unbroken / "stages").iterdir()}
    assert len(runs.stopped) == len(stages)
    assert nets(runs.resumed) == nets(runs.unbroken)
    assert journal(runs.resumed) == journal(runs.unbroken)
    labels = [
        {str(path.relative_to(run)): path.read_bytes() for path in run.glob("stages/*/pseudo/*")}
        for run in (runs.resumed, runs.unbroken)
    ]
    assert labels[0] == labels[1]
