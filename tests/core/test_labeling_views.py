import pytest

from dmt.core import labeling_views
from dmt.core.labeling_views import LabelingView
from dmt.errors import ConfigError


def test_the_plain_image_comes_first_and_flip_mirrors_every_scale() -> None:
    assert labeling_views.every(()) == (LabelingView(1.0, False),)
    assert labeling_views.every(["1.25", "flip", "0.5"]) == (
        LabelingView(1.0, False),
        LabelingView(1.0, True),
        LabelingView(0.5, False),
        LabelingView(0.5, True),
        LabelingView(1.25, False),
        LabelingView(1.25, True),
    )


def test_dropout_adds_passes_over_the_plain_image() -> None:
    flips = labeling_views.every(["flip", "0.5"])
    assert labeling_views.every(["dropout", "0.5", "flip"]) == (
        *flips,
        *(LabelingView(dropout_pass=n) for n in (1, 2, 3, 4)),
    )
    assert labeling_views.sorted_names(["dropout", "0.5", "flip"]) == ("flip", "0.5", "dropout")


def test_equal_views_have_equal_names() -> None:
    for names in (["flip", "0.75", "1.25"], ["1.25", "flip", "0.750"], ["0.75", "1.25", "flip", "flip"]):
        assert labeling_views.sorted_names(names) == ("flip", "0.75", "1.25")


@pytest.mark.parametrize("name", ["flop", "", "1", "1.0", "0", "-2", "nan", "inf", "100"])
def test_what_is_no_view_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"flip, dropout and, for pixels, scales such as 0\.75,1\.25, not '"):
        labeling_views.every(["flip", name])
