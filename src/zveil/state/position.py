"""Where input and output of a stream stand: told to a state, and held against what is there."""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zveil.io import Input, SourceError
from zveil.io.sources import reason
from zveil.state.error import RESET, StateError

# So many bytes before a place tell whether it is the place that was meant.
TAIL = 4096


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A place in a file as it is stored, and what stands before it."""

    name: str
    """The file's path, from the root."""
    size: int
    """Bytes before the place."""
    tail: str
    """A keyed hash of the last of them."""

    def as_dict(self) -> dict[str, Any]:
        """Give it for JSON."""
        return {"name": self.name, "size": self.size, "tail": self.tail}

    @classmethod
    def of(cls, held: Mapping[str, Any]) -> Mark:
        """Take it from JSON."""
        return cls(name=held["name"], size=held["size"], tail=held["tail"])


@dataclass(frozen=True, kw_only=True)
class Place:
    """A mark in the input that is being read, and how much of it is decided."""

    mark: Mark
    done: int
    """Bytes, unpacked, of text; rows of columns."""
    is_whole: bool
    """Whether all of the file, as it was, is decided."""

    def as_dict(self) -> dict[str, Any]:
        """Give it for JSON."""
        return {"mark": self.mark.as_dict(), "done": self.done, "whole": self.is_whole}

    @classmethod
    def of(cls, held: Mapping[str, Any]) -> Place:
        """Take it from JSON."""
        return cls(mark=Mark.of(held["mark"]), done=held["done"], is_whole=held["whole"])


@dataclass(kw_only=True)
class InputPosition:
    """Which inputs are read to their end, and how far the present one is."""

    finished: list[Mark] = field(default_factory=list)
    place: Place | None = None

    def as_dict(self) -> dict[str, Any]:
        """Give it for JSON."""
        return {
            "finished": [mark.as_dict() for mark in self.finished],
            "place": None if self.place is None else self.place.as_dict(),
        }

    @classmethod
    def of(cls, held: Mapping[str, Any]) -> InputPosition:
        """Take it from JSON."""
        place = held["place"]
        return cls(
            finished=[Mark.of(each) for each in held["finished"]],
            place=None if place is None else Place.of(place),
        )


class Marker:
    """Makes marks, and holds them against files.

    Parameters
    ----------
    key
        Secret bytes for the hashes: they are of raw data.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def mark(self, name: str, size: int, before: bytes) -> Mark:
        """Make a mark of a place and the bytes before it."""
        tail = hmac.digest(self._key, before[-TAIL:], "sha256")[:16].hex()
        return Mark(name=name, size=size, tail=tail)

    def whole(self, path: str | os.PathLike[str], size: int | None = None) -> Mark:
        """Make a mark of a file's end, or of a place in it."""
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size if size is None else size
            file.seek(max(size - TAIL, 0))
            return self.mark(full_name(path), size, file.read(min(size, TAIL)))

    def check(self, mark: Mark, shown: str, *, may_grow: bool) -> None:
        """Hold a mark against its file.

        Raises
        ------
        StateError
            If the file is not what it was up to the mark; or has grown where it may not.
        """
        try:
            found = self.whole(mark.name, mark.size)
            size = os.stat(mark.name).st_size
        except OSError as error:
            raise StateError(
                f"{shown}: {reason(error)}, and the state goes on from there; put it back, or "
                f"{RESET}"
            ) from None
        if size < mark.size:
            raise StateError(
                f"{shown}: is shorter than when the state was saved, {size:,} of {mark.size:,} "
                f"bytes; put it back as it was, or {RESET}"
            )
        if found.tail != mark.tail:
            raise StateError(
                f"{shown}: holds other bytes than when the state was saved; put it back as it was, "
                f"or {RESET}"
            )
        if size > mark.size and not may_grow:
            raise StateError(
                f"{shown}: has grown since it was read to its end and the next one was begun; give "
                f"what is new as a file that comes last, or {RESET}"
            )


def full_name(path: str | os.PathLike[str]) -> str:
    """Give the path of a file from the root."""
    return os.path.abspath(path)


def is_stream(source: Input) -> bool:
    """Whether an input cannot be read again: a pipe, or standard input whatever it is."""
    return source.path is None or source.size is None


def left_to_read(
    inputs: Sequence[Input], position: InputPosition, marker: Marker
) -> tuple[list[Input], bool]:
    """Give the inputs that are not read to their end, in their order.

    The first of them is the one to go on with if that is said; else all of them are new.

    Parameters
    ----------
    inputs
        All that there are now.
    position
        Where a saved state stands in them.

    Raises
    ------
    StateError
        If files have changed, are missing, or come in another order.
    """
    there = {full_name(each.path): each for each in inputs if each.path is not None}
    if len(there) < len(inputs):
        raise StateError("a file is named twice; name each once")
    names = list(there)
    place = position.place
    known = [mark.name for mark in position.finished]
    if place is not None:
        known.append(place.mark.name)
        if place.mark.name not in there and not place.is_whole:
            raise StateError(
                f"{place.mark.name}: is not among the inputs, and the state goes on from there; "
                f"name it again, or {RESET}"
            )
    # Those read to their end may be gone.
    known = [name for name in known if name in there]
    if names[: len(known)] != known:
        first = next((now for now, was in zip(names, known, strict=False) if now != was), names[-1])
        raise StateError(
            f"{there[first].name}: comes before inputs that were read already, or these come in "
            f"another order; let new files come behind the others, or {RESET}"
        )
    for mark in position.finished:
        if mark.name in there:
            marker.check(mark, there[mark.name].name, may_grow=False)
    is_begun = place is not None and place.mark.name in there
    if is_begun and place is not None:
        # An index at the end, as Parquet has it, would not be there any more if it had grown.
        marker.check(place.mark, there[place.mark.name].name, may_grow=True)
    rest = names[len(known) - is_begun :]
    return [there[name] for name in rest], is_begun


def check_output(
    path: str | None, held: Mapping[str, Any] | None, marker: Marker, *, is_file: bool
) -> None:
    """Hold what a state says about its output against what is there.

    Raises
    ------
    StateError
        If it is another one, or is not what it was.
    """
    if held is None:
        return
    if held["mark"] is None:
        if is_file:
            raise StateError(
                f"-o: the state goes on with what was written to {held['name']}; leave -o out, "
                f"give this run a state of its own, or {RESET}"
            )
        return
    mark = Mark.of(held["mark"])
    if not is_file or path is None or full_name(path) != mark.name:
        raise StateError(
            f"-o: the state goes on with {mark.name}; name that, give this run a state of its own, "
            f"or {RESET}"
        )
    marker.check(mark, path, may_grow=True)


def refuse_mixed(inputs: Sequence[Input]) -> None:
    """Refuse a pipe beside other inputs: where the one ends and the other begins is not known."""
    if len(inputs) > 1 and any(map(is_stream, inputs)):
        name = next(each.name for each in inputs if is_stream(each))
        raise SourceError(f"{name}: with --state a pipe must be the only input")
