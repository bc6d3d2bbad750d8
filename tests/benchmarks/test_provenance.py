"""Records say what was typed, not where."""

from benchmarks import provenance


def test_folders_of_the_machine_are_not_told() -> None:
    typed = "dmt fit --data /home/me/voc --start=/nets/r101.pth#unit --teacher best:/a/b/c.json epochs=3 runs/a"
    assert (
        provenance.command(typed.split())
        == "dmt fit --data …/voc --start=…/r101.pth#unit --teacher best:…/c.json epochs=3 runs/a"
    )
    assert provenance.public("https://host/a.tar") == "https://host/a.tar"
