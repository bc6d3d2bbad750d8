"""``dmt predict``: classify or segment new images with a run."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmt.cli import terminal_text
from dmt.cli.shared_options import DeviceOpt, LineOpt, OneMethodOpt, OneSeedOpt, RunArg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dmt.runs.progress import Watcher
    from dmt.use.predict import Inputs, Prediction

app = typer.Typer()


@app.command("predict")
def predict_(
    run_: RunArg,
    images: Annotated[
        list[str], typer.Argument(metavar="IMAGE…", help="Image files, folders of images, shards (tar files, URLs).")
    ],
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="The CSV, the folder of masks, or shards: pred-%06d.tar.  [default: pred.csv, pred]",
        ),
    ] = None,
    method: OneMethodOpt = None,
    seed: OneSeedOpt = None,
    line: LineOpt = None,
    device: DeviceOpt = "auto",
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
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
    The folder gets masks/ (indexed PNG: the pixel value is the class), overlays/ and classes.csv.
    Shards hold NAME.cls (the class number) and NAME.json, or NAME.mask.png. Unreadable images in shards are skipped
    and reported.
    An earlier CSV is overwritten; any other file only with --force, and a file that belongs to a run never.
    """
    from dmt.data.folders import photo_files
    from dmt.runs import environment, progress
    from dmt.use import predict, predict_masks, predict_shards, scoring

    shipped = scoring.shipped_net(run_, method, seed, environment.pick_device(device), line)
    if shipped.note is not None:
        terminal_text.note(f"note: {shipped.note}")
    place = out_ or Path("pred" if shipped.spec.pixels or shards else "pred.csv")
    pattern, skipped = predict_shards.pattern(place, shards), Skipped()
    inputs, table = predict.inputs(images), pattern is None and not shipped.spec.pixels
    if table:
        place = place / "pred.csv" if place.is_dir() or not place.suffix else place
    among = predict.among_images(pattern or place, shipped.trained_on, images, table=table)
    if among is not None:
        terminal_text.note(f"note: {among}")
    if shipped.spec.pixels:
        planes = predict.decoded(inputs.photos(skipped), photo_files.read_photo, skipped)
        if pattern is not None:
            predict_masks.write_legend(shipped, pattern.parent, force=force)
            count = predict_shards.write(predict_masks.samples(shipped, planes), pattern, force=force)
        else:
            with progress.default() as watcher:
                tell = partial(_tell, watcher, inputs)
                count = predict_masks.write(shipped, planes, place, tell, force=force)
    else:
        read = partial(predict.read, shape=shipped.spec.shape)
        squares = predict.decoded(inputs.photos(skipped), read, skipped)
        with progress.default() as watcher:
            whole, expected = pattern is not None, len(inputs.files)
            said = predict.predict(shipped.net, squares, shipped.classes, whole=whole, expected=expected)
            found = _told(said, partial(_tell, watcher, inputs))
            if pattern is not None:
                samples = (predict_shards.sample(each, shipped.classes) for each in found)
                count = predict_shards.write(samples, pattern, force=force)
            else:
                count = predict.write_csv(found, place, inputs=inputs.here, force=force)
    skipped.tell()
    done = "segmented" if shipped.spec.pixels else "classified"
    where = "masks and overlays in" if shipped.spec.pixels and pattern is None else "written to"
    terminal_text.show(f"{count} images {done} by {shipped.name}; {where} {pattern or place}")


def _told(found: "Iterable[Prediction]", tell: "Callable[[int], None]") -> "Iterator[Prediction]":
    """Yield the predictions unchanged, and report after each how many there were."""
    for number, each in enumerate(found, start=1):
        yield each
        tell(number)


def _tell(watcher: "Watcher", inputs: "Inputs", done: int) -> None:
    """Report progress; how many images shards hold is not known in advance."""
    watcher.busy("predicting", done, done if inputs.shards else len(inputs.files))


class Skipped:
    """Counts what could not be read, and reports the first five of them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, line: str) -> None:
        self.count += 1
        if self.count <= 5:
            terminal_text.note(f"skipped {line}")

    def tell(self) -> None:
        if self.count > 5:
            terminal_text.note(f"skipped {self.count - 5:,} more")
