"""What is wrong with a policy, and at which of its keys."""

from typing import TypeAlias

Where: TypeAlias = tuple[str | int, ...]
"""The way to a key: ``("attribute", 1, "window")`` is the window of the second attribute."""


class PolicyError(ValueError):
    """A policy that cannot be meant, or cannot be read.

    Attributes
    ----------
    where
        The key it is about; empty where it is about none.
    words
        What is wrong and what to do, without the key.
    """

    def __init__(self, where: Where, words: str) -> None:
        self.where = where
        self.words = words
        name = spoken(where)
        super().__init__(f"{name}: {words}" if name else words)

    def below(self, where: Where) -> "PolicyError":
        """Give the same error of a part of a policy that is found there."""
        return PolicyError((*where, *self.where), self.words)


def spoken(where: Where) -> str:
    """Name a key as people do; the field is what a part is about, and not named.

    >>> spoken(("attribute", 1, "window")), spoken(("time", "field"))
    ('attribute.window', 'time')
    """
    names = [part for part in where if isinstance(part, str)]
    if len(names) == 2 and names[1] == "field":
        names.pop()
    return ".".join(names)
