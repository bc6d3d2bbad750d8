"""``dmt list`` and ``dmt plan``: show what there is to choose from, and what a fit would do."""

from typing import Annotated

import typer

from dmt.cli import terminal_text
from dmt.cli.shared_options import ConfigOpt, DataArg, DeviceOpt, MethodOpt, NetOpt, SetOpt, settings

app = typer.Typer()


@app.command("list")
def list_(
    what: Annotated[
        str | None, typer.Argument(help="data, methods, nets, options or pixel-options; the first three if left out.")
    ] = None,
    of: Annotated[str | None, typer.Argument(help="With options: a method or a data set.")] = None,
) -> None:
    """List data sets, methods and nets, one line each.

    \b
    dmt list
    dmt list options              every key for --set, with its default on digits
    dmt list pixel-options        the same for data with masks, with its default on scenes
    dmt list options fixmatch     what a method reads
    dmt list options cifar10-4k   with the defaults of a data set
    """
    from dmt.cli import listing

    for title, lines in listing.sections(what, of).items():
        terminal_text.show(f"{title}:")
        width = max(18, *map(len, lines))
        for name, summary in lines.items():
            terminal_text.show(f"  {name:<{width}} {summary}")


@app.command()
def plan(
    data: DataArg,
    method: MethodOpt = "dmt",
    net: NetOpt = None,
    set_: SetOpt = None,
    config: ConfigOpt = None,
    device: DeviceOpt = "auto",
    time: Annotated[bool, typer.Option(help="Time a few steps of the net to forecast the duration.")] = True,
) -> None:
    """Show the stages of a method as a table, with a time forecast. Trains nothing, and needs no data but your own.

    \b
    dmt plan photos/
    dmt plan digits --method dmt
    dmt plan cifar10-4k --method cl --no-time
    """
    from dmt.cli import stage_tables
    from dmt.results import narrow_tables
    from dmt.runs import environment

    columns = terminal_text.width()
    execution = environment.pick_execution(device)
    for each in stage_tables.lines(data, method, settings(net, set_, config), execution, time):
        if isinstance(each, str):
            terminal_text.show(narrow_tables.sentences(each, columns))
        else:
            terminal_text.show_table(narrow_tables.fit(each, columns), columns)
