"""Run frozen encoders by ONNX Runtime, which takes half as long as torch on a CPU."""

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
"""Function from images (N, C, H, W) to a feature map for each level."""

MOST = 4
"""Number of exported encoders that are kept in memory; a run uses two."""

_ready: OrderedDict[str, Features | None] = OrderedDict()
_known: WeakKeyDictionary[nn.Module, tuple[tuple[int, ...], str]] = WeakKeyDictionary()


def engine() -> str:
    """Return the library that computes frozen encoders on this machine's CPU, if they can be exported."""
    return "torch" if importlib.util.find_spec("onnxruntime") is None else "onnxruntime"


def suits(encoder: nn.Module, images: Tensor) -> bool:
    """Return whether ONNX Runtime may compute these features: on a CPU, without gradients, not while tracing."""
    recorded = torch._C._get_tracing_state() is not None or torch.compiler.is_compiling()
    if recorded or images.device.type != "cpu" or images.dtype != torch.float32 or images.requires_grad:
        return False
    learns = any(each.requires_grad or each.dtype != torch.float32 for each in encoder.parameters())
    return not learns and not encoder.training and engine() == "onnxruntime"


def features(encoder: nn.Module, levels: Sequence[int], images: Tensor) -> list[Tensor]:
    """Return the encoder's feature maps at these levels without gradient; by torch if it cannot be exported."""
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
    """Return a digest of all parameters and buffers, equal for copies of an encoder; recomputed only after changes."""
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
    """An encoder that returns only the feature maps of some levels."""

    def __init__(self, encoder: nn.Module, levels: Sequence[int]) -> None:
        super().__init__()
        self.encoder, self.levels = encoder, tuple(levels)

    def forward(self, images: Tensor) -> list[Tensor]:
        found = self.encoder(images)
        return [found[level] for level in self.levels]


def _exported(encoder: nn.Module, levels: Sequence[int], channels: int) -> Features | None:
    """Export an encoder; return None if that fails or if the exported one computes other features."""
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
            options.enable_mem_pattern = False  # photos have many sizes, and patterns are made for fixed ones
            options.log_severity_level = 3
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception:  # exporters fail in many ways; torch remains as a fallback
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
