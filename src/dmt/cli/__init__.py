"""The command. Every verb is a thin layer over a function of the library."""

from dmt.cli.app import main

__all__ = ["main"]
