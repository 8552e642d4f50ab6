"""The steps of hierarchies as properties, each with all that it needs to be climbed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from zveil.engines.flink import letters
from zveil.engines.flink.properties import listed

# What the core takes for space around the fields of a table.
_SPACE = " \t\n\f\r"
_PRIVATE = "===BEGIN PRIVATE DOMAINS==="


def described(step: Sequence[Any]) -> dict[str, Any]:
    """Say what the operator has to know of a step, as `zveil.hierarchy` has made it."""
    kind, *rest = step
    return {"kind": kind, **_KINDS[kind](*rest)}


def _segments(separator: str, levels: int) -> dict[str, Any]:
    return {"separator": separator, "levels": levels}


def _bins(widths: Sequence[str]) -> dict[str, Any]:
    return listed("width", widths)


def _table(written: bytes) -> dict[str, Any]:
    text = io.StringIO(written.decode("utf-8-sig"), newline="")
    lines = [[field.strip(_SPACE) for field in line] for line in csv.reader(text)]
    rows = [line for line in lines if line and line[0]]
    said: dict[str, Any] = {"levels": max(map(len, lines), default=1) - 1, "rows": len(rows)}
    for number, row in enumerate(rows):
        said |= listed(f"row.{number}", row)
    return said


def _domain(suffixes: str, private: bool) -> dict[str, Any]:
    return {"rules": ",".join(_rules(suffixes, private)), **letters.told()}


def _rules(suffixes: str, private: bool) -> Iterator[str]:
    """Give the rules of the list as they stand there, which is without a comma."""
    for line in suffixes.split("\n"):
        if line.startswith("//"):
            if not private and _PRIVATE in line:
                return
        elif line.strip():
            yield line.split()[0]


def _prefix(v4: Sequence[int], v6: Sequence[int]) -> dict[str, Any]:
    return listed("v4", v4) | listed("v6", v6)


def _time(parts: Sequence[str], form: str | None) -> dict[str, Any]:
    return {"format": form or "", **listed("part", parts)}


_KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "segments": _segments,
    "table": _table,
    "bins": _bins,
    "domain": _domain,
    "prefix": _prefix,
    "time": _time,
}

NAMES = tuple(_KINDS)
"""The steps that the operator climbs."""
