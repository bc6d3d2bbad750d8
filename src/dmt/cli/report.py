"""``dmt report``: show the results of runs."""

import time
from pathlib import Path
from typing import Annotated

import typer

from dmt import run_files
from dmt.cli import terminal_text
from dmt.errors import ConfigError, RunError

app = typer.Typer()


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="One or more run folders.")],
    out_: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write a page with charts and pictures, for a browser."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Rewrite the page every few seconds while a run trains.")
    ] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the run's numbers as TensorBoard scalars.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --out overwrite a file that is not a report.")] = False,
) -> None:
    """Show the results of runs, as text or as a page.

    Scores, and whether the best method is better than the others by more than chance; scores per round, coverage, and
    the error of pseudo labels where true labels exist.

    \b
    dmt report runs/*                                  as text
    dmt report runs/a --out report.html                as a page: one file, needs no network
    dmt report runs/a --out report.html --watch        the same while it trains; Ctrl-C ends it
    dmt report runs/* --tensorboard runs/scalars
    """
    if watch and out_ is None:
        raise ConfigError("--watch needs a page to write; add --out report.html")
    from dmt.results.report import Report

    there = [path for path in runs if (path / run_files.MANIFEST).is_file()]
    others = {path: run_files.only_begun(path) for path in sorted(set(runs) - set(there))}
    if not there and any(others.values()):
        raise RunError("; ".join(line for line in others.values() if line is not None))
    for path, line in others.items():
        terminal_text.note(f"{line or f'{path} is not a run folder'}; skipped")
    if not there:
        raise RunError("none of these is a run folder; make one with dmt fit")
    if tensorboard is not None:
        from dmt.reporting import scalars

        count = scalars.write(there, tensorboard)
        terminal_text.show(f"{count:,} numbers in {tensorboard}; to view them: tensorboard --logdir {tensorboard}")
    if out_ is not None:
        _page(there, out_, watch, force)
    elif tensorboard is None:
        terminal_text.show(terminal_text.result(Report.read(there).text(terminal_text.width())))


def _page(runs: list[Path], path: Path, watch: bool, force: bool) -> None:
    from dmt.reporting import report_file

    if watch:
        try:
            report_file.watch(runs, path, terminal_text.note, force=force)
        except KeyboardInterrupt:
            terminal_text.note("stopped watching")
    began = time.perf_counter()
    size = report_file.write(runs, path, force=force)
    took = time.perf_counter() - began
    terminal_text.show(f"{path}: {size / 1e6:.1f} MB in {took:.1f} s; open it in a browser")
