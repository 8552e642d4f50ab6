"""Hierarchies: the coarser labels of a value, as a policy names them, finest first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from zveil._native import MOST_LEVELS, Ladder

Step: TypeAlias = str | Mapping[str, Any]
"""One step as a policy file has it: ``"domain"``, or a table such as ``{"segments": "/"}``."""

_PARTS = ("minute", "hour", "day", "month", "year")
_FORMATS = ("s", "ms", "us", "ns", "iso")
_SEGMENTS = 2
_FINEST_CELL = 15


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """The levels of an attribute. Made by `parse`, which has checked it.

    Attributes
    ----------
    steps
        What the native side takes: the name of each step and what belongs to it.
    names
        What each level is called, finest first; the first is the value itself, or the finest cell.
    takes_position
        Whether it is of a latitude and a longitude, whose exact values are no level.
    meaning
        What was said, in one form and for JSON; of a table its digest.
    """

    steps: tuple[tuple[Any, ...], ...] = field(repr=False)
    names: tuple[str, ...]
    takes_position: bool
    meaning: tuple[Any, ...]

    @property
    def levels(self) -> int:
        """How many levels there are, the value itself among them."""
        return len(self.names)

    def native(self) -> Ladder:
        """Give what climbs: the same for every call."""
        return self._ladder

    @cached_property
    def _ladder(self) -> Ladder:
        return Ladder(list(self.steps))

    def __getstate__(self) -> dict[str, Any]:
        # What climbs is made anew in the other process.
        return {name: held for name, held in vars(self).items() if name != "_ladder"}

    def gate_level(self, level: int) -> int:
        """Give the number that a gate has for a level; gates count from the coarsest.

        Parameters
        ----------
        level
            0 is the value itself, or the finest cell.
        """
        if not 0 <= level < self.levels:
            raise ValueError(
                f"level: expected 0 to {self.levels - 1}, where 0 is "
                f"{'the finest cell' if self.takes_position else 'the value itself'}, got {level}"
            )
        return self.levels - 1 - level


def parse(spec: Sequence[Step], folder: str | os.PathLike[str] = ".") -> Hierarchy:
    """Check what a policy says about the levels of an attribute.

    Parameters
    ----------
    spec
        The steps, finest first. Each takes the last label of the one before:

        ``"domain"``
            the registered domain of a host name, by the public-suffix list; needs
            ``zveil[domains]``. ``{"domain": "icann"}`` leaves out the suffixes of companies.
        ``{"table": "file.csv"}``
            value, parent, grandparent, and so on, found by the exact text
        ``{"segments": "/", "levels": 2}``
            the first segments of a path, here two and then one
        ``{"bins": [10, 100]}``
            numbers in bins of these widths, with the lower edge and without the upper one
        ``{"time": ["day", "month", "year"]}``
            dates and times in UTC; ``"format"`` says what numbers are
        ``{"prefix": [24, 16], "prefix6": [48, 32]}``
            networks of IP addresses
        ``{"cells": [9, 7, 5]}``
            H3 cells of a latitude and a longitude; only as the first step
    folder
        Where tables are looked for.

    Raises
    ------
    ValueError
        If a step is not one of these, or the file of one cannot be read.

    Examples
    --------
    >>> parse([{"segments": "/", "levels": 2}]).names
    ('the value itself', '2 segments', '1 segment')
    >>> parse(["country"])
    Traceback (most recent call last):
    ValueError: step 1: expected domain, table, segments, bins, time, prefix or cells, got 'country'
    """
    if isinstance(spec, str | Mapping) or not isinstance(spec, Sequence) or not spec:
        raise ValueError('expected a list of steps, finest first, such as ["domain"]')
    steps: list[tuple[Any, ...]] = []
    names: list[str] = []
    meaning: list[Any] = []
    for number, step in enumerate(spec):
        try:
            made, found, said = _step(step, Path(folder))
            if made[0] == "cells" and number > 0:
                raise ValueError("cells are of a position and come first")
            if made[0] != "cells" and number == 0:
                names.append("the value itself")
            Ladder([made])
        except ValueError as error:
            raise ValueError(f"step {number + 1}: {error}") from None
        steps.append(made)
        names += found
        meaning.append(said)
    if len(names) > MOST_LEVELS:
        raise ValueError(f"expected {MOST_LEVELS} levels at the most, got {len(names)}")
    return Hierarchy(
        steps=tuple(steps),
        names=tuple(names),
        takes_position=steps[0][0] == "cells",
        meaning=tuple(meaning),
    )


_Made: TypeAlias = tuple[tuple[Any, ...], list[str], Any]
"""What the native side takes, what the levels are called, and what was said."""


def _step(step: Step, folder: Path) -> _Made:
    said = {step: None} if isinstance(step, str) else step
    if not isinstance(said, Mapping):
        said = {}
    kinds = [name for name in said if name in _KINDS]
    # Prefixes have two names, each of which may stand alone.
    kind = "prefix" if kinds and set(kinds) <= {"prefix", "prefix6"} else next(iter(kinds), None)
    if kind is None or (len(kinds) > 1 and kind != "prefix"):
        got = repr(step if isinstance(step, str) else sorted(map(str, said)))
        raise ValueError(
            f"expected domain, table, segments, bins, time, prefix or cells, got {got}"
        )
    make, others = _KINDS[kind]
    for name in said:
        if name not in (kind, *others):
            beside = f"; beside it there may be {' and '.join(others)}" if others else ""
            raise ValueError(f"{kind}: has no key {name!r}{beside}")
    return make(said, folder)


def _domain(said: Mapping[str, Any], _: Path) -> _Made:
    part = said["domain"]
    if part not in (None, "all", "icann"):
        raise ValueError(f"domain: expected 'all' or 'icann', got {part!r}")
    private = part != "icann"
    return ("domain", suffix_list(), private), ["domain"], {"domain": part or "all"}


def suffix_list() -> str:
    """Read the public-suffix list from the package that ships it; nothing is downloaded."""
    try:
        import publicsuffixlist
    except ImportError:
        raise ValueError(
            "domain: needs the public-suffix list; install it with: pip install 'zveil[domains]'"
        ) from None
    place = Path(publicsuffixlist.__file__).with_name("public_suffix_list.dat")
    try:
        return place.read_text("utf-8")
    except OSError as error:
        raise ValueError(
            f"domain: the public-suffix list cannot be read ({_reason(error)}); "
            "install it anew with: pip install --force-reinstall publicsuffixlist"
        ) from None


def _table(said: Mapping[str, Any], folder: Path) -> _Made:
    name = said["table"]
    if not isinstance(name, str) or not name:
        raise ValueError(f"table: expected the name of a CSV file, got {name!r}")
    try:
        csv = (folder / name).read_bytes()
    except OSError as error:
        raise ValueError(f"table: {name}: {_reason(error)}") from None
    try:
        levels = Ladder([("table", csv)]).levels - 1
    except ValueError as error:
        raise ValueError(f"table: {name}: {str(error).partition('got ')[2]}") from None
    stem = Path(name).stem
    names = [stem if levels == 1 else f"{stem}, level {level + 1}" for level in range(levels)]
    return ("table", csv), names, {"table": hashlib.sha256(csv).hexdigest()}


def _segments(said: Mapping[str, Any], _: Path) -> _Made:
    separator = said["segments"]
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"segments: expected a separator such as '/', got {separator!r}")
    levels = _whole(said.get("levels", _SEGMENTS), "levels", 1, MOST_LEVELS - 1)
    names = [f"{n} segments" if n > 1 else "1 segment" for n in range(levels, 0, -1)]
    meaning = {"segments": separator, "levels": levels}
    return ("segments", separator, levels), names, meaning


def _bins(said: Mapping[str, Any], _: Path) -> _Made:
    rule = "bins: expected widths above 0, finest first, each a multiple of the one before"
    widths: list[Decimal] = []
    for width in _listed(said["bins"], "bins"):
        try:
            if isinstance(width, bool):
                raise InvalidOperation
            number = Decimal(str(width)).normalize()
        except InvalidOperation:
            raise ValueError(f"{rule}, got {width!r}") from None
        if not number.is_finite() or number <= 0:
            raise ValueError(f"{rule}, got {width!r}")
        if widths and (number <= widths[-1] or number % widths[-1] != 0):
            raise ValueError(f"{rule}; {width} is none of {widths[-1]:f}")
        widths.append(number)
    spelled = [f"{width:f}" for width in widths]
    return ("bins", spelled), [f"bins of {width}" for width in spelled], {"bins": spelled}


def _time(said: Mapping[str, Any], _: Path) -> _Made:
    parts = _listed(said["time"], "time")
    if any(part not in _PARTS for part in parts):
        raise ValueError(f"time: expected some of {', '.join(_PARTS)}, got {parts!r}")
    if parts != sorted(set(parts), key=_PARTS.index):
        raise ValueError(f"time: expected parts in the order {', '.join(_PARTS)}, got {parts!r}")
    form = said.get("format")
    if form is not None and form not in _FORMATS:
        raise ValueError(f"time: format: expected one of {', '.join(_FORMATS)}, got {form!r}")
    return ("time", parts, form), list(parts), {"time": parts, "format": form}


def _prefix(said: Mapping[str, Any], _: Path) -> _Made:
    v4 = _falling(said.get("prefix", []), "prefix", 32, "most bits first")
    v6 = _falling(said.get("prefix6", []), "prefix6", 128, "most bits first")
    if v4 and v6 and len(v4) != len(v6):
        raise ValueError(
            f"prefix: expected as many as of prefix6, one a level, got {len(v4)} and {len(v6)}"
        )
    each = [[f"/{bits}" for bits in bits] for bits in (v4, v6) if bits]
    names = [" and ".join(level) for level in zip(*each, strict=True)]
    return ("prefix", v4, v6), names, {"prefix": v4, "prefix6": v6}


def _cells(said: Mapping[str, Any], _: Path) -> _Made:
    resolutions = _falling(said["cells"], "cells", _FINEST_CELL, "finest first")
    names = [f"cells of resolution {number}" for number in resolutions]
    return ("cells", resolutions), names, {"cells": resolutions}


_KINDS: dict[str, tuple[Callable[[Mapping[str, Any], Path], _Made], tuple[str, ...]]] = {
    "domain": (_domain, ()),
    "table": (_table, ()),
    "segments": (_segments, ("levels",)),
    "bins": (_bins, ()),
    "time": (_time, ("format",)),
    "prefix": (_prefix, ("prefix6",)),
    "prefix6": (_prefix, ("prefix",)),
    "cells": (_cells, ()),
}


def _listed(value: Any, name: str) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise ValueError(f"{name}: expected a list, finest first, got {value!r}")
    return list(value)


def _falling(value: Any, name: str, most: int, order: str) -> list[int]:
    numbers = [_whole(one, name, 0, most) for one in (_listed(value, name) if value != [] else [])]
    if numbers != sorted(set(numbers), reverse=True):
        raise ValueError(f"{name}: expected {order}, got {numbers}")
    return numbers


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}: expected whole numbers from {least} to {most}, got {value!r}")
    return value


def _reason(error: OSError) -> str:
    return (error.strerror or "cannot be read").lower()
