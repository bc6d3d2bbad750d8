"""Numbers of others beside ours: of methods and presets that exist, and never under changed options."""

from dmt import presets
from dmt.methods import catalogue
from dmt.results import published


def test_every_row_is_of_a_method_and_a_preset() -> None:
    for method, rows in published._BY_OTHERS.items():
        assert method in catalogue.METHODS
        for data, found in rows.items():
            assert data in presets.PRESETS
            assert found.mark in published.LEGEND
            assert 0 < found.score < 100
            assert published.of(data, method) == found or method in presets.get(data).paper


def test_the_papers_rows_come_first_and_have_no_mark() -> None:
    found = published.of("cifar10-4k", "dmt")
    assert found == published.Published(94.21)
    assert str(found) == "94.21"
    assert published.legend({""}) == []


def test_changed_options_and_other_data_have_none() -> None:
    assert published.of("cifar10-4k", "mixmatch") is not None
    assert published.of("cifar10-4k", "mixmatch", ["net=cnn13"]) is None
    assert published.of("cifar10-4k-fast", "mixmatch") is None
    assert published.of("photos", "mixmatch") is None
    assert published.of("not a preset", "dmt") is None
