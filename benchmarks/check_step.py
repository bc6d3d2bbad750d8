"""Do the compiled, recorded step and the plain one agree on this device? Prints the largest differences.

On CUDA both run the net in bf16, so single numbers differ in the third digit and trajectories drift apart slowly; a
wrong step would be off at once. Augmentation has no such excuse and is compared pixel by pixel.

    python benchmarks/check_step.py
"""

import argparse

import torch
from benchmarks.cifar_throughput import CONFIG, SPEC, random_task

from dmt import environment
from dmt.core import streams
from dmt.core.execution import Execution
from dmt.data.augment import POLICIES
from dmt.methods import catalogue
from dmt.models import build
from dmt.training.trainer import Trainer
from dmt.types import Target


def trajectory(method: str, execution: Execution, steps: int) -> tuple[tuple[str, ...], torch.Tensor]:
    """The numbers of the first steps of a stage, (steps, parts)."""
    torch.manual_seed(0)
    task, stage = random_task(4000, 9000), catalogue.plan(method, CONFIG.recipe).stages[-1]
    target = Target(torch.randint(0, 10, (9000,)), torch.rand(9000))
    kept = None if stage.labels is None else (torch.arange(9000), target)
    batches = task.batches(task.labeled, kept, stage.schedule, 1, execution)
    with execution.active():
        trainer = Trainer([build.build(SPEC, seed=0)], stage.objective, stage.schedule, batches, 1000, 1, execution)
        numbers = [trainer.advance(trainer.draw()).float().cpu() for _ in range(steps)]
    return trainer.parts, torch.stack(numbers)


def augmentation(execution: Execution) -> tuple[float, int]:
    """Share of pixels that differ between compiled and plain augmentation, and the largest difference."""
    policy = POLICIES[CONFIG.data.augment]
    images = torch.randint(0, 256, (512, 3, 32, 32), dtype=torch.uint8, device=execution.device)
    compiled = execution.compiled(policy.apply)
    differing, largest = 0.0, 0
    for step in range(8):
        draws = policy.draw(512, streams.device_stream(execution.device, "check", step), execution.device)
        gap = (policy.apply(images, draws).int() - compiled(images, draws).int()).abs()
        differing += float((gap > 0).float().mean()) / 8
        largest = max(largest, int(gap.max()))
    return differing, largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    device = environment.pick_device(options.device)
    differing, largest = augmentation(Execution(device, fast=True))
    print(f"augmentation: {differing:.2e} of all values differ, by {largest} gray levels at most")
    for method in ("baseline", "cl", "dmt"):
        (names, fast), (_, plain) = (
            trajectory(method, Execution(device, fast), options.steps) for fast in (True, False)
        )
        gaps = ((fast - plain).abs() / plain.abs().clamp_min(1e-3)).amax(1)
        print(method, "largest relative difference by step:", " ".join(f"{gap:.1e}" for gap in gaps.tolist()))
        print(
            "  first step:", ", ".join(f"{n} {a:.4f}/{b:.4f}" for n, a, b in zip(names, fast[0], plain[0], strict=True))
        )


if __name__ == "__main__":
    main()
