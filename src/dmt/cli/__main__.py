"""`python -m dmt.cli`: the command."""

from dmt.cli.app import main

if __name__ == "__main__":
    main()
