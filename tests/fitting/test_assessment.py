from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dmt.core import weighting
from dmt.data.images.datasets import DATASETS
from dmt.data.images.options import DataOptions
from dmt.data.sets import PseudoLabels
from dmt.fitting import assessment
from dmt.objectives.stored import Stored
from dmt.tasks import classification
from dmt.types import Target
from tests.pseudo.test_labeler import Brightness

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", ["dynamic", "flip"])
def test_the_audit_hears_what_the_student_learns(name: str, generator: torch.Generator) -> None:
    options = DataOptions("digits", labels=100, validation=200, augment="shift")
    task, audit = classification.split_up(options, DATASETS["digits"].read(Path("nowhere"), print), seed=1)
    count = len(task.unlabeled)
    labels, confidence = torch.randint(0, 10, (count,), generator=generator), torch.rand(count, generator=generator)
    pseudo = PseudoLabels(labels, confidence, torch.ones(count, dtype=torch.bool))
    net = Brightness().eval()
    trainer: Any = SimpleNamespace(nets={"A": net}, device=CPU, objective=Stored(name, 2.0, 3.0))
    found = assessment.pseudo_labels(trainer, task, audit, pseudo, {})

    logits = net(task.unlabeled.images[:] / 255)
    learned, weights = weighting.WEIGHTINGS[name](logits, Target(labels, confidence), 2.0, 3.0)
    assert bool((learned != labels).any()) == (name == "flip")
    truth = dict(zip(audit.everything.ids, audit.everything.labels.tolist(), strict=True))
    wrong = learned != torch.tensor([truth[each] for each in task.unlabeled.ids])
    assert found["error_kept_weighted"] == pytest.approx(100 * float(weights[wrong].sum() / weights.sum()), rel=1e-5)
    assert found["weight_wrong"] == pytest.approx(float(weights[wrong].mean()), rel=1e-5)
