"""Files looked at in the process beside the service: an audit as plain values, or a trace."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from zveil.audit import Audit, Observations, Options, audit
from zveil.audit import read as read_observations
from zveil.audit.account import as_dict
from zveil.audit.notes import LIMITS, notes, period_words
from zveil.audit.tables import (
    Rows,
    crowd_rows,
    field_rows,
    group_rows,
    linkage_rows,
    per_user_rows,
    unicity_rows,
    use_rows,
)
from zveil.audit.unicity import resolution_words
from zveil.durations import duration_ns
from zveil.events import Events
from zveil.io import ByteSource, Input, of_path
from zveil.model import Trace

Given: TypeAlias = Mapping[str, Any]
"""Plain values: ``number`` and ``name`` of an open file, ``time``, ``user`` and ``attributes``;
where they are stated, ``time_format`` and ``rotate``."""

Watch: TypeAlias = Callable[[str], None]

_EVERY_S = 0.3
_DAY_NS = 86_400 * 10**9


def report(given: Given, watch: Watch) -> dict[str, Any]:
    """Audit a released file; the result has counts, shares and sentences, and no value of it."""
    observations, bad = _observations(given, watch)
    rotate = given.get("rotate")
    rotate_ns = None if rotate is None else duration_ns(rotate, "rotate")
    found = audit(observations, options=Options(rotate_ns=rotate_ns), bad=bad, watch=watch)
    course = found.utility.course
    return {
        "account": as_dict(found),
        "tables": [{"title": title, "rows": rows} for title, rows in _tables(found)],
        "notes": notes(found),
        "limits": list(LIMITS),
        "point": resolution_words(found.options.resolution),
        "step": None if course is None else period_words(course.step_ns),
    }


def _tables(found: Audit) -> Iterator[tuple[str, Rows]]:
    yield "Observations and users", use_rows(found.utility)
    yield "By field", field_rows(found.utility)
    if not found.utility.users_visible:
        return
    yield "Released observations of a visible user", per_user_rows(found.utility)
    yield "Share of visible users with at least k alike", crowd_rows(found.crowds)
    yield "Number of visible users by k", group_rows(found.crowds)
    point = resolution_words(found.options.resolution)
    yield f"Users singled out by a few points, each {point}", unicity_rows(found.unicity)
    if found.rotation is not None:
        length = period_words(found.rotation.length_ns)
        yield f"With pseudonyms that change every {length}", crowd_rows(found.rotation.crowds)
        if found.rotation.linkage is not None:
            title = "Users found again from each period to the next"
            yield title, linkage_rows(found.rotation.linkage)


def trace(given: Given, watch: Watch) -> tuple[Trace, dict[str, Any]]:
    """Read a file of events as a trace; beside it, what there is to tell about it."""
    observations, bad = _observations(given, watch)
    # What lies ahead of the clock is left out, as a gate would veil it.
    is_past = observations.time_ns <= time.time_ns() + _DAY_NS
    future = len(observations) - int(is_past.sum())
    if future == len(observations):
        raise ValueError("no event has a time, a user and a value; check the fields")
    starts = observations.field[is_past].searchsorted(range(len(given["attributes"])))
    found = Trace.of_codes(
        observations.time_ns[is_past],
        observations.user[is_past],
        observations.value[is_past],
        window=given["window_s"],
        starts=starts.tolist(),
    )
    span_s = (int(found.time_ns.max()) - found.start_ns) / 1e9
    return found, {
        "observations": len(found),
        "users": found.users,
        "attributes": found.attributes,
        "span_s": span_s,
        "left_out": bad + observations.incomplete + future,
    }


def _observations(given: Given, watch: Watch) -> tuple[Observations, int]:
    source = _find(given["number"], given["name"])
    events = Events(
        [source],
        time=given["time"],
        user=given["user"],
        attributes=given["attributes"],
        time_format=given.get("time_format"),
    )
    try:
        found = read_observations(
            _watched(events, watch), user=given["user"], attributes=given["attributes"]
        )
    except pa.ArrowException:
        # The words of the library may quote the data.
        raise ValueError(
            "a column holds what cannot be read as times, users or values; check the fields"
        ) from None
    if events.bad and not len(found.users):
        raise ValueError(
            f"no event could be read, and {events.bad:,} lines are bad; check the fields"
        )
    return found, events.bad


def _find(number: int, name: str) -> Input:
    """Find out what an open file holds; messages call it by its name."""
    form, compression = of_path(name)
    given = Input(Path(f"/dev/fd/{number}"), name, form, compression, os.fstat(number).st_size)
    with ByteSource(given) as opened:
        found = replace(given, format=opened.format, compression=opened.compression)
    # Where opening it again goes on at the same place, that is its beginning.
    os.lseek(number, 0, os.SEEK_SET)
    return found


def _watched(events: Events, watch: Watch) -> Iterator[pa.RecordBatch]:
    """Pass batches on, and say a few times a second how far they are."""
    rows, then = 0, 0.0
    for batch in events:
        rows += batch.num_rows
        now = time.monotonic()
        if now >= then:
            then = now + _EVERY_S
            part = f", {min(events.position / events.size, 1):.0%}" if events.size else ""
            watch(f"reading: {rows:,} events{part}")
        yield batch
