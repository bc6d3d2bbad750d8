"""`python -m dmt`: the command."""

from dmt.cli.app import main

if __name__ == "__main__":
    main()
