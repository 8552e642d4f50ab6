"""The course of a period: what was seen of it, and what the one before says about the rest."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from zveil.hold.looks import Look, Stretch

_UNUSUAL = 1.5  # times the z that it began with


class Compared(NamedTuple):
    """What model and meter said of the same moment."""

    place: float
    """Of the period, from 0 to 1."""
    off: float
    """The difference of their log odds, the meter's less the model's."""
    model: float
    share: float
    """What the meter showed."""


@dataclass
class Course:
    """One period of the pseudonyms, as far as it was seen.

    Attributes
    ----------
    number
        Which it is, counted from 1970.
    length_ns
        How long periods are.
    seen_from_ns
        Since its start: when the first record came; 0 where it was seen from the start.
    stretches
        What was seen, one behind the other from there on.
    corrections
        How far the model was off, look by look.
    z
        What was chosen for it at its start.
    expected
        The share that it was then expected to end with; None where too little was known.
    """

    number: int
    length_ns: int
    seen_from_ns: int = 0
    stretches: list[Stretch] = field(default_factory=list)
    corrections: list[Compared] = field(default_factory=list)
    z: int | None = None
    expected: float | None = None

    @property
    def start_ns(self) -> int:
        """When it began."""
        return self.number * self.length_ns

    @property
    def seen_ns(self) -> float:
        """Since its start: up to where it was seen."""
        return self.seen_from_ns + sum(each.length_ns for each in self.stretches)

    @property
    def is_unusual(self) -> bool:
        """Whether z had to go up by more than half, or nothing left in the end."""
        if self.z is None or not self.stretches:
            return False
        last = self.stretches[-1].z
        return last is None or last > _UNUSUAL * self.z

    def add(self, look: Look, until_ns: float, z: int | None) -> None:
        """Let a look stand for what has passed since the last one, up to a time of the period."""
        length = until_ns - self.seen_ns
        if length > 0:
            self.stretches.append(Stretch(look, length, z))

    def ahead(self, example: Course | None, look: Look, window_ns: float) -> list[Stretch]:
        """Say what the rest may be like: as another period was from this time on.

        What is seen now is taken to last for a window more, where it is larger. What the other
        period does not tell is taken to be as it is now.
        """
        at, end = self.seen_ns, 0.0 if example is None else float(example.seen_from_ns)
        found: list[Stretch] = []
        for each in () if example is None else example.stretches:
            start, end = max(end, at), end + each.length_ns
            if end > start:
                seen = each.look if start >= at + window_ns else each.look.merged(look)
                found.append(Stretch(seen, end - start))
        missing = self.length_ns - at - sum(each.length_ns for each in found)
        return [*found, Stretch(look, missing)] if missing > 0 else found

    def state(self) -> dict[str, Any]:
        """Give it as plain values: some ten kilobytes."""
        return {
            "number": self.number,
            "seen_from_ns": self.seen_from_ns,
            "lengths_ns": [each.length_ns for each in self.stretches],
            "zs": [each.z for each in self.stretches],
            "looks": _packed([each.look for each in self.stretches]),
            "corrections": [list(each) for each in self.corrections],
            "z": self.z,
            "expected": self.expected,
        }

    @classmethod
    def resumed(cls, state: dict[str, Any], length_ns: int) -> Course:
        """Make the course that `state` was of."""
        looks = _unpacked(state["looks"])
        return cls(
            number=int(state["number"]),
            length_ns=length_ns,
            seen_from_ns=int(state["seen_from_ns"]),
            stretches=[
                Stretch(look, float(length), z)
                for look, length, z in zip(looks, state["lengths_ns"], state["zs"], strict=True)
            ],
            corrections=[Compared(*map(float, each)) for each in state["corrections"]],
            z=state["z"],
            expected=state["expected"],
        )


def _packed(looks: Sequence[Look]) -> str:
    """Write looks as text; what tells attributes apart stands there once for all of them."""
    keys = np.concatenate([np.empty(0, np.uint64), *(look.attribute for look in looks)])
    known, where, place = np.unique(keys, return_index=True, return_inverse=True)
    windows = np.concatenate([np.empty(0), *(look.window_ns for look in looks)])[where]
    users = np.concatenate([np.empty(0), *(look.users for look in looks)])
    parts = [
        np.array([len(known), len(looks), *(len(look.users) for look in looks)], "<u4"),
        known.astype("<u8"),
        windows.astype("<f8"),
        place.astype("<u4"),
        users.astype("<u4"),
    ]
    return base64.b85encode(zlib.compress(b"".join(each.tobytes() for each in parts))).decode()


def _unpacked(text: str) -> list[Look]:
    data = memoryview(zlib.decompress(base64.b85decode(text)))
    attributes, looks = (int(each) for each in np.frombuffer(data, "<u4", 2))
    counts = np.frombuffer(data, "<u4", looks, 8).astype(np.int64)
    at, rows = 8 + 4 * looks, int(counts.sum())
    known = np.frombuffer(data, "<u8", attributes, at).astype(np.uint64)
    windows = np.frombuffer(data, "<f8", attributes, at + 8 * attributes).astype(np.float64)
    at += 16 * attributes
    place = np.frombuffer(data, "<u4", rows, at)
    users = np.frombuffer(data, "<u4", rows, at + 4 * rows).astype(np.float64)
    cuts: list[int] = np.cumsum(counts)[:-1].tolist()
    return [
        Look(known[each], seen, windows[each])
        for each, seen in zip(np.split(place, cuts), np.split(users, cuts), strict=True)
    ][:looks]
