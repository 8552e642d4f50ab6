"""z that tunes itself: held is a level of k-anonymity, measured over the life of a pseudonym."""

from zveil.hold.change import Change, Ended
from zveil.hold.controller import Controller

__all__ = ["Change", "Controller", "Ended"]
