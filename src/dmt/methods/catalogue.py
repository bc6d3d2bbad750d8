"""Every method in a few lines: a shape of plan, a weighting, and its facts.

| method    | plan            | pseudo labels from | weight          |
|-----------|-----------------|--------------------|-----------------|
| baseline  | alone           | –                  | –               |
| oracle    | alone           | –                  | –               |
| online    | alone, twice    | itself, this step  | uniform         |
| cl        | chain, restart  | the net before     | uniform         |
| cbst      | chain, fine-tune| its earlier self   | uniform         |
| dst       | chain, fine-tune| its earlier self   | dynamic         |
| dmt       | chain, restart  | the net before     | dynamic, γ ramp |
| dmt-naive | as dmt          | as dmt             | naive           |
| dmt-flip  | as dmt          | as dmt             | flip            |

Methods that label within the step are one stage each (`methods/online.py`).

With ``shape=pair`` the DMT family trains two lines that label for each other instead of one chain, and Baseline
trains both nets on all labels, so that a pair is compared with a pair.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

from dmt.core.schedule import Descent, Schedule
from dmt.errors import unknown
from dmt.methods import online as online_methods
from dmt.methods.groups import MethodOptions, OnlineOptions
from dmt.methods.method import Method
from dmt.methods.plan import Labels, Line, Plan, Share, Stage
from dmt.methods.recipe import Recipe
from dmt.objectives.itself import Online
from dmt.objectives.stored import Stored
from dmt.objectives.truth import Supervised


def get(name: str) -> Method:
    """A method by its name."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]


def plan(method: str, recipe: Recipe) -> Plan:
    """The stages of a method under a recipe."""
    return get(method).plan(recipe)


def baseline() -> Method:
    """What the others are compared with."""
    return next(method for method in METHODS.values() if method.baseline)


def ceiling() -> Method:
    """What no method can be expected to beat."""
    return next(method for method in METHODS.values() if method.ceiling)


def default() -> Method:
    """What is trained if nobody asks for another."""
    return METHODS["dmt"]


def groups() -> dict[str, type[MethodOptions]]:
    """The options that belong to single methods, by the name of their group."""
    return {method.options.group: method.options for method in METHODS.values() if method.options is not None}


def owners(group: str) -> list[Method]:
    """The methods that read a group of options."""
    return [method for method in METHODS.values() if method.options is not None and method.options.group == group]


def with_baseline(names: Iterable[str]) -> list[str]:
    """Some methods and, if the gain of any is asked for, a Baseline: last, so that a budget goes to them first."""
    wanted = list(dict.fromkeys(names))
    beside = [baseline().name] if any(get(name).compared for name in wanted) else []
    return list(dict.fromkeys([*wanted, *beside]))


def alone(recipe: Recipe, truth: Literal["labeled", "everything"] = "labeled") -> Plan:
    """Labels only: one stage, or one for each net of a pair."""
    lines: tuple[Line, ...] = ("A", "B") if recipe.shape == "pair" and truth == "labeled" else ("A",)
    stages = tuple(_supervised(line, recipe, truth=truth) for line in lines)
    return Plan(stages, tuple(stage.name for stage in stages))


def online(recipe: Recipe, own: OnlineOptions) -> Plan:
    """A Baseline, then one long stage in which the net learns from its own present labels."""
    first = _supervised("A", recipe)
    sizes = {"labeled": recipe.batch_labeled, "unlabeled": recipe.batch_pseudo}
    schedule = _schedule(recipe, own.epochs, recipe.rate_round, **sizes)
    second = Stage("A1", ("A",), 1, Online(own.threshold), schedule, start=first.name)
    return Plan((first, second), (second.name,))


def chain(recipe: Recipe, weighting: str, *, restart: bool, per_class: bool = False) -> Plan:
    """Algorithm 1: each net labels for the next, which starts afresh or goes on from it."""
    recipe = replace(recipe, per_class=True) if per_class else recipe
    stages = [_supervised("A", recipe)]
    for number, fraction in enumerate(recipe.fractions, start=1):
        teacher = stages[-1].name
        start = None if restart else teacher
        stages.append(_round("A", number, recipe, weighting, _labels(recipe, teacher, "A", fraction), start))
    return Plan(tuple(stages), (stages[-1].name,))


def pair(recipe: Recipe, weighting: str) -> Plan:
    """Algorithm 2: two lines, each fine-tuned on what the *previous* net of the other labeled."""
    share_a = None if recipe.share is None else Share(recipe.share, "head")
    share_b = None if recipe.share is None else Share(recipe.share, "tail")
    stages = [_supervised("A", recipe, share=share_a), _supervised("B", recipe, share=share_b)]
    for number, fraction in enumerate(recipe.fractions, start=1):
        a, b = stages[-2].name, stages[-1].name
        # both learn from round i-1, never from the peer's fresh net of this round
        stages.append(_round("A", number, recipe, weighting, _labels(recipe, b, "B", fraction), a))
        stages.append(_round("B", number, recipe, weighting, _labels(recipe, a, "A", fraction), b))
    return Plan(tuple(stages), (stages[-2].name, stages[-1].name))


def _mutual(weighting: str) -> Callable[[Recipe], Plan]:
    def build(recipe: Recipe) -> Plan:
        return pair(recipe, weighting) if recipe.shape == "pair" else chain(recipe, weighting, restart=True)

    return build


def _supervised(
    line: Line, recipe: Recipe, truth: Literal["labeled", "everything"] = "labeled", share: Share | None = None
) -> Stage:
    epochs = recipe.epochs_oracle if truth == "everything" else recipe.epochs
    schedule = _schedule(recipe, epochs, recipe.rate, labeled=recipe.batch)
    return Stage(f"{line}0", (line,), 0, Supervised(recipe.mixup), schedule, truth=truth, share=share)


def _round(line: Line, number: int, recipe: Recipe, weighting: str, labels: Labels, start: str | None) -> Stage:
    # γ belongs to the weighting: under uniform it would only split the identity of equal stages
    dynamic = weighting != "uniform"
    objective = Stored(
        weighting,
        gamma=recipe.gamma if dynamic else 1.0,
        gamma2=recipe.gamma2 if dynamic else None,
        ramp=recipe.gamma_ramp if dynamic else False,
        mixup=recipe.mixup,
        double_statistics=recipe.double_statistics if dynamic else False,
    )
    sizes = {"labeled": recipe.batch_labeled, "unlabeled": recipe.batch_pseudo}
    schedule = _schedule(recipe, recipe.epochs_round, recipe.rate_round, **sizes)
    return Stage(f"{line}{number}", (line,), number, objective, schedule, start=start, labels=labels)


def _schedule(recipe: Recipe, epochs: int, rate: float, labeled: int, unlabeled: int = 0) -> Schedule:
    descent = Descent(rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
    return Schedule(epochs, descent, recipe.rate_ramp, labeled, unlabeled, recipe.ema)


def _labels(recipe: Recipe, by: str, line: Line, fraction: float) -> Labels:
    return Labels(by, line, fraction, recipe.per_class, recipe.labeler, recipe.pseudo_noise)


PAPER = "Feng et al., Pattern Recognition 2022"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "baseline",
            "Baseline",
            "labels only",
            "labels only",
            alone,
            baseline=True,
            tint=0,
        ),
        Method(
            "oracle",
            "Oracle",
            "every training image with its true label: the ceiling",
            "labels only",
            lambda recipe: alone(recipe, "everything"),
            ceiling=True,
            tint=3,
        ),
        Method(
            "online",
            "Online ST",
            "a Baseline goes on, learning from its own labels of each step where it is sure",
            "online",
            online,
            reference=PAPER,
            options=OnlineOptions,
            tint=6,
        ),
        Method(
            "cl",
            "CL",
            "Curriculum Labeling: each net labels for a fresh one, every label counts alike",
            "stored labels",
            lambda recipe: chain(recipe, "uniform", restart=True),
            reference="Cascante-Bonilla et al., AAAI 2021",
            tint=2,
        ),
        Method(
            "cbst",
            "CBST",
            "Class-Balanced Self-Training: one net, fine-tuned on its surest labels of each class",
            "stored labels",
            lambda recipe: chain(recipe, "uniform", restart=False, per_class=True),
            reference="Zou et al., ECCV 2018",
            tint=4,
        ),
        Method(
            "dst",
            "DST",
            "Dynamic Self-Training: one net, fine-tuned round by round on its own labels",
            "stored labels",
            lambda recipe: chain(recipe, "dynamic", restart=False),
            reference=PAPER,
            tint=5,
        ),
        Method(
            "dmt",
            "DMT",
            "Dynamic Mutual Training: a label counts less where teacher and student disagree",
            "stored labels",
            _mutual("dynamic"),
            reference=PAPER,
            tint=1,
        ),
        Method(
            "dmt-naive",
            "DMT-Naive",
            "ablation: weight p^γ everywhere, no cases",
            "stored labels",
            _mutual("naive"),
            reference=PAPER,
            tint=7,
        ),
        Method(
            "dmt-flip",
            "DMT-Flip",
            "ablation: where the student is surer, it learns its own label",
            "stored labels",
            _mutual("flip"),
            reference=PAPER,
            tint=4,
        ),
        Method(
            "pseudo-label",
            "Pseudo-Label",
            "the net learns its own labels of each step where it is sure, more and more",
            "online",
            online_methods.pseudo_label,
            reference="Lee, ICML workshop 2013",
            options=online_methods.PseudoLabelOptions,
        ),
        Method(
            "pi-model",
            "Π-model",
            "two views of an unlabeled image shall get the same probabilities",
            "online",
            online_methods.pi_model,
            reference="Laine & Aila, ICLR 2017",
            serves=("images",),
            options=online_methods.PiModelOptions,
        ),
        Method(
            "uda",
            "UDA",
            "a strong view learns the sharpened probabilities of a weak one where they are sure",
            "online",
            online_methods.uda,
            reference="Xie et al., NeurIPS 2020",
            serves=("images",),
            options=online_methods.UDAOptions,
        ),
        Method(
            "fixmatch",
            "FixMatch",
            "a strong view learns the label of a weak one where it is sure",
            "online",
            online_methods.fixmatch,
            reference="Sohn et al., NeurIPS 2020",
            serves=("images",),
            options=online_methods.FixMatchOptions,
        ),
        Method(
            "mean-teacher",
            "Mean Teacher",
            "the net learns the probabilities that its slow copy gives another view",
            "online",
            online_methods.mean_teacher,
            reference="Tarvainen & Valpola, NeurIPS 2017",
            serves=("images",),
            options=online_methods.MeanTeacherOptions,
        ),
        Method(
            "cps",
            "CPS",
            "two nets learn each other's labels of the step",
            "online",
            online_methods.cps,
            reference="Chen et al., CVPR 2021",
            options=online_methods.CrossPseudoOptions,
        ),
        Method(
            "fixmatch-seg",
            "FixMatch-Seg",
            "other colors and a pasted box learn the labels of the plain view where they are sure",
            "online",
            online_methods.fixmatch_seg,
            reference="Yang et al., CVPR 2023 (as compared with UniMatch)",
            serves=("pixels",),
            options=online_methods.FixMatchSegOptions,
        ),
        Method(
            "mt-seg",
            "MT-Seg",
            "the net learns the logits of its slow copy",
            "online",
            online_methods.mt_seg,
            reference="Ke et al., PixelSSL 2020",
            serves=("pixels",),
            options=online_methods.MeanTeacherSegOptions,
        ),
        Method(
            "cutmix-seg",
            "CutMix-Seg",
            "pasted images learn the pasted probabilities of the slow copy",
            "online",
            online_methods.cutmix_seg,
            reference="French et al., BMVC 2020",
            serves=("pixels",),
            options=online_methods.CutMixSegOptions,
        ),
        Method(
            "cps-cutmix",
            "CPS-CutMix",
            "as CPS, from pasted images",
            "online",
            online_methods.cps_cutmix,
            reference="Chen et al., CVPR 2021",
            serves=("pixels",),
            options=online_methods.CrossPseudoPastedOptions,
        ),
    )
}
