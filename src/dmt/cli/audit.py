"""``dmt audit``: find labels that are probably wrong, and images that are worth labeling."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dmt.cli import terminal_text
from dmt.cli.shared_options import DeviceOpt, ImagesOpt, OneMethodOpt, OneSeedOpt, RunArg, StartOpt

app = typer.Typer()


@app.command()
def audit(
    run_: RunArg,
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder for the findings.  [default: RUN-audit, with method and seed if given]",
        ),
    ] = None,
    data_folder: ImagesOpt = None,
    method: OneMethodOpt = None,
    seed: OneSeedOpt = None,
    folds: Annotated[int, typer.Option(help="Folds of the labels; each is checked by nets trained on the others.")] = 5,
    count: Annotated[int, typer.Option(help="Images in each list.")] = 100,
    start: StartOpt = None,
    device: DeviceOpt = "auto",
) -> None:
    """Find labels that are probably wrong, and what to label next. The run is not changed.

    \b
    dmt audit runs/photos                              then open runs/photos-audit/index.html
    dmt audit runs/cmp --method dmt --seed 2 --count 50 --out findings
    Writes a gallery, labels.csv, pseudo_labels.csv, label_next.csv, and label_studio.json with label_studio.xml.
    Given labels are checked by nets trained without them, which takes about eight times as long as the Baseline.
    Stop it at any time; repeating the command resumes.
    """
    from dmt.auditing import auditor
    from dmt.runs import starting

    options = auditor.AuditOptions(method, seed, folds, count, starting.parse(start or []), data_folder)
    done = auditor.audit(run_, out_, options, device=device)
    for line in done.lines:
        terminal_text.show(line)
    terminal_text.show(
        f"open {shlex.quote(str(done.folder / 'index.html'))}; lists and Label Studio files are next to it"
    )
