"""``dmt check``: examine a user's folder of images without training."""

from pathlib import Path
from typing import Annotated

import typer

from dmt.cli import terminal_text
from dmt.cli.shared_options import DeviceOpt, UnlabeledOpt, shards
from dmt.errors import DmtError

app = typer.Typer()


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of your images.")],
    unlabeled: UnlabeledOpt = None,
    device: DeviceOpt = "auto",
    time: Annotated[bool, typer.Option(help="Time a few steps to forecast the duration.")] = True,
) -> None:
    """Check a folder of your images before training.

    Shows what is there, what is wrong, and what dmt fit would do. Trains and writes nothing.

    \b
    dmt check photos/
    dmt check photos/ --unlabeled 'shards/{000..099}.tar'
    Exit codes: 0 fine, 1 something would make a run meaningless, 2 the folder layout is not recognized.
    dmt fit refuses a folder with exit code 1 unless --anyway is given.
    Layouts: labeled/<class>/* and unlabeled/**; one folder of images and a CSV (file,label);
    labeled/images, labeled/masks and unlabeled/; images/, masks/ and splits/; optionally with val/ and test/.
    unlabeled/ may contain tar files of images (shards).
    """
    from dmt.data.folders import doctor, photo_pools, photos, survey
    from dmt.own import choosing, planning, rehearsal
    from dmt.own.known_nets import Asked
    from dmt.runs import environment, progress

    execution = environment.pick_execution(device)
    elsewhere = shards(unlabeled)
    contents = photos.open_folder(folder, elsewhere)
    some = photo_pools.thinned(contents)
    with progress.default() as watcher:
        seen = survey.survey(some, lambda done, of: watcher.busy("reading images", done, of))
    choices: tuple[str, ...] = ()
    forecast, stops = None, False
    if not doctor.examine(some, seen).fatal:
        try:
            setup = choosing.choose(folder, execution.device, Asked(shards=elsewhere))
            choices = setup.lines
            if time:
                config = setup.preset.config
                methods = planning.usual(contents)
                rates = rehearsal.rehearse(config, contents, execution, methods)
                seconds = planning.forecast(config, contents, rates, methods)
                forecast = planning.line(seconds, execution.device, methods)
        except DmtError as error:
            choices, stops = (f"a run would fail: {error}",), True
    diagnosis = doctor.examine(some, seen, forecast, choices)
    terminal_text.show(diagnosis.text)
    raise typer.Exit(1 if diagnosis.fatal or stops else 0)
