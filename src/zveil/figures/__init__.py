"""The figures of the paper beside what the gate really does, and of a z that tunes itself."""

from zveil.figures.album import write
from zveil.figures.catalogue import NAMES, PAPER

__all__ = ["NAMES", "PAPER", "write"]
