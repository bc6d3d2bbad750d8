"""What makes a training step of a large segmentation net faster, and what does not.

    python -m benchmarks.seg_speed                      all variants, on a GPU
    python -m benchmarks.seg_speed --only plain,tuned   some of them
    python -m benchmarks.seg_speed --tiny               a rehearsal on a CPU

All variants run in one process: forward, backward and SGD on one fixed batch, recorded as a CUDA graph, with different
optimizations. Ratios are relative to ``plain``, the step without any, which is timed first and last. ``--profile``
shows how the device spends its time.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch._dynamo
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.seg_throughput import CLASSES, timed
from dmt.core.execution import Execution
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.models.deeplab import DilatedSum
from dmt.runs import environment
from dmt.training.recording import Recorded
from dmt.training.trainer import Student
from dmt.types import IMAGENET


@dataclass(frozen=True)
class Variant:
    """One way to compute a step.

    Attributes:
        name: the variant's name.
        net: the net.
        batch: images per step.
        crop: height and width of the images.
        tuned: whether cuDNN times its kernels and uses the fastest.
        blocks: whether the residual blocks are compiled, of which only a few are distinct.
        phases: whether dilated convolutions are computed as plain ones on every d-th pixel.
        product: whether the head is computed as one matrix product, whose parts are shifted and summed.
    """

    name: str
    net: str = "deeplab2:resnet152"
    batch: int = 16
    crop: int = 256
    tuned: bool = False
    blocks: bool = False
    phases: bool = False
    product: bool = False


VARIANTS = (
    Variant("plain"),
    Variant("tuned", tuned=True),
    Variant("crop 249", tuned=True, crop=249),
    Variant("product", tuned=True, product=True),
    Variant("phases", tuned=True, phases=True),
    Variant("blocks", tuned=True, product=True, blocks=True),
    Variant("blocks, phases", tuned=True, product=True, blocks=True, phases=True),
    Variant("batch 32", tuned=True, product=True, blocks=True, batch=32),
    Variant("stride 16", net="deeplab2:resnet152@16"),
    Variant("stride 16, tuned", net="deeplab2:resnet152@16", tuned=True, product=True),
    Variant("stride 16, blocks", net="deeplab2:resnet152@16", tuned=True, product=True, blocks=True),
    Variant("stride 16, blocks, 32", net="deeplab2:resnet152@16", tuned=True, product=True, blocks=True, batch=32),
    Variant("plain again"),
)


class Phases(nn.Module):
    """A dilated 3×3 convolution computed as a plain one on d² images, each of every d-th pixel in both directions."""

    def __init__(self, dilated: nn.Conv2d) -> None:
        super().__init__()
        self.weight, self.dilation = dilated.weight, dilated.dilation[0]

    def forward(self, images: Tensor) -> Tensor:
        d, (count, channels, height, width) = self.dilation, images.shape
        down, across = -(-height // d), -(-width // d)
        padded = F.pad(images, (0, across * d - width, 0, down * d - height))
        split = padded.permute(0, 2, 3, 1).reshape(count, down, d, across, d, channels)
        parts = split.permute(2, 4, 0, 1, 3, 5).reshape(d * d * count, down, across, channels).permute(0, 3, 1, 2)
        found = F.conv2d(parts, self.weight, padding=1).permute(0, 2, 3, 1)
        joined = found.reshape(d, d, count, down, across, -1).permute(2, 3, 0, 4, 1, 5)
        whole = joined.reshape(count, down * d, across * d, -1).permute(0, 3, 1, 2)
        return whole[..., :height, :width]


class Product(nn.Module):
    """The head computed as one matrix product for all taps of all branches, which are then shifted and summed."""

    def __init__(self, head: DilatedSum) -> None:
        super().__init__()
        self.branches = head.branches

    def forward(self, features: Tensor) -> Tensor:
        convolutions = [cast(nn.Conv2d, branch) for branch in self.branches]
        weight = torch.stack([each.weight for each in convolutions])  # (B, C, F, 3, 3)
        branches, classes, width = weight.shape[:3]
        rows = weight.permute(0, 3, 4, 1, 2).reshape(-1, width)
        height, breadth = features.shape[-2:]
        taps = F.conv2d(features, rows[:, :, None, None]).view(-1, branches, 9, classes, height, breadth)
        bias = torch.stack([cast(Tensor, each.bias) for each in convolutions]).sum(0)
        total = bias[None, :, None, None].expand(len(features), -1, height, breadth)
        for branch, convolution in enumerate(convolutions):
            d = convolution.dilation[0]
            for tap in range(9):
                down, across = d * (tap // 3 - 1), d * (tap % 3 - 1)
                if abs(down) >= height or abs(across) >= breadth:
                    continue
                part = taps[:, branch, tap]
                part = part[..., max(down, 0) : height + min(down, 0), max(across, 0) : breadth + min(across, 0)]
                edges = (max(-across, 0), max(across, 0), max(-down, 0), max(down, 0))
                total = total + F.pad(part, edges)
        return total


def changed(net: nn.Module, variant: Variant) -> nn.Module:
    """Apply a variant's changes to a net; its parameters stay the same."""
    if variant.product:
        body = cast(Any, net).body
        body.head = Product(body.head)
    if variant.phases:
        for module in list(net.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Conv2d) and child.dilation[0] > 1 and child.kernel_size == (3, 3):
                    if isinstance(module, nn.ModuleList):
                        continue  # leave the branches of the head alone
                    setattr(module, name, Phases(child))
    if variant.blocks:
        for module in net.modules():
            if type(module).__name__ in ("Bottleneck", "BasicBlock"):
                cast(Any, module).forward = torch.compile(module.forward, dynamic=False)
    return net


def step_of(variant: Variant, execution: Execution) -> Callable[[], object]:
    """Return a function that runs one step."""
    spec = NetSpec(variant.net, CLASSES, (3, variant.crop, variant.crop), IMAGENET, pixels=True)
    net = changed(build.build(spec, seed=0), variant)
    net = net.to(execution.device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    student = Student(net, execution)
    shape = (variant.batch, 3, variant.crop, variant.crop)
    images = torch.rand(shape, device=execution.device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, CLASSES, (variant.batch, *shape[2:]), device=execution.device)
    parameters = list(net.parameters())
    rate = torch.tensor(1e-5, device=execution.device)
    optimizer = torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=5e-4, fused=True)
    for parameter in parameters:
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)

    def step(_: object) -> Tensor:
        loss: Tensor = F.cross_entropy(student(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    if execution.records:
        recorded = Recorded(step, (), [*net.parameters(), *net.buffers()])
        return lambda: recorded(())
    return lambda: step(())


def profile(run: Callable[[], object]) -> str:
    """Return the device's time by kernel as text."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    with profiler(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(3):
            run()
        torch.cuda.synchronize()
    rows = sorted(found.key_averages(), key=lambda row: -row.self_device_time_total)[:22]
    total = sum(row.self_device_time_total for row in found.key_averages())
    lines = [f"{row.self_device_time_total / total:6.1%} {row.count // 3:4d} {row.key[:110]}" for row in rows]
    return "\n".join([f"{total / 3e3:.1f} ms a step", *lines])


def check(device: torch.device) -> None:
    """Check that the alternative modules compute the same as the originals."""
    torch.manual_seed(0)
    with torch.no_grad():
        features = torch.randn(2, 8, 11, 13, device=device, dtype=torch.float64)
        head = DilatedSum(8, 5, (2, 3, 12, 24)).to(device, torch.float64)
        torch.testing.assert_close(Product(head)(features), head(features))
        for dilation in (2, 4):
            plain = nn.Conv2d(8, 6, 3, padding=dilation, dilation=dilation, bias=False).to(device, torch.float64)
            torch.testing.assert_close(Phases(plain)(features), plain(features))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--only", help="names of variants, separated by /")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds after which no variant is begun")
    parser.add_argument("--profile", action="store_true", help="of plain and tuned")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    execution = environment.pick_execution("auto").for_net("deeplab2:", pixels=True)
    check(execution.device)
    torch._dynamo.config.recompile_limit = 64
    began = time.monotonic()
    figures: dict[str, dict[str, float]] = {}
    for variant in VARIANTS:
        if options.only and variant.name not in options.only.split("/"):
            continue
        if time.monotonic() - began > options.budget:
            print(f"{variant.name}: no time left", file=sys.stderr)
            continue
        if options.tiny:
            net = variant.net.replace("resnet152", "resnet18")
            variant = Variant(variant.name, net, 2, 64, False, variant.blocks, variant.phases, variant.product)
        torch.backends.cudnn.benchmark = variant.tuned
        torch._dynamo.reset()
        at = time.monotonic()
        try:
            with execution.active():
                run = step_of(variant, execution)
                run()
                ready = time.monotonic() - at
                rate = timed(run, options.steps, variant.batch, execution)
                if options.profile and variant.name in ("plain", "tuned", "blocks", "stride 16, blocks"):
                    print(profile(run), file=sys.stderr)
        except RuntimeError as error:
            print(f"{variant.name}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
            continue
        memory = torch.cuda.max_memory_allocated() / 1e9 if execution.on_cuda else 0.0
        if execution.on_cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        first = next(iter(figures.values()), {"images_per_s": rate})["images_per_s"]
        figures[variant.name] = {"images_per_s": rate, "of_plain": rate / first, "ready_s": ready, "memory_gb": memory}
        print(variant.name, json.dumps({k: round(v, 2) for k, v in figures[variant.name].items()}), file=sys.stderr)
    described = environment.describe(execution.device)
    kept = {key: described[key] for key in ("dmt", "python", "torch", "hardware", "command")}
    print(json.dumps({"environment": kept, "steps": options.steps, "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
