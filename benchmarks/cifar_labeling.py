"""Time to label and rank the unlabeled images of CIFAR-10 4k with WRN-28-2.

python -m benchmarks.cifar_labeling --data DIR
"""

import argparse
import platform
import time
from pathlib import Path

import torch

from dmt import presets
from dmt.core.execution import Execution
from dmt.models import build
from dmt.pseudo import labeler
from dmt.runs import environment
from dmt.tasks import opening


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    device = environment.pick_device(options.device)
    config = presets.get("cifar10-4k").config
    task, _ = opening.read(config.data, options.data, print, lambda done, of: None).split(1)
    net = build.build(task.net_spec(config.net), seed=1).to(device)
    teacher = labeler.Teacher((net,), task, device)
    seconds = []
    with Execution(device, fast=device.type == "cuda").active():
        for _ in range(options.repeats):
            start = time.perf_counter()
            store = labeler.label(teacher, labeler.Wish(0.6))  # the result is on the host: no synchronization needed
            seconds.append(time.perf_counter() - start)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "cpu"
    kept, count = int(store.selected.sum()), len(store.selected)
    times = ", ".join(f"{each:.2f}" for each in seconds)
    print(f"{count:,} images labeled and ranked, {kept:,} kept, {options.repeats} times: {times} s")
    print(f"{name}, torch {torch.__version__}, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
