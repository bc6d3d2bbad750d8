"""``dmt export``: write a run's final model to a file."""

from pathlib import Path
from typing import Annotated

import typer

from dmt.cli import terminal_text
from dmt.cli.shared_options import LineOpt, OneMethodOpt, OneSeedOpt, RunArg

app = typer.Typer()


@app.command()
def export(
    run_: RunArg,
    to: Annotated[str, typer.Option(metavar="onnx|safetensors", help="The format.")],
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file.  [default: RUN/export/NAME.FORMAT]")
    ] = None,
    method: OneMethodOpt = None,
    seed: OneSeedOpt = None,
    check: Annotated[
        list[Path] | None,
        typer.Option("--check", metavar="IMAGE", help="Compare on this image or folder of images; repeatable."),
    ] = None,
    data_folder: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Compare on test images of the data set in this folder."),
    ] = None,
    line: LineOpt = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Export the final model as ONNX or safetensors.

    One file, even for a pair of nets; safetensors with a JSON card.

    \b
    dmt export runs/a --to onnx                            then run it with any ONNX runtime
    dmt export runs/s --to onnx --check photos/ --out scenes.onnx
    dmt export runs/a --to safetensors                     load it with dmt.use.exporting.load
    dmt export runs/s --to onnx --line A                   one net of a pair: half the size and time
    The net maps images in [0, 1] to logits; for two nets, to the log of their mean probabilities.
    It is compared with the original; if they differ, no file is kept.
    """
    from dmt.use import exporting

    options = exporting.ExportOptions(method, seed, check or [], data_folder, line)
    exported = exporting.export(run_, to, out=out_, options=options, force=force)
    terminal_text.show(exported.summary)
