"""Import torchvision next to a torch that it was not built for.

A torchvision built for CUDA registers none of its operators next to a CPU-only torch, and its import fails with
"operator torchvision::nms does not exist", although nothing we use needs that operator. timm imports torchvision, so it
would fail too. `ensure` handles exactly that error: it declares the signatures of the two operators and imports again.
If the two packages match, nothing is declared, since declaring an operator twice would abort the process.
"""

import importlib
import sys

import torch

_declared: list[torch.library.Library] = []  # keeps the objects alive, since declarations vanish with them


def ensure() -> None:
    """Make ``import torchvision`` work; do nothing if it already does."""
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
