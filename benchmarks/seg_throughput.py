"""Speed of training and labeling in segmentation, relative to the bare step, and its use of memory and disk.

    python -m benchmarks.seg_throughput                     the figures, on a GPU
    python -m benchmarks.seg_throughput --tiny              a rehearsal on a CPU
    python -m benchmarks.seg_throughput --labeling fcn-8    only memory and disk, with a small net

In one process: a bare step (forward, backward, SGD on one fixed batch) and a DMT stage in the real loop, including
crops, weights and journal, for both settings; then labeling 1,000 and 10,000 images with one net. Only memory that the
system cannot reclaim counts: many labels are kept in a file.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch.nn import functional as F

from benchmarks import process_memory
from dmt import presets, run_files
from dmt.core.execution import Execution
from dmt.core.schedule import Schedule
from dmt.data import ragged
from dmt.data.pixels.windows import Window
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet, PseudoLabels, UnlabeledSet
from dmt.methods import catalogue
from dmt.models import build
from dmt.pseudo import labeler
from dmt.pseudo.pixel_store import PixelStore
from dmt.pseudo.pixel_writer import PixelWriter
from dmt.runs import environment
from dmt.tasks.segmentation import Segmentation
from dmt.training import loop
from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal
from dmt.training.recording import Recorded
from dmt.training.trainer import Student, Trainer, Training
from dmt.types import Normalization

CLASSES = 21


@dataclass(frozen=True)
class Setting:
    """A net, the composition of its batches, and sizes of crops and images."""

    net: str
    crop: int
    labeled: int
    pseudo: int
    image: tuple[int, int]

    @property
    def batch(self) -> int:
        return self.labeled + self.pseudo


SETTINGS = (
    Setting("deeplab2:resnet101", 321, 1, 7, (375, 500)),
    Setting("deeplab2:resnet101", 256, 2, 14, (256, 341)),
)
TINY = (Setting("fcn-8", 64, 1, 3, (60, 80)),)


def random_images(count: int, size: tuple[int, int], distinct: int = 64) -> Ragged:
    """Return images of smooth noise; beyond ``distinct`` images, they share pixels and take no additional memory."""
    few = torch.rand(min(count, distinct), 3, size[0] // 16 + 1, size[1] // 16 + 1)
    smooth = (F.interpolate(few, size, mode="bicubic").clamp(0, 1) * 255).to(torch.uint8)
    stacked = ragged.stack(list(smooth.permute(0, 2, 3, 1).contiguous().numpy()))
    return stacked[torch.arange(count) % len(stacked)]


def random_planes(count: int, size: tuple[int, int], low: int, high: int, dtype: torch.dtype) -> Ragged:
    planes = torch.randint(low, high, (min(count, 64), *size), dtype=dtype)
    stacked = ragged.stack(list(planes.numpy()))
    return stacked[torch.arange(count) % len(stacked)]


def random_task(setting: Setting, unlabeled: int) -> Segmentation:
    """Return a task of random images of the real size."""
    few = LabeledSet(
        tuple(map(str, range(32))),
        random_images(32, setting.image),
        random_planes(32, setting.image, 0, CLASSES, torch.uint8),
    )
    many = UnlabeledSet(tuple(map(str, range(unlabeled))), random_images(unlabeled, setting.image))
    plain = Normalization((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    names = tuple(map(str, range(CLASSES)))
    return Segmentation(names, (), plain, Window(setting.crop, setting.crop), few, many, few, few)


def bare(setting: Setting, execution: Execution, steps: int) -> float:
    """Measure images per second of the bare step."""
    task = random_task(setting, 1)
    net = build.build(task.net_spec(setting.net), seed=0)
    net = net.to(execution.device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    student = Student(net, execution)
    shape = (setting.batch, 3, setting.crop, setting.crop)
    images = torch.rand(shape, device=execution.device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, CLASSES, (setting.batch, setting.crop, setting.crop), device=execution.device)
    parameters = list(net.parameters())
    rate = torch.tensor(1e-4, device=execution.device)
    optimizer = torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=5e-4, fused=True)
    for parameter in parameters:
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)

    def step(_: object) -> torch.Tensor:
        loss: torch.Tensor = F.cross_entropy(student(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    run: Callable[[object], torch.Tensor] = step
    if execution.records:
        run = Recorded(step, (), [*net.parameters(), *net.buffers()])
    return timed(lambda: run(()), steps, setting.batch, execution)


def timed(run: Callable[[], object], steps: int, batch: int, execution: Execution) -> float:
    """Measure the median images per second over five intervals, after one of warm-up."""
    rates = []
    for _ in range(6):
        began = time.perf_counter()
        for _ in range(max(1, steps // 6)):
            run()
        if execution.on_cuda:
            torch.cuda.synchronize()
        rates.append(max(1, steps // 6) * batch / (time.perf_counter() - began))
    return statistics.median(rates[1:])


def stage_rate(setting: Setting, execution: Execution, steps: int) -> dict[str, float]:
    """Measure a DMT stage in the real loop."""
    task = random_task(setting, 1000)
    recipe = replace(presets.get("voc-1of20").config.recipe, batch_labeled=setting.labeled, batch_pseudo=setting.pseudo)
    stage = catalogue.plan("dmt", recipe)["A5"]
    labels = random_planes(1000, setting.image, 0, CLASSES, torch.uint8)
    codes = random_planes(1000, setting.image, -32768, 32767, torch.int16)
    pseudo = PseudoLabels(labels, codes, torch.ones(1000, dtype=torch.bool))
    batches = task.batches(task.labeled, pseudo, stage.batch_plan(seed=1), execution)
    net = build.build(task.net_spec(setting.net), seed=0)
    if execution.on_cuda:
        torch.cuda.reset_peak_memory_stats()
    training = Training(stage.objective, schedule(stage.schedule), steps, seed=1)
    trainer = Trainer({"A": net}, training, batches, execution)
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / run_files.JOURNAL)
        loop.fit(trainer, Checkpoint(Path(folder)), journal, loop.Pace(600.0, lambda: False, lambda step: None))
        lines = [line for line in journal.read() if line["kind"] == "interval"]
    rates = [line["images_per_s"] for line in lines]
    return {
        "images_per_s": statistics.median(rates[1:] or rates),
        "waiting": statistics.median(line["waiting"] for line in lines[1:] or lines),
        "peak_memory_mb": lines[-1]["peak_memory_mb"],
    }


def schedule(real: Schedule) -> Schedule:
    """Return a schedule with so low a learning rate that random labels do not make training diverge."""
    return replace(real, descent=replace(real.descent, rate=1e-6))


def labeling(setting: Setting, execution: Execution, count: int) -> dict[str, float]:
    """Label, rank and store ``count`` images with one net."""
    task = random_task(setting, count)
    net = build.build(task.net_spec(setting.net), seed=0)
    net = net.to(execution.device, memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    if execution.on_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as folder, process_memory.Watched() as memory:
        began = time.perf_counter()
        ids, sizes = task.unlabeled.ids, task.unlabeled.images.sizes
        writer = PixelWriter(Path(folder), ids, sizes, CLASSES, cache=Path(folder, "cache"))
        labeler.label_pixels(labeler.Teacher((net,), task, execution.device), writer)
        labeled = time.perf_counter() - began
        writer.select(0.6, device=execution.device)
        selected = time.perf_counter() - began
        writer.write({})
        total = time.perf_counter() - began
        store = PixelStore.load(Path(folder))
    peak = torch.cuda.max_memory_allocated() / 1e6 if execution.on_cuda else 0.0
    return {
        "images": count,
        "images_per_s": count / selected,
        "seconds_inference": labeled,
        "seconds_selection": selected - labeled,
        "seconds_files": total - selected,
        "labels_mb": sum(plane.pixels.nbytes for plane in writer.planes) / 1e6,
        "device_peak_mb": peak,
        "host_peak_mb": memory.anonymous,
        "bytes_per_pixel": store.bytes / store.of,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="steps of each figure")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tiny", action="store_true", help="a small net and few images: only to see that it runs")
    parser.add_argument("--labeling", metavar="NET", help="only labeling, with this net")
    options = parser.parse_args()
    execution = environment.pick_execution(options.device).for_net("deeplab2:", pixels=True)
    counts = (20, 60) if options.tiny else (1000, 10_000)
    figures: dict[str, object] = {}
    with execution.active():
        for setting in () if options.labeling else TINY if options.tiny else SETTINGS:
            name = f"{setting.net}, {setting.crop}², batch {setting.pseudo} + {setting.labeled}"
            floor = bare(setting, execution, options.steps)
            stage = stage_rate(setting, execution, options.steps)
            figures[name] = {"bare_images_per_s": floor, **stage, "of_bare": stage["images_per_s"] / floor}
            print(name, json.dumps(figures[name]), file=sys.stderr, flush=True)
        for count in counts:
            setting = TINY[0] if options.tiny else SETTINGS[1]
            if options.labeling:
                setting = replace(setting, net=options.labeling)
            figures[f"labeling {count}"] = labeling(setting, execution, count)
            print(f"labeling {count}", json.dumps(figures[f"labeling {count}"]), file=sys.stderr, flush=True)
    described = environment.describe(execution.device)
    kept = {key: described[key] for key in ("dmt", "python", "torch", "hardware", "command")}
    print(json.dumps({"environment": kept, "steps": options.steps, "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
