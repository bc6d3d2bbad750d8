"""The catalogue of all methods. Those that learn from stored labels differ in their plan and in the label weight:

| method    | plan            | pseudo labels from | weight          |
|-----------|-----------------|--------------------|-----------------|
| baseline  | alone           | –                  | –               |
| oracle    | alone           | –                  | –               |
| online    | alone, continued| itself, this step  | uniform         |
| cl        | chain, restart  | the net before     | uniform         |
| cbst      | chain, fine-tune| its earlier self   | uniform         |
| graph-labels | chain, restart | its features    | uniform         |
| dst       | chain, fine-tune| its earlier self   | dynamic         |
| dmt       | chain, restart  | the net before     | dynamic, γ ramp |
| dmt-naive | as dmt          | as dmt             | naive           |
| dmt-flip  | as dmt          | as dmt             | flip            |

The other online methods, which label within the step, have one stage each (`methods/online.py`, `adaptive.py`,
`guessing.py`, `two_nets.py`, `online_pixels.py`).

With ``shape=pair``, DMT and its ablations train two lines that label for each other instead of one chain, and the
Baseline trains both nets on all labels, so that a pair is compared with a pair.
"""

from collections.abc import Iterable

from dmt.errors import unknown
from dmt.methods import adaptive, guessing, online, shapes, two_nets
from dmt.methods.catalogue_pixels import PIXEL_METHODS
from dmt.methods.groups import CBSTOptions, GraphOptions, MethodOptions, OnlineOptions
from dmt.methods.method import Labeled, Method
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe


def get(name: str) -> Method:
    """Return a method by its name."""
    if name not in METHODS:
        raise unknown("method", name, METHODS, "dmt list methods")
    return METHODS[name]


def plan(method: str, recipe: Recipe) -> Plan:
    """Return the plan of a method under a recipe."""
    return get(method).plan(recipe)


def baseline() -> Method:
    """Return the Baseline, with which other methods are compared."""
    return next(method for method in METHODS.values() if method.baseline)


def ceiling() -> Method:
    """Return the Oracle, which is trained on all true labels: the upper bound for other methods."""
    return next(method for method in METHODS.values() if method.ceiling)


def default() -> Method:
    """Return the method that is trained by default."""
    return METHODS["dmt"]


def alternatives(labeled: Labeled) -> list[Method]:
    """Return the methods that cross-validation on a user's labels may choose instead of the default."""
    return [method for method in METHODS.values() if method.alternative and labeled in method.serves]


def groups() -> dict[str, type[MethodOptions]]:
    """Return the options classes of all methods that have options of their own, by the name of their group."""
    return {method.options.group: method.options for method in METHODS.values() if method.options is not None}


def owners(group: str) -> list[Method]:
    """Return the methods that have this group of options."""
    return [method for method in METHODS.values() if method.options is not None and method.options.group == group]


def with_baseline(names: Iterable[str]) -> list[str]:
    """Return methods without duplicates, and the Baseline if any needs one: last, so that they use a budget first."""
    wanted = list(dict.fromkeys(names))
    beside = [baseline().name] if any(get(name).compared for name in wanted) else []
    return list(dict.fromkeys([*wanted, *beside]))


PAPER = "Feng et al., Pattern Recognition 2022"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "baseline",
            "Baseline",
            "supervised training on the labels only",
            "labels only",
            shapes.alone,
            baseline=True,
            tint=0,
        ),
        Method(
            "oracle",
            "Oracle",
            "supervised training with the true labels of all training images: the upper bound",
            "labels only",
            lambda recipe: shapes.alone(recipe, "everything"),
            ceiling=True,
            tint=3,
        ),
        Method(
            "online",
            "Online ST",
            "online self-training: a trained Baseline continues, with its own confident labels in each step",
            "online",
            shapes.online,
            reference=PAPER,
            options=OnlineOptions,
            tint=6,
        ),
        Method(
            "cl",
            "CL",
            "Curriculum Labeling: each net labels for a fresh one; all labels are weighted equally",
            "stored labels",
            lambda recipe: shapes.chain(recipe, "uniform", restart=True),
            reference="Cascante-Bonilla et al., AAAI 2021",
            tint=2,
        ),
        Method(
            "cbst",
            "CBST",
            "Class-Balanced Self-Training: one net, fine-tuned on its most confident labels per class",
            "stored labels",
            shapes.class_balanced,
            reference="Zou et al., ECCV 2018",
            options=CBSTOptions,
            tint=4,
        ),
        Method(
            "graph-labels",
            "Graph labels",
            "like CL, but the given labels are propagated over a graph of features: an offline variant of DAG",
            "stored labels",
            shapes.graph_labels,
            reference="after DAG, arXiv 2003.13194, by Zhou et al., NeurIPS 2003",
            serves=("images",),
            options=GraphOptions,
        ),
        Method(
            "dst",
            "DST",
            "Dynamic Self-Training: one net, fine-tuned round by round on its own labels, weighted as in DMT",
            "stored labels",
            lambda recipe: shapes.chain(recipe, "dynamic", restart=False),
            reference=PAPER,
            tint=5,
        ),
        Method(
            "dmt",
            "DMT",
            "Dynamic Mutual Training: labels on which teacher and student disagree are down-weighted",
            "stored labels",
            shapes.mutual("dynamic"),
            reference=PAPER,
            tint=1,
        ),
        Method(
            "dmt-naive",
            "DMT-Naive",
            "DMT ablation: weight p^γ everywhere, without distinguishing cases",
            "stored labels",
            shapes.mutual("naive"),
            reference=PAPER,
            tint=7,
        ),
        Method(
            "dmt-flip",
            "DMT-Flip",
            "DMT ablation: where the student is more confident than the teacher, it learns its own label",
            "stored labels",
            shapes.mutual("flip"),
            reference=PAPER,
            tint=4,
        ),
        Method(
            "pseudo-label",
            "Pseudo-Label",
            "the net learns its own confident labels in each step, with a growing weight",
            "online",
            online.pseudo_label,
            reference="Lee, ICML workshop 2013",
            options=online.PseudoLabelOptions,
        ),
        Method(
            "pi-model",
            "Π-model",
            "consistency: two views of an unlabeled image should get the same probabilities",
            "online",
            online.pi_model,
            reference="Laine & Aila, ICLR 2017",
            serves=("images",),
            options=online.PiModelOptions,
        ),
        Method(
            "uda",
            "UDA",
            "the sharpened prediction on a weak view, if confident, is the target for a strong view",
            "online",
            online.uda,
            reference="Xie et al., NeurIPS 2020",
            serves=("images",),
            options=online.UDAOptions,
        ),
        Method(
            "fixmatch",
            "FixMatch",
            "the predicted label of a weak view, if confident, is the target for a strong view",
            "online",
            online.fixmatch,
            reference="Sohn et al., NeurIPS 2020",
            serves=("images",),
            alternative=True,
            options=online.FixMatchOptions,
        ),
        *adaptive.METHODS,
        *guessing.METHODS,
        Method(
            "mean-teacher",
            "Mean Teacher",
            "the net learns the probabilities that its EMA copy predicts for another view",
            "online",
            online.mean_teacher,
            reference="Tarvainen & Valpola, NeurIPS 2017",
            serves=("images",),
            options=online.MeanTeacherOptions,
        ),
        Method(
            "cps",
            "CPS",
            "cross pseudo supervision: in each step, two nets learn each other's labels",
            "online",
            online.cps,
            reference="Chen et al., CVPR 2021",
            options=online.CrossPseudoOptions,
        ),
        Method(
            "fixmatch-seg",
            "FixMatch-Seg",
            "FixMatch for pixels: confident labels of a weak view are targets for a recolored view with a pasted box",
            "online",
            online.fixmatch_seg,
            reference="Yang et al., CVPR 2023 (as compared with UniMatch)",
            serves=("pixels",),
            options=online.FixMatchSegOptions,
        ),
        Method(
            "mt-seg",
            "MT-Seg",
            "Mean Teacher for pixels: the net learns the logits of its EMA copy",
            "online",
            online.mt_seg,
            reference="Ke et al., PixelSSL 2020",
            serves=("pixels",),
            options=online.MeanTeacherSegOptions,
        ),
        Method(
            "cutmix-seg",
            "CutMix-Seg",
            "a box is pasted from another image; the targets are the EMA copy's probabilities, pasted the same way",
            "online",
            online.cutmix_seg,
            reference="French et al., BMVC 2020",
            serves=("pixels",),
            options=online.CutMixSegOptions,
        ),
        Method(
            "cps-cutmix",
            "CPS-CutMix",
            "like CPS, with CutMix",
            "online",
            online.cps_cutmix,
            reference="Chen et al., CVPR 2021",
            serves=("pixels",),
            options=online.CrossPseudoPastedOptions,
        ),
        *two_nets.METHODS,
        *PIXEL_METHODS,
    )
}
