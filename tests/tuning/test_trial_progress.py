"""What a person sees of trials that are trained at once."""

from dmt.runs.progress import Silent
from dmt.tuning.trial_progress import OfTrial, TrialsAtOnce


class Whole(Silent):
    """Knows how much work there is."""

    def __init__(self) -> None:
        self.total = self.done = 0.0
        self.notes: list[str] = []
        self.titles: list[str] = []

    def begin(self, total: float, done: float) -> None:
        self.total, self.done = total, done

    def spared(self, work: float) -> None:
        self.total -= work

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self.titles.append(title)

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_trials_to_come_are_expected_to_be_like_the_first() -> None:
    whole = Whole()
    trials = TrialsAtOnce(whole, 3)
    trials.begin(100.0, 20.0)
    assert (whole.total, whole.done) == (3 * 80.0, 0.0)
    trials.begin(100.0, 0.0)  # it shares nothing
    assert whole.total == 80.0 + 100.0 + 80.0
    trials.begin(100.0, 70.0)
    assert whole.total == 80.0 + 100.0 + 30.0


def test_no_test_score_and_nothing_twice() -> None:
    whole = Whole()
    trials = TrialsAtOnce(whole, 2)
    for name in ("gamma=1", "gamma=3"):
        trial = OfTrial(trials, name)
        trial.stage("DMT A1, seed 1", 10, 0, 1.0)
        trial.note("DMT A1, seed 1: test accuracy 90.00")
        trial.note("note: both nets start alike")
    assert whole.notes == ["note: both nets start alike"]
    assert whole.titles == ["gamma=1: DMT A1, seed 1", "gamma=3: DMT A1, seed 1"]
