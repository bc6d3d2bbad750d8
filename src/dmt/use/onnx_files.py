"""Nets as ONNX: the conversion, and a comparison with the original."""

import contextlib
import io
import math
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dmt.data.images.batches import scale
from dmt.errors import ConfigError, RunError
from dmt.models.build import NetSpec
from dmt.models.mean_of_nets import MeanOfNets
from dmt.types import PADDING


def batches(images: Sequence[Tensor], *, pixels: bool) -> Iterator[Tensor]:
    """Yield the images in [0, 1], in batches of more than one size and, for segmentation, more than one image size."""
    if not pixels:
        stacked = scale(torch.stack(list(images)))
        yield from (stacked[:1], stacked if len(images) > 1 else stacked.repeat(2, 1, 1, 1))
        return
    for number, image in enumerate(images):
        height, width = image.shape[-2:]
        padded: Tensor = F.pad(scale(image[None]), (0, -width % PADDING, 0, -height % PADDING))
        yield padded
        if number == 0:  # also two at once and larger, whatever the images are
            yield F.pad(torch.cat([padded, padded.flip(-1)]), (0, PADDING, 0, 2 * PADDING))


def to_onnx(net: nn.Module, spec: NetSpec) -> Any:
    """Return the net as an ``onnx.ModelProto`` for any number of images and, for segmentation, images of any size."""
    channels, height, width = spec.shape
    axes = {0: "batch"}
    if spec.pixels:
        axes |= {2: "height", 3: "width"}
        height, width = 2 * PADDING, 3 * PADDING  # the exporter would take axes of equal length for the same axis
    example = torch.zeros(2, channels, height, width)
    traced = _traced(net, example, axes) if spec.pixels else None
    return _tidy(_followed(net, example, axes, spec.name) if traced is None else traced, axes)


@contextlib.contextmanager
def _quietly(*exceptions: type[Warning]) -> Iterator[None]:
    """Silence what exporters print and warn about, since their output is verified; turn some warnings into errors."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in exceptions:
            warnings.simplefilter("error", each)
        yield


def _traced(net: nn.Module, example: Tensor, axes: dict[int, str]) -> Any:
    """Convert by the older exporter, which takes a second where the newer one reasons about free sizes for minutes.

    Return None if anything in the net may depend on values or sizes: tracing would record a single case of it.
    """
    import onnx

    doubt: type[Warning] = torch.jit.TracerWarning  # type: ignore[attr-defined]
    free = {"images": axes, "logits": axes}
    try:
        with _quietly(doubt), torch.no_grad(), tempfile.TemporaryDirectory() as place:
            path = Path(place, "net.onnx")
            torch.onnx.export(
                _Traceable(net).eval() if isinstance(net, MeanOfNets) else net, (example,), path, dynamic_axes=free,
                input_names=["images"], output_names=["logits"], dynamo=False,
            )  # fmt: skip
            return onnx.load(path)
    except Exception:  # the newer exporter may succeed
        return None


class _Traceable(nn.Module):
    """The mean of nets, made of functions that the older exporter supports."""

    def __init__(self, mean: MeanOfNets) -> None:
        super().__init__()
        self.nets = mean.nets

    def forward(self, images: Tensor) -> Tensor:
        said = torch.stack([net(images).float().log_softmax(1) for net in self.nets.values()])
        return said.logsumexp(0) - math.log(len(self.nets))


def _followed(net: nn.Module, example: Tensor, axes: dict[int, str], name: str) -> Any:
    """Convert by the newer exporter."""
    shapes = (dict.fromkeys(axes, torch.export.Dim.DYNAMIC),)
    names: dict[str, Any] = {"input_names": ["images"], "output_names": ["logits"]}
    try:
        with _quietly():
            program: Any = torch.onnx.export(
                net, (example,), dynamic_shapes=shapes, dynamo=True, verbose=False, **names
            )
    except Exception as error:  # of any type: whatever the exporter meets in a net that it cannot follow
        reason = line(error.__cause__ or error)
        raise ConfigError(f"net '{name}' cannot be exported to ONNX ({reason}); use --to safetensors") from error
    return program.model_proto


@torch.no_grad()
def difference(net: nn.Module, path: Path, images: Iterable[Tensor]) -> float:
    """Return the largest difference, |a − b| / max(1, |a|), between the logits of a net in float32 and an ONNX file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    options.intra_op_num_threads = torch.get_num_threads()
    largest = 0.0
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        for batch in images:
            expected: Tensor = net(batch)
            found = torch.from_numpy(session.run(["logits"], {"images": batch.numpy()})[0])
            if found.shape != expected.shape:
                raise ValueError(f"logits {tuple(found.shape)}, not {tuple(expected.shape)}")
            apart = (found - expected).abs() / expected.abs().clamp(min=1)
            largest = max(largest, float(apart.nan_to_num(nan=torch.inf, posinf=torch.inf).max()))
    except Exception as error:  # onnxruntime raises many types of errors
        raise RunError(f"the ONNX file does not work: {line(error)}; not kept, use --to safetensors") from error
    return largest


def _tidy(model: Any, axes: dict[int, str]) -> Any:
    """Name the free axes, and drop the exporter's notes on source lines, which are as large as a small net."""
    graph = model.graph
    for value in (graph.input[0], graph.output[0]):
        for axis, name in axes.items():
            value.type.tensor_type.shape.dim[axis].dim_param = name
    del graph.value_info[:]  # intermediate shapes, which have the old names of the axes
    for part in (graph, *graph.node, *graph.input, *graph.output):
        del part.metadata_props[:]
    return model


def line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
