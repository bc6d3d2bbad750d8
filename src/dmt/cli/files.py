"""``dmt splits``, ``dmt pack`` and ``dmt unpack``: the commands that only write or move files."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dmt.cli import terminal_text
from dmt.cli.shared_options import RunArg

app = typer.Typer()


@app.command()
def splits(
    data: Annotated[str, typer.Argument(metavar="voc|cityscapes", help="Whose published lists.")],
    split: Annotated[int, typer.Option(help="0, 1 or 2.")] = 0,
    data_folder: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Check that this folder has every listed image.")
    ] = None,
    out_: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the lists go.")] = Path("splits"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite other files of the same names.")] = False,
) -> None:
    """Write the paper's lists of labeled and unlabeled images.

    They are byte for byte the same as the published ones.

    \b
    dmt splits voc --split 0 --out splits/
    dmt splits cityscapes --split 2 --data ~/cityscapes
    """
    from dmt.data.pixels import published, segment_sets

    if data_folder is not None:
        segment_sets.require_published(data, data_folder, terminal_text.note)
    written = published.write(out_, data, split, force=force)
    terminal_text.show(f"{len(written)} lists in {out_}")


@app.command()
def pack(
    run_: RunArg,
    part_size: Annotated[str, typer.Option(metavar="12MB", help="Largest size of a part.")] = "12MB",
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Where the parts go.  [default: RUN-packed]")
    ] = None,
    lean: Annotated[bool, typer.Option("--lean", help="Leave out weights that the run no longer needs.")] = False,
) -> None:
    """Pack a run into small files, to move it elsewhere.

    The run may be unfinished; it can be unpacked and resumed elsewhere.

    \b
    dmt pack runs/c10 --part-size 12MB
    dmt pack runs/c10 --lean --out carry/
    """
    from dmt.use import packing

    run = run_.resolve() if run_.name in ("", "..") else run_  # "." and ".." name no run to call the pack after
    place = run.with_name(f"{run.name}-packed") if out_ is None else out_
    packed = packing.pack(run, place, packing.size(part_size), lean=lean)
    total = sum(path.stat().st_size for path in packed.paths)
    which = f"{len(packed.content)} files of the run, without {len(packed.spared)} that are no longer needed"
    which = which if packed.spared else f"all {len(packed.content)} files of the run"
    terminal_text.show(f"{which}, listed in {place / packing.INDEX}, and checked after writing")
    terminal_text.show(
        f"{len(packed.paths)} files, {total / 1e6:.1f} MB in {place}; to restore: dmt unpack {shlex.quote(str(place))}"
    )


@app.command()
def unpack(
    packed: Annotated[Path, typer.Argument(metavar="DIR", help="A folder made by dmt pack.")],
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="RUN", help="The run's new folder.  [default: its old name]")
    ] = None,
) -> None:
    """Reassemble a packed run.

    Repeat its fit command with --out RUN to resume.

    \b
    dmt unpack c10-packed
    dmt unpack carry/ --out runs/c10
    """
    from dmt.use import packing

    place = packing.unpack(packed, out_)
    terminal_text.show(f"unpacked to {place}; repeat its fit command with --out {shlex.quote(str(place))} to resume")
