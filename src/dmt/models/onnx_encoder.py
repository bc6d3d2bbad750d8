"""A frozen encoder by ONNX Runtime, which takes half the time that torch takes on a CPU."""

import hashlib
import importlib.util
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

Features = Callable[[Tensor], list[Tensor]]
"""Images (N, C, H, W) to maps of features, one for each level."""

MOST = 4
"""Encoders that are kept ready; a run has two."""

_ready: OrderedDict[str, Features | None] = OrderedDict()
_known: WeakKeyDictionary[nn.Module, tuple[tuple[int, ...], str]] = WeakKeyDictionary()


def engine() -> str:
    """What computes frozen encoders on a CPU of this machine, wherever they can be exported."""
    return "torch" if importlib.util.find_spec("onnxruntime") is None else "onnxruntime"


def suits(encoder: nn.Module, images: Tensor) -> bool:
    """Whether these features could come from ONNX Runtime: on a CPU, nothing is learned, nobody records the call."""
    recorded = torch._C._get_tracing_state() is not None or torch.compiler.is_compiling()
    if recorded or images.device.type != "cpu" or images.dtype != torch.float32 or images.requires_grad:
        return False
    learns = any(each.requires_grad or each.dtype != torch.float32 for each in encoder.parameters())
    return not learns and not encoder.training and engine() == "onnxruntime"


def features(encoder: nn.Module, levels: Sequence[int], images: Tensor) -> list[Tensor]:
    """The encoder's maps of these levels, without gradient, by ONNX Runtime or, if it cannot be exported, by torch."""
    key = f"{_digest(encoder)} {levels} {images.shape[1]} {torch.get_num_threads()}"
    if key not in _ready:
        _ready[key] = _exported(encoder, levels, images.shape[1])
        while len(_ready) > MOST:
            _ready.popitem(last=False)
    _ready.move_to_end(key)
    fast = _ready[key]
    if fast is not None:
        return fast(images)
    with torch.no_grad():
        found = encoder(images)
    return [found[level] for level in levels]


def _digest(encoder: nn.Module) -> str:
    """Of all parameters and statistics; copies of an encoder share it. Read again only if one of them was changed."""
    tensors = encoder.state_dict(keep_vars=True)
    versions = tuple(part for each in tensors.values() for part in (each.data_ptr(), each._version))
    known = _known.get(encoder)
    if known is None or known[0] != versions:
        content = hashlib.blake2b()
        for name, each in tensors.items():
            content.update(name.encode())
            content.update(each.detach().contiguous().view(-1).view(torch.uint8).numpy())
        known = _known[encoder] = versions, content.hexdigest()
    return known[1]


class _Levels(nn.Module):
    """The maps that count."""

    def __init__(self, encoder: nn.Module, levels: Sequence[int]) -> None:
        super().__init__()
        self.encoder, self.levels = encoder, tuple(levels)

    def forward(self, images: Tensor) -> list[Tensor]:
        found = self.encoder(images)
        return [found[level] for level in self.levels]


def _exported(encoder: nn.Module, levels: Sequence[int], channels: int) -> Features | None:
    """None for an encoder that cannot be exported, or says something else then."""
    import onnxruntime

    module, example = _Levels(encoder, levels).eval(), torch.rand(2, channels, 65, 97)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = str(Path(folder) / "encoder.onnx")
        try:
            axes = {"images": {0: "count", 2: "height", 3: "width"}}
            with torch.no_grad():
                expected = module(example)
                torch.onnx.export(
                    module, (example[:1, :, :33, :33],), path, input_names=["images"], dynamic_axes=axes, dynamo=False
                )
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = torch.get_num_threads()
            options.enable_mem_pattern = False  # photos have many sizes
            options.log_severity_level = 3
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception:  # exporters fail in many ways; torch itself is there
            return None

    def run(images: Tensor) -> list[Tensor]:
        return [torch.from_numpy(each) for each in session.run(None, {"images": images.detach().contiguous().numpy()})]

    try:
        found = run(example)
    except Exception:
        return None
    same = all(
        torch.allclose(one, other, rtol=1e-3, atol=1e-3 * float(other.abs().max()))
        for one, other in zip(found, expected, strict=True)
    )
    return run if same else None
