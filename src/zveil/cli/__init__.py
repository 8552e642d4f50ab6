"""The command line: one command a file."""

from zveil.cli.command import main

__all__ = ["main"]
