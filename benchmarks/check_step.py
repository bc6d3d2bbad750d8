"""Do the compiled, recorded step and the plain one agree on this device? Prints the differences; exit code 1 if not.

On CUDA, both run the net in bf16: the losses of the first step must agree to 1 %, the shares of the three cases to 1 %
of the images (a single image that changes case is 0.2 %). Later steps slowly diverge and are only shown. Augmentation
is compared value by value and may differ by one gray level.

    python -m benchmarks.check_step
"""

import argparse
import json

import torch

from benchmarks.cifar_throughput import CONFIG, SPEC, random_task
from dmt.core import streams
from dmt.core.execution import Execution
from dmt.data.images.augment import POLICIES
from dmt.data.sets import PseudoLabels
from dmt.methods import catalogue
from dmt.models import build
from dmt.runs import environment
from dmt.training.trainer import Trainer, Training


def trajectory(method: str, execution: Execution, steps: int) -> tuple[tuple[str, ...], torch.Tensor]:
    """Run the first steps of a stage; return the names of the logged numbers and their values, (steps, names)."""
    torch.manual_seed(0)
    task, stage = random_task(4000, 9000), catalogue.plan(method, CONFIG.recipe).stages[-1]
    pseudo = PseudoLabels(torch.randint(0, 10, (9000,)), torch.rand(9000), torch.ones(9000, dtype=torch.bool))
    kept = None if stage.labels is None else pseudo
    batches = task.batches(task.labeled, kept, stage.batch_plan(seed=1), execution)
    with execution.active():
        training = Training(stage.objective, stage.schedule, steps=1000, seed=1)
        trainer = Trainer({"A": build.build(SPEC, seed=0)}, training, batches, execution)
        numbers = [trainer.advance(trainer.draw()).float().cpu() for _ in range(steps)]
    return trainer.logged, torch.stack(numbers)


def augmentation(execution: Execution) -> tuple[float, int]:
    """Return the share of values that differ between compiled and plain augmentation, and the largest difference."""
    policy = POLICIES["paper"]
    images = torch.randint(0, 256, (512, 3, 32, 32), dtype=torch.uint8, device=execution.device)
    compiled = execution.compiled(policy.apply)
    differing, largest = 0.0, 0
    for step in range(8):
        draws = policy.draw(512, streams.device_stream(execution.device, "check", step), execution.device)
        gap = (policy.apply(images, draws).int() - compiled(images, draws).int()).abs()
        differing += float((gap > 0).float().mean()) / 8
        largest = max(largest, int(gap.max()))
    return differing, largest


def agree(names: tuple[str, ...], fast: torch.Tensor, plain: torch.Tensor) -> bool:
    """Whether the numbers of a step agree up to bf16: absolutely for shares, relatively for the others."""
    shares = torch.tensor([name in ("agree", "negative", "positive") for name in names])
    gaps = (fast - plain).abs() / torch.where(shares, 1.0, plain.abs())
    return bool((gaps <= 0.01).all())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    device = environment.pick_device(options.device)
    described = environment.describe(device)
    print(json.dumps({key: described[key] for key in ("dmt", "python", "torch", "hardware", "command")}))
    differing, largest = augmentation(Execution(device, fast=True))
    print(f"augmentation: {differing:.2e} of all values differ, by {largest} gray levels at most")
    good = largest <= 1
    for method in ("baseline", "cl", "dmt"):
        names, fast = trajectory(method, Execution(device, fast=True), options.steps)
        _, plain = trajectory(method, Execution(device, fast=False), options.steps)
        gaps = ((fast - plain).abs() / plain.abs().clamp_min(1e-3)).amax(1)
        print(method, "largest relative difference by step:", " ".join(f"{gap:.1e}" for gap in gaps.tolist()))
        first = zip(names, fast[0], plain[0], strict=True)
        print("  first step:", ", ".join(f"{name} {mine:.4f}/{theirs:.4f}" for name, mine, theirs in first))
        good &= agree(names, fast[0], plain[0])
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
