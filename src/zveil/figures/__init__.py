"""The figures of the paper: its formulas, the averaged estimate, and what the gate really does."""

from zveil.figures.album import write
from zveil.figures.catalogue import NAMES

__all__ = ["NAMES", "write"]
