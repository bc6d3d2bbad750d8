"""The command. Every verb is a thin layer over a function of the library.

Verbs import what they need when they run: help and a mistyped option are answered without torch.
"""

from dmt.cli.app import main

__all__ = ["main"]
