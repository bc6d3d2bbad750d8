"""The ``dmt`` command. Every subcommand is a thin layer over a function of the library.

Subcommands import what they need when they run, so that help and usage errors do not load torch.
"""

from dmt.cli.app import main

__all__ = ["main"]
