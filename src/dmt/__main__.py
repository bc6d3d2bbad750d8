"""Entry point of `python -m dmt`."""

from dmt.cli.app import main

if __name__ == "__main__":
    main()
