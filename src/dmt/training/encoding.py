"""Features of images, computed once by a frozen encoder and kept in a file; what was done before is not done again."""

import hashlib
import importlib.util
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from dmt import files
from dmt.data.images import stored_views
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.models.build import Normalized
from dmt.tasks import classification
from dmt.types import ProgressCallback

Encode = Callable[[Tensor], Tensor]
"""Images (N, C, H, W) float32 in [0, 1] to features (N, F), on the host."""

WORTH_EXPORTING = 400
"""Images from which on handing an encoder to ONNX Runtime, seconds of work, is won back on a CPU."""

SAVED_EVERY = 512
"""Images after which a file says how far it is."""


class _Encoder(nn.Module):
    """Normalization and encoder of a net with a frozen one."""

    def __init__(self, net: Normalized) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        body: nn.Module = self.net.body
        return body.encoder((images - self.net.mean) / self.net.std)  # type: ignore[operator,no-any-return]


def encoder(net: Normalized, device: torch.device, shape: tuple[int, int, int], images: int) -> Encode:
    """The fastest way here from images of a shape to the features of a net's encoder.

    Args:
        images: how many there will be.
    """
    module = _Encoder(net).eval().to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    if device.type == "cpu" and images >= WORTH_EXPORTING and importlib.util.find_spec("onnxruntime") is not None:
        exported = _by_onnx(module, shape)
        if exported is not None:
            return exported

    @torch.no_grad()
    def encode(batch: Tensor) -> Tensor:
        batch = batch.to(device).contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            return module(batch).float().cpu()  # type: ignore[no-any-return]

    return encode


def _by_onnx(module: nn.Module, shape: tuple[int, int, int]) -> Encode | None:
    """On a CPU about twice as fast as torch; None for an encoder that cannot be exported."""
    import onnxruntime

    example = torch.rand(2, *shape)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = str(Path(folder) / "encoder.onnx")
        try:
            axes = {"images": {0: "count"}}
            with torch.no_grad():
                expected = module(example)
                torch.onnx.export(module, (example,), path, input_names=["images"], dynamic_axes=axes, dynamo=False)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = torch.get_num_threads()
            options.log_severity_level = 3
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception:  # exporters fail in many ways; torch itself is there
            return None

    def encode(batch: Tensor) -> Tensor:
        (found,) = session.run(None, {"images": batch.contiguous().numpy()})
        return torch.from_numpy(found)

    same = torch.allclose(encode(example), expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))
    return encode if same else None


@dataclass(frozen=True)
class FeatureFile:
    """Features (N, V, F) float16 of one set of images, and how far they are.

    Attributes:
        folder: where files of features are; they can be made again.
        key: everything that features depend on: encoder, its start, size and views.
    """

    folder: Path
    key: str

    def compute(
        self,
        images: UnlabeledSet[Tensor] | LabeledSet[Tensor],
        views: int,
        encode: Callable[[], Encode],
        on_progress: ProgressCallback,
    ) -> Tensor:
        """Those that are there, and the rest anew; mapped into memory, not read.

        Args:
            encode: makes the encoder, if there is anything to do.
        """
        if not len(images):
            return torch.empty(0, views, 1, dtype=torch.float16)
        name = hashlib.sha256(f"{self.key} {views} {_fingerprint(images)}".encode()).hexdigest()[:16]
        path, index = self.folder / f"features-{name}.bin", self.folder / f"features-{name}.json"
        state = files.read_json(index) if index.exists() and path.exists() else {"done": 0, "width": 0}
        done, width = int(state["done"]), int(state["width"])
        if done < len(images):
            forward = encode()
            count = classification.images_per_forward(tuple(images.images.shape[2:]), torch.device("cpu"))
            if not width:
                width = forward(stored_views.make(images.images[:1], images.ids[:1], 0)).shape[1]
                path.parent.mkdir(parents=True, exist_ok=True)
            shape = (len(images), views, width)
            rows = np.memmap(path, np.float16, "r+" if done else "w+", shape=shape)
            saved = done
            for start in range(done, len(images), count):
                end = min(start + count, len(images))
                rows[start:end] = _encoded(forward, images.images[start:end], images.ids[start:end], views)
                on_progress(end, len(images))
                if end - saved >= SAVED_EVERY or end == len(images):
                    rows.flush()  # the index vouches for every row before
                    files.write_json(index, {"done": end, "width": width})
                    saved = end
        return torch.from_numpy(np.memmap(path, np.float16, "c", shape=(len(images), views, width)))


def _encoded(encode: Encode, images: Tensor, ids: Sequence[str], views: int) -> np.ndarray:
    """(n, V, F) float16."""
    features = [encode(stored_views.make(images, ids, view)) for view in range(views)]
    largest = torch.finfo(torch.float16).max
    return torch.stack(features, 1).clamp(-largest, largest).to(torch.float16).numpy()


def _fingerprint(images: UnlabeledSet[Tensor] | LabeledSet[Tensor]) -> str:
    return images.fingerprint
