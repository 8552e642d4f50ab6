"""What a state costs: time, a pause for each save, bytes on the disk, and a start from it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import files
import numpy as np
import peers
import pipeline
from report import Figures, Ratio, Result, at_most
from text import zveil
from workloads import Scale, Stream, for_text, in_order, short, uniform_users

COST = at_most(1.05)
WITHIN = at_most(1)
SIZE = at_most(1.2)
PAUSE_MS = 20.0
START_S = 5.0

# Five times as often as by default.
_OFTEN = ("--state-every", "2s")
_TIMES = 5
_ROUNDS_OF_USERS = 6


@dataclass(frozen=True)
class Passed:
    """A run with a state, or without."""

    seconds: float
    summary: dict[str, Any]


def runs(scale: Scale) -> list[Result]:
    """Time `zveil run` with and without a state; look at saves, snapshot and start."""
    return [*_cost(scale), *_pause(scale), *_start(scale)]


def _cost(scale: Scale) -> list[Result]:
    """Run file to file with a state and without, in turn.

    It is saved more often than by default. A stream that is as many times as long would be saved
    as often as this one by default: what saves cost is held against the time of that.
    """
    stream = for_text(scale, scale.state_events)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        file, key = place / "events.ndjson", place / "key"
        files.write_ndjson(stream, file)
        key.write_text("4b" * 32)
        key.chmod(0o600)
        taken: dict[str, list[float]] = {"with": [], "without": []}
        last: dict[str, Passed] = {}
        written: dict[str, bytes] = {}
        for _ in range(scale.state_rounds):
            for name in taken:
                state = ("--state", place / "state", *_OFTEN) if name == "with" else ()
                last[name] = _passed(scale.z, file, "-o", place / name, "--key-file", key, *state)
                taken[name].append(last[name].seconds)
                written[name] = _digest(place / name)
                (place / name).unlink()
                shutil.rmtree(place / "state", ignore_errors=True)
        if written["with"] != written["without"]:
            raise peers.DisagreementError("zveil run writes other bytes with a state")
    saves = last["with"].summary["state"]["saves"]
    case = f"{stream.case} z={scale.z}, {short(len(stream))} events, saved {saves} x"
    used, plain = (median(taken[name]) for name in ("with", "without"))
    whole = _TIMES * plain
    costly = whole + used - plain
    shown = {f"{name} a state": max(each) - min(each) for name, each in taken.items()}
    return [
        Ratio("--state, NDJSON file to file", case, "no state", costly, whole, COST, "s"),
        Ratio("--state-every 2s", case, "no state", used, plain, at_most(None), "s"),
        Figures("--state, spread of the runs", case, shown, "s"),
    ]


def _pause(scale: Scale) -> list[Result]:
    """Let many attributes live while saves are made, and take the longest pause."""
    count = scale.state_live
    stream = _alive(count, _ROUNDS_OF_USERS)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "events.ndjson")
        files.write_ndjson(stream, file)
        told = ("--state", Path(folder, "state"), "--state-every", scale.state_often)
        done = _passed(scale.z, file, "-o", Path(folder, "out"), *told).summary["state"]
    case = f"{short(count)} live attributes, the longest of {done['saves']}"
    longest = done["longest_pause_ms"]
    return [Ratio("pause of a save", case, f"{PAUSE_MS:g} ms", longest, PAUSE_MS, WITHIN, "ms")]


def _start(scale: Scale) -> list[Result]:
    """Start from a snapshot of many attributes where there is nothing more to read."""
    count = scale.state_kept
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        file, state = place / "events.ndjson", place / "state"
        files.write_ndjson(_alive(count, 1), file)
        told = (file, "-o", place / "out", "--state", state)
        first = _passed(scale.z, *told)
        size = (state / "state").stat().st_size
        again = [_passed(scale.z, *told) for _ in range(scale.state_rounds)]
    case = f"{short(count)} live attributes"
    live = first.summary["state_bytes"]
    seconds = median(each.seconds for each in again)
    return [
        Ratio("start from a snapshot", case, f"{START_S:g} s", seconds, START_S, WITHIN, "s"),
        Ratio("size of a snapshot", case, "live state", size, live, SIZE, "B"),
    ]


def _alive(count: int, rounds: int) -> Stream:
    """Make a stream of so many attributes, all within one window, each seen in every round."""
    length = count * rounds
    random = np.random.default_rng((count, rounds))
    attributes = np.concatenate([random.permutation(count) for _ in range(rounds)])
    per_window = 2 * length
    return Stream(
        count, count, per_window, in_order(length, per_window), uniform_users(count, length),
        attributes.astype(np.int64),
    )  # fmt: skip


def _passed(z: int, *told: str | Path) -> Passed:
    passage = pipeline.flow(zveil(z, *told))
    return Passed(passage.seconds, json.loads(passage.said.splitlines()[-1]))


def _digest(file: Path) -> bytes:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()
