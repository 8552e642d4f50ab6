"""One stream on its way: files or a pipe in, what is safe out, decided as it arrives."""

from zveil.run.ending import BadInputError, Stopped
from zveil.run.run import MAX_BAD, MAX_LINE, Run, Watch, event_ids

__all__ = ["MAX_BAD", "MAX_LINE", "BadInputError", "Run", "Stopped", "Watch", "event_ids"]
