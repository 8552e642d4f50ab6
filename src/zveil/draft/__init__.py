"""Policies to begin with, drafted from a sample: read, profiled, guessed, written."""

from zveil.draft.guess import Guess, Role, guess
from zveil.draft.sample import Sample, read_sample
from zveil.draft.text import draft

__all__ = ["Guess", "Role", "Sample", "draft", "guess", "read_sample"]
