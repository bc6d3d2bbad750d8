"""Features of images, computed once by frozen encoders and stored in files, from where computation also resumes."""

import hashlib
import importlib.util
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from dmt.data.images import stored_views
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.models.build import Normalized
from dmt.tasks import classification
from dmt.training.feature_file import FeatureFile
from dmt.types import ProgressCallback

Encode = Callable[[Tensor], Tensor]
"""A function from images (N, C, H, W) float32 in [0, 1] to features (N, F) on the host."""

WORTH_EXPORTING = 400
"""Minimum number of images for which exporting an encoder to ONNX, which takes seconds, pays off on a CPU."""

SAVED_EVERY = 512
"""Number of images after which the progress of a file is recorded."""


class _Encoder(nn.Module):
    """Normalization and frozen encoder of a net, as one module."""

    def __init__(self, net: Normalized) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        body: nn.Module = self.net.body
        return body.encoder((images - self.net.mean) / self.net.std)  # type: ignore[operator,no-any-return]


def encoder(net: Normalized, device: torch.device, shape: tuple[int, int, int], images: int) -> Encode:
    """Return the fastest function available here for the features of a net's encoder.

    Args:
        shape: (C, H, W) of the images.
        images: the number of images to encode.
    """
    module = _Encoder(net).eval().to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    if device.type == "cpu" and images >= WORTH_EXPORTING and importlib.util.find_spec("onnxruntime") is not None:
        exported = _by_onnx(module, shape)
        if exported is not None:
            return exported

    @torch.no_grad()
    def encode(batch: Tensor) -> Tensor:
        batch = batch.to(device).contiguous(memory_format=torch.channels_last)
        return module(batch).cpu()  # type: ignore[no-any-return]

    return encode


def _by_onnx(module: nn.Module, shape: tuple[int, int, int]) -> Encode | None:
    """Run the encoder with ONNX Runtime, on a CPU about twice as fast as torch.

    Returns:
        None if the encoder cannot be exported, or if the exported one gives other features.
    """
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
        except Exception:  # exporters raise errors of many kinds; the caller falls back to torch
            return None

    def encode(batch: Tensor) -> Tensor:
        (found,) = session.run(None, {"images": batch.contiguous().numpy()})
        return torch.from_numpy(found)

    same = torch.allclose(encode(example), expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))
    return encode if same else None


@dataclass(frozen=True)
class Encoder:
    """A frozen encoder whose features are needed.

    Attributes:
        key: everything that its features depend on besides the images: its net, its start and the image shape.
        width: number of features.
        make: builds the encoding function; only called if there is something to encode.
        device: where it computes, which decides how many images it is given at once.
    """

    key: str
    width: int
    make: Callable[[], Encode]
    device: torch.device = torch.device("cpu")


@dataclass(frozen=True)
class FeatureFolder:
    """Files of features (N, V, F) float16, one for each set of images, with those of several encoders concatenated.

    The files are a cache: damaged ones are computed again.

    Attributes:
        path: the folder to write to.
        others: folders to look for complete files in; nothing is written there.
    """

    path: Path
    others: tuple[Path, ...] = ()

    def compute(
        self,
        images: UnlabeledSet[Tensor] | LabeledSet[Tensor],
        views: int,
        encoders: Sequence[Encoder],
        on_progress: ProgressCallback,
    ) -> Tensor:
        """Compute the features that are missing, and return all of them, memory-mapped.

        Args:
            images: the images to encode.
            views: number of views of each image.
            encoders: the encoders whose features are concatenated.
            on_progress: is called with (done, total) in images, counted once for each encoder.

        Returns:
            Features (N, V, F) float16.
        """
        shape = (len(images), views, sum(encoder.width for encoder in encoders))
        if not len(images):
            return torch.empty(shape, dtype=torch.float16)
        content = " ".join([*(encoder.key for encoder in encoders), str(views), images.fingerprint])
        name = hashlib.sha256(content.encode()).hexdigest()[:16]
        widths = tuple(encoder.width for encoder in encoders)
        for folder in self.others:
            found = FeatureFile(folder / f"features-{name}.bin", shape, widths)
            if min(found.vouched().done) == len(images):
                return found.map()
        file = FeatureFile(self.path / f"features-{name}.bin", shape, widths)
        known = file.vouched()
        if not any(known.done):
            file.reserve()
        for place, encoder in enumerate(encoders):
            if known.done[place] < len(images):
                forward = encoder.make()
                rows = file.writable()
                own, end = file.columns(rows, place), known.done[place]
                try:
                    for end in _encode(forward, images, own, known.done[place], encoder.device):
                        if end - known.done[place] >= SAVED_EVERY:
                            file.vouch(rows, known, place, end)
                        on_progress(place * len(images) + end, len(encoders) * len(images))
                finally:  # nothing is lost if this is interrupted, for example by a budget
                    file.vouch(rows, known, place, end)
        return file.map()


def _encode(
    encode: Encode,
    images: UnlabeledSet[Tensor] | LabeledSet[Tensor],
    rows: np.ndarray,
    done: int,
    device: torch.device,
) -> Iterator[int]:
    """Fill rows (N, V, F), starting at row ``done``; yield the number of filled rows after each batch."""
    count = classification.images_per_forward(tuple(images.images.shape[2:]), device)
    largest = torch.finfo(torch.float16).max
    for start in range(done, len(images), count):
        end = min(start + count, len(images))
        batch, ids = images.images[start:end], images.ids[start:end]
        for view in range(rows.shape[1]):
            found = encode(stored_views.make(batch, ids, view))
            rows[start:end, view] = found.clamp(-largest, largest).to(torch.float16).numpy()
        yield end
