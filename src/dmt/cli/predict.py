"""``dmt predict``: classify or segment new images with a run."""

from pathlib import Path
from typing import Annotated

import typer

from dmt.cli import terminal_text
from dmt.cli.shared_options import DeviceOpt, LineOpt, OneMethodOpt, OneSeedOpt, RunArg

app = typer.Typer()


@app.command("predict")
def predict_(
    run_: RunArg,
    images: Annotated[
        list[str], typer.Argument(metavar="IMAGE…", help="Image files, folders of images, shards (tar files, URLs).")
    ],
    out_: Annotated[  # not a Path, which would forget that a folder was meant by a / at the end
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="The CSV, the folder of masks or one mask.png, or shards: pred-%06d.tar.  [default: pred.csv, pred]",
        ),
    ] = None,
    method: OneMethodOpt = None,
    seed: OneSeedOpt = None,
    line: LineOpt = None,
    device: DeviceOpt = "auto",
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite existing files, and replace earlier masks.")
    ] = False,
    shards: Annotated[bool, typer.Option("--shards", help="Write shards into the folder --out.")] = False,
) -> None:
    """Classify or segment images with a run's final model.

    That is the best net on validation, or both nets of a pair.

    \b
    dmt predict runs/a img1.png folder/ --out pred.csv
    dmt predict runs/s photos/ --out pred/
    dmt predict runs/s photos/ --line A --out pred/       one net of a pair: half the time
    dmt predict runs/a shards/ --out pred-%06d.tar        shards in, shards out
    dmt predict runs/a 'https://host/{000..099}.tar' --out pred.csv
    Two nets are used by averaging their probabilities, unless one alone is clearly better on validation.
    The CSV has the columns file, class, probability, and margin: the lead over the runner-up class.
    The folder gets masks/ (indexed PNG: the pixel value is the class), overlays/, classes.csv, and pred.csv with the
    columns file and mask; masks keep the folders of their images.
    Shards hold NAME.cls (the class number) and NAME.json, or NAME.mask.png.
    Images that cannot be read are skipped and reported; it is an error only if none can be read.
    An earlier CSV is overwritten; any other file only with --force, and a file that belongs to a run never. With
    --force, the masks and overlays of an earlier call, as its pred.csv names them, are removed first.
    """
    from dmt.data.folders import phrases
    from dmt.runs import environment
    from dmt.use import predict_inputs, predict_places, predict_shards, scoring
    from dmt.use.predictions import Predictions

    shipped = scoring.shipped_net(run_, method, seed, environment.pick_device(device), line)
    if shipped.note is not None:
        terminal_text.note(f"note: {shipped.note}")
    pixels, inputs, skipped = shipped.spec.pixels, predict_inputs.inputs(images), predict_inputs.Skipped()
    named = out_ or ("pred" if pixels or shards else predict_places.TABLE)
    pattern = predict_shards.pattern(Path(named), shards)
    mask = predict_places.mask(named, inputs) if pixels and pattern is None else None
    place = pattern or (Path(named) if pixels else predict_places.table(named))
    among = predict_places.among_images(place, shipped.trained_on, images, table=pattern is None and not pixels)
    if among is not None:
        terminal_text.note(f"note: {among}")
    predictions, where = Predictions(shipped, inputs, skipped, force), "written to"
    if pattern is not None:
        count = predictions.to_shards(pattern)
    elif mask is not None:
        count = predictions.to_mask(mask)
    elif pixels:
        count, where = predictions.to_masks(place), "masks and overlays in"
    else:
        count = predictions.to_table(place)
    for each in skipped.lines:
        terminal_text.note(each)
    done = f"{phrases.count(count, 'image')} {'segmented' if pixels else 'classified'} by {shipped.name}"
    left = f"; {skipped.count:,} skipped" if skipped.count else ""
    terminal_text.show(f"{done}; {where} {place}{left}")
