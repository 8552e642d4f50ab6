"""What a person watching sees: a line that changes, and the account at the end."""

import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from zveil._native import problem_sentence
from zveil.meter import KS, Reading
from zveil.run import Run, Watch
from zveil.summary import Keeping, Measured, Outcome, Summary

_EVERY_S = 0.2
# Periods of a meter that are told.
_PERIODS = 5


class Progress:
    """A line on standard error, if that is a terminal: bytes, rate, share released, time left."""

    def __init__(self, *, quiet: bool) -> None:
        self._is_shown = not quiet and sys.stderr.isatty()
        self._next = 0.0
        self._is_dirty = False
        self.also: Watch | None = None
        """Is shown the run as well."""

    def __call__(self, run: Run) -> None:
        """Show how far the run is, a few times a second."""
        if self.also is not None:
            self.also(run)
        now = time.monotonic()
        if not self._is_shown or now < self._next:
            return
        self._next = now + _EVERY_S
        self._is_dirty = True
        click.echo("\r\x1b[2K" + line(run.summary(is_brief=True), run.size), err=True, nl=False)

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        if self._is_dirty:
            click.echo("\r\x1b[2K", err=True, nl=False)
            self._is_dirty = False


def line(summary: Summary, size: int | None) -> str:
    """Say how far a run is, in one line."""
    parts = [_bytes(summary.bytes_in)]
    if size:
        parts[0] += f" of {_bytes(size)} ({min(summary.bytes_in / size, 1):.0%})"
    before = summary.state or Keeping()
    records = summary.records - before.records_before
    rate = records / summary.seconds if summary.seconds else 0
    parts.append(f"{summary.records:,} events, {rate:,.0f}/s")
    parts.append(f"{_share(summary.released, summary.observed)} released")
    if summary.meter is not None:
        parts.append(_at_present(summary.meter.present))
    if summary.bad_lines:
        parts.append(f"{summary.bad_lines:,} bad")
    if size and summary.bytes_in > before.bytes_before:
        share = (size - summary.bytes_in) / (summary.bytes_in - before.bytes_before)
        left = summary.seconds * max(share, 0)
        parts.append(f"{left:.0f} s left")
    return " · ".join(parts)


def account(summary: Summary, *, without_z: bool = False) -> str:
    """Give the account of a run: every event is in it; `without_z` as for `Summary.as_dict`."""
    records = summary.records
    rows = [("events", records, "")]
    # A trial has its own table of what would be released.
    outcomes = [] if summary.rungs else summary.outcomes
    if len(outcomes) == 1:
        rows += _outcome_rows(outcomes[0], is_tuned=summary.hold is not None)
    elif outcomes:
        rows.append(("left", summary.left, _share(summary.left, records)))
    text = [_table(rows)]
    if len(outcomes) > 1:
        for outcome in outcomes:
            rows = _outcome_rows(outcome, is_tuned=summary.hold is not None)
            text += [outcome.attribute, _table(rows)]
    if summary.meter is not None:
        text += _measured(summary.meter)
    if summary.hold is not None:
        text.append(_held(summary.hold))
    if summary.repeated:
        text.append(f"sent again, decided once by their id: {summary.repeated:,}")
    if summary.forgotten_ids:
        text.append(f"ids forgotten before their time, for lack of room: {summary.forgotten_ids:,}")
    if summary.passed:
        text.append(f"lines of other kinds, passed over: {summary.passed:,}")
    if summary.bad:
        text.append(f"bad lines, none of which left: {summary.bad_lines:,}")
        text.append(
            _table([(problem_sentence(kind) or kind, n, "") for kind, n in summary.bad.items()])
        )
    text += [
        f"warning: no record had a value for {outcome.attribute!r}"
        for outcome in summary.outcomes
        if outcome.observed and outcome.empty == outcome.observed
    ]
    if summary.state is not None:
        text += _kept(summary.state)
        records -= summary.state.records_before
    rate = records / summary.seconds if summary.seconds else 0
    text.append(
        f"{summary.seconds:.1f} s, {rate:,.0f} events/s, {_bytes(summary.bytes_in)} in, "
        f"{_bytes(summary.bytes_out)} out, {_bytes(summary.state_bytes)} of state"
    )
    if not without_z:
        text.append(f"policy {summary.policy}")
    if summary.ended != "end of input":
        text.append(f"ended early: {summary.ended}")
    return "\n".join(text)


def _held(hold: dict[str, Any]) -> str:
    count = sum(hold["tally"].values())
    now = "nothing is released now" if hold["z"] is None else f"it is {hold['z']:,} now"
    return (
        f"z was tuned to hold k = {hold['k']} for {hold['p']:.1%} of the visible users: set "
        f"{'once' if count == 1 else f'{count:,} times'}, {now}"
    )


def _at_present(reading: Reading) -> str:
    if reading.is_stopped:
        return "not measured: memory"
    share = reading.share(2)
    told = "" if share is None else f", {share:.1%} with k >= 2"
    return f"{reading.users:,} visible{told}"


def _measured(meter: Measured) -> list[str]:
    """Give the table of what a meter has shown, by period: the last few."""
    text = [
        "visible users who share the set of their released values, no times, with at least k - 1 "
        "others"
    ]
    before = len(meter.periods) - _PERIODS
    if before > 0:
        text.append(f"  ({before:,} earlier {'period is' if before == 1 else 'periods are'} "
                    "in --json)")  # fmt: skip
    head = [("period from", "visible", "classes", *(f"k >= {k}" for k in KS))]
    rows = head + [_period(reading) for reading in meter.periods[-_PERIODS:]]
    wide = [max(len(row[column]) for row in rows) for column in range(len(head[0]))]
    text += [
        "  " + "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in rows
    ]  # fmt: skip
    if any(reading.is_stopped for reading in meter.periods):
        text.append("  (not measured to its end: the meter was at its limit, see --meter-memory)")
    if late := sum(reading.late for reading in meter.periods):
        text.append(f"  (released after their period was over, not measured: {late:,})")
    return text


def _period(reading: Reading) -> tuple[str, ...]:
    if reading.start_ns is None:
        start = "the first event"
    else:
        began = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=reading.start_ns // 10**9)
        start = f"{began:%Y-%m-%d %H:%M}"
    if reading.is_stopped:
        return (start, "?", "?", *("?" for _ in KS))
    shares = ("" if share is None else f"{share:.1%}" for share in reading.shares.values())
    return (start, f"{reading.users:,}", f"{reading.classes:,}", *shares)


def trial(summary: Summary) -> str:
    """Give the table of what each z would release."""
    observed, records = max(summary.observed, 1), max(summary.records, 1)
    text = [f"{'z':>8}  {'released':>14}  {'':>6}  {'records that leave':>18}  {'':>6}"]
    text += [
        f"{'policy' if rung.z is None else f'{rung.z:,}':>8}"
        f"  {rung.released:>14,}  {rung.released / observed:>6.1%}"
        f"  {rung.records:>18,}  {rung.records / records:>6.1%}"
        for rung in summary.rungs
    ]
    return "\n".join(text)


def _outcome_rows(outcome: Outcome, *, is_tuned: bool = False) -> list[tuple[str, int, str]]:
    z = outcome.z
    always = [("released", outcome.released)]
    if z > 1:
        few = "fewer users than needed" if is_tuned else f"fewer than {z} users"
        always.append((f"veiled: {few}", outcome.few_users))
    rare = [
        ("veiled: outside the window of its value", outcome.few_users if z == 1 else 0),
        ("veiled: too late", outcome.late),
        ("veiled: from the future", outcome.future),
        ("veiled: no value, user or time", outcome.empty),
        ("veiled: left out by a list", outcome.filtered),
    ]
    counts = always + [(word, count) for word, count in rare if count]
    counts[1:1] = [(f"  as {level.name}", level.released) for level in outcome.levels]
    if outcome.swapped is not None:
        counts.insert(1 + len(outcome.levels), ("  under another value", outcome.swapped))
    rows = [(word, count, _share(count, outcome.observed)) for word, count in counts]
    if outcome.refused:
        rows.append(("(met the limit of memory or values)", outcome.refused, ""))
    return rows


def _kept(state: Keeping) -> list[str]:
    """Say how the state was kept."""
    text = []
    if state.resumed:
        text.append(f"counts are of all runs together; {state.records_before:,} events were before")
    if state.gap_seconds is not None:
        events = state.gap_event_seconds
        by_events = "not known" if events is None else f"{events:,.1f} s"
        text.append(
            f"gap: nobody listened for {state.gap_seconds:,.1f} s, by the times of the events "
            f"{by_events}"
        )
    age = "" if state.age_seconds is None else f", the last {state.age_seconds:.1f} s ago"
    text.append(f"state saved {state.saves:,} times{age}".replace(" 1 times", " once"))
    if state.failed_saves:
        text.append(f"saves of the state that failed: {state.failed_saves:,}")
    return text


def _table(rows: list[tuple[str, int, str]]) -> str:
    wide = max(len(word) for word, _, _ in rows)
    return "\n".join(
        f"  {word:<{wide}}  {count:>14,}  {share:>6}".rstrip() for word, count, share in rows
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0.0%"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
