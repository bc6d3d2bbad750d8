"""Import torchvision beside a torch it was not built with.

A torchvision built for CUDA next to a CPU-only torch registers none of its operators, and its import stops with
"operator torchvision::nms does not exist" although nothing we use needs that operator. timm imports torchvision, so
it would stop too. `ensure` answers exactly that error, by declaring the two operators' signatures and importing again.
Where the pair matches, nothing is declared: declaring an operator twice would abort the process.
"""

import importlib
import sys

import torch

_declared: list[torch.library.Library] = []  # a library's declarations vanish with the object


def ensure() -> None:
    """Make ``import torchvision`` work; does nothing where it works already."""
    try:
        importlib.import_module("torchvision")
        return
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]
    _declared.append(library)
    importlib.import_module("torchvision")
