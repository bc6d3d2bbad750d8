import pytest

from dmt.core.schedule import Descent, Schedule
from dmt.methods.plan import Labels, Plan, Share, Stage
from dmt.objectives.itself import Online
from dmt.objectives.stored import Stored
from dmt.objectives.truth import Supervised
from dmt.types import Sizes

SCHEDULE = Schedule(epochs=3, descent=Descent(0.1), rate_ramp="cosine", labeled=8, unlabeled=10)


def stage(name: str, **parents: object) -> Stage:
    objective = Stored("uniform", gamma=1.0) if "labels" in parents else Supervised()
    return Stage(name, (name[0],), int(name[1]), objective, SCHEDULE, **parents)  # type: ignore[arg-type]


@pytest.mark.parametrize(("count", "kept"), [(100, 80), (211, 168), (5, 4)])
def test_shares_are_the_published_halves(count: int, kept: int) -> None:
    """As published: 100 gives 80/80 with 60 in common, 211 gives 168/168 with 125."""
    positions = range(count)
    head, tail = positions[Share(0.8, "head").slice(count)], positions[Share(0.8, "tail").slice(count)]
    assert len(head) == len(tail) == kept
    assert head[0] == 0
    assert tail[-1] == count - 1
    assert len(set(head) & set(tail)) == 2 * kept - count


def test_steps_fill_the_last_batch() -> None:
    sizes = Sizes(labeled=17, unlabeled=101, everything=120)
    assert stage("A0").steps(sizes) == 3 * 3
    assert stage("A1", labels=Labels("A0", "A", 0.2)).steps(sizes) == 3 * 2
    assert stage("A0", truth="everything").steps(sizes) == 3 * 15
    assert stage("A0", share=Share(0.8, "head")).steps(sizes) == 3 * 2


def test_pixels_are_learned_from_every_unlabeled_image() -> None:
    sizes = Sizes(labeled=17, unlabeled=101, everything=120, pixels=True)
    assert stage("A1", labels=Labels("A0", "A", 0.2)).steps(sizes) == 3 * 11


def test_online_self_training_passes_over_the_unlabeled_images() -> None:
    online = Stage("A1", ("A",), 1, Online(), SCHEDULE, start="A0")
    assert online.steps(Sizes(labeled=17, unlabeled=101, everything=120)) == 3 * 11
    assert online.parents == ("A0",)


def test_a_plan_knows_its_order() -> None:
    first, second = stage("A0"), stage("A1", labels=Labels("A0", "A", 1.0), start="A0")
    assert Plan((first, second), ("A1",))["A1"] is second
    assert second.parents == ("A0",)
    with pytest.raises(ValueError, match="before its parents"):
        Plan((second, first), ("A1",))
    with pytest.raises(ValueError, match="duplicate"):
        Plan((first, first), ("A0",))


def test_labeling_takes_a_pass_for_each_copy_and_view_by_its_pixels() -> None:
    assert (Labels("A0", "A", 0.5).copies, Labels("A0", "A", 0.5).passes) == (("raw",), 1)
    both = Labels("A0", "A", 0.5, copy="mean", views=("flip", "0.5"))
    assert both.copies == ("raw", "ema")
    assert both.passes == 2 * (1 + 1 + 0.25 + 0.25)
