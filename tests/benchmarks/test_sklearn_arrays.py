from benchmarks import sklearn_arrays
from benchmarks.sklearn_arrays import Outcome


def test_digits_are_drawn_without_overlap() -> None:
    draw = sklearn_arrays.digits(3)
    assert (len(draw.known), len(draw.pool), len(draw.test)) == (40, 1357, 400)
    assert sorted(draw.labels.tolist()) == sorted(list(range(10)) * 4)
    assert draw.images is not None
    known, pool, test = draw.images
    assert (known.reshape(40, 64) == draw.known).all()
    assert (pool.reshape(1357, 64) == draw.pool).all()
    assert (test.reshape(400, 64) == draw.test).all()
    assert (sklearn_arrays.digits(4).known != draw.known).any()


def test_the_table_has_a_mean_over_seeds_and_dashes_for_what_was_not_measured() -> None:
    scores = [{"logistic_plain": 80.0, "nets": 90.0}, {"logistic_plain": 84.0, "nets": 90.0}]
    outcomes = [Outcome("digits", seed, 40, 1357, 400, each, {}) for seed, each in enumerate(scores)]
    rows = sklearn_arrays.table(outcomes).splitlines()
    assert "| LogisticRegression (LR) | 82.0 ± 2.8 |" in rows
    assert "| DMTClassifier | 90.0 ± 0.0 |" in rows
    assert "| LabelSpreading, neighbors by folds | – |" in rows
    assert rows[-2:] == ["| labels / unlabeled / test | 40 / 1,357 / 400 |", "| n | 2 |"]
