"""Torture: files are damaged, processes killed, disks filled, clocks turned. Runs must not notice, or must say so.

python -m tests.torture --out FILE.json [--seed N] [--minutes 15] [--only kills,mutations,…] [--case NAME]

A Markdown file is written beside the JSON. Exit code 1 if anything failed. Linux only.
"""

import argparse
import logging
import os
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from tests.torture import record, subjects
from tests.torture.clocks import Clocks
from tests.torture.flat import Flat
from tests.torture.full_disks import FullDisks
from tests.torture.fuzzed_folders import FuzzedFolders
from tests.torture.kills import Kills
from tests.torture.mutations import Mutations
from tests.torture.parts import Part
from tests.torture.schedule import Schedule
from tests.torture.two_writers import TwoWriters

WHOLE = 15.0
"""Minutes of all cases on two free cores."""


def main() -> int:
    options = _options()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.NOTSET)
    parts: list[Part] = [Flat(), Kills(), Mutations(), FullDisks(), TwoWriters(), Clocks(), FuzzedFolders()]
    names = [part.name for part in parts]
    only = names if options.only is None else options.only.split(",")
    if unknown := set(only) - set(names):
        raise SystemExit(f"unknown part {', '.join(unknown)}; there are {', '.join(names)}")
    plan = {part: part.cases(options.minutes / WHOLE) for part in parts if part.name in only}
    if options.case is not None:
        plan = {part: [options.case] for part in plan}
    subjects.warm_up()
    subjects.fewer_scenes()
    work = Path(tempfile.mkdtemp(prefix="dmt-torture-", dir=options.work))
    began = time.monotonic()
    try:
        found = Schedule(work, options.seed, options.jobs).run(plan)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    failed = [each for each in found if each.failure is not None]
    if options.out is not None:
        command = f"python -m tests.torture --seed {options.seed} --minutes {options.minutes:g} --only {','.join(only)}"
        record.write(options.out, record.summary(found, list(plan), command, options.seed, time.monotonic() - began))
        print(f"written to {options.out} and {options.out.with_suffix('.md')}")
    print(f"{len(found):,} cases, {len(failed)} failed")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="the record")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=WHOLE, help="on two free cores, roughly; fewer are fewer cases"
    )
    parser.add_argument("--only", metavar="PART,…", help="parts to do")
    parser.add_argument("--case", metavar="NAME", help="one case, to repeat it")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--work", type=Path, help="folder for what it needs while it works")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
