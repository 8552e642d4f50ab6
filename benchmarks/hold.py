"""A level of k-anonymity that is held, beside the best z that stays and the authors' program.

`zveil run --hold` runs as a program of its own over files of the streams that `zveil figures`
draws, and `zveil audit` measures what left, period by period.

usage: python benchmarks/hold.py FILE    writes what the authors' program comes to, as CSV
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import peers
from report import Figures, Ratio, Result, at_most
from text import ZVEIL
from workloads import Scale

from zveil.figures import tuning
from zveil.io import Format
from zveil.simulate import Events, Scenario
from zveil.simulate.text import Lines

WITHIN = at_most(1)
ON_AVERAGE = 0.05
FIELDS = ("--time", "ts", "--user", "user", "--attribute", "site")


def runs(scale: Scale) -> list[Result]:
    """Hold a level on every stream; a quick run on one, for three periods."""
    trial = tuning.FULL if scale.judged else replace(tuning.QUICK, periods=3)
    names = tuning.STREAMS if scale.judged else tuning.STREAMS[-1:]
    return [result for name in names for result in _one(name, trial)]


def _one(name: str, trial: tuning.Trial) -> Iterator[Result]:
    scenario = trial.scenario(name, 1)
    events = Events.joined(list(scenario.columns()))
    hold = trial.hold
    case = f"{name}, k={hold.k} p={hold.p:g}, {trial.periods - 1} periods of {trial.rotate} windows"
    held = _held(scenario, events, trial)
    shares = [each.share or 0.0 for each in held[1:]]
    missed, allowed = 1 - min(shares), 1 - hold.p
    mean = sum(shares) / len(shares)
    yield Ratio("users not alike, worst", case, "allowed", missed, allowed, WITHIN, "")
    yield Ratio("alike, on average", case, "p + 0.05", mean, hold.p + ON_AVERAGE, WITHIN, "")
    z, mask = tuning.best_fixed(scenario, events, trial, lambda _: None)
    fixed = tuning.periods(scenario, events, mask, trial)
    values = {"lowest": min(shares), "mean": mean, "released": _released(held[1:])}
    yield Figures("a level held", case, values)
    stays = [each.share or 0.0 for each in fixed[1:]]
    values = {"z": z, "lowest": min(stays), "released": _released(fixed[1:])}
    yield Figures("a level held: the best z that stays", case, values)
    if absent := peers.missing(peers.ZANON):
        yield Figures("a level held: zanon", case, {}, note=absent)
        return
    # Of the flash crowds the period in which the first of them comes.
    last = min(5, trial.periods) if name == "flash crowds" else min(2, trial.periods)
    found, z, seconds = zanon(scenario, events, replace(trial, periods=last), first=last - 1)
    values = {"z at its end": z, "share": found[-1].share or 0.0}
    values |= {"released": found[-1].released, "us an event": seconds * 1e6}
    yield Figures("a level held: zanon", f"{name}, period {last}", values)


def write_authors(path: Path) -> None:
    """Run the authors' program on two periods of each stream, and write down the second of them.

    Of the flash crowds that is the fifth, in which the first of them comes: it knows no more of the
    stream than the last window.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("stream", "period", "z", "visible", "share", "released"))
        for name in tuning.STREAMS:
            has_flash = name == "flash crowds"
            trial = replace(tuning.FULL, periods=5 if has_flash else 2)
            scenario = trial.scenario(name, 1)
            events = Events.joined(list(scenario.columns()))
            found, z, _ = zanon(scenario, events, trial, first=trial.periods - 1)
            last = found[-1]
            share, released = f"{last.share:.6g}", f"{last.released:.6g}"
            table.writerow((name, last.period, z, last.visible, share, released))
            file.flush()


def _released(found: list[tuning.Period]) -> float:
    return sum(each.released for each in found) / len(found)


def _held(scenario: Scenario, events: Events, trial: tuning.Trial) -> list[tuning.Period]:
    """Run the program over a file, and audit what left of each period."""
    with tempfile.TemporaryDirectory() as folder:
        stream, left = Path(folder) / "stream.csv", Path(folder) / "held.csv"
        lines = Lines(scenario, Format.CSV)
        with stream.open("wb") as file:
            file.write(lines.header)
            for start in range(0, events.size, 1 << 16):
                file.write(lines.text(events.at(slice(start, start + (1 << 16)))).tobytes())
        hold, window = trial.hold, ("--window", str(scenario.window))
        level = ("--hold", f"k={hold.k} p={hold.p}", "--rotate", f"{trial.rotate} windows")
        _run("run", stream, *FIELDS, *window, *level, "-q", "-o", left)
        return [
            _audited(Path(folder) / "period.csv", rows, number, counted, hold.k)
            for (number, rows), counted in zip(
                _by_period(left, scenario, trial), _counted(scenario, events, trial), strict=True
            )
        ]


def _by_period(
    left: Path, scenario: Scenario, trial: tuning.Trial
) -> Iterator[tuple[int, list[list[str]]]]:
    length_s = trial.rotate * scenario.window_ms / 1000
    rows: list[list[list[str]]] = [[] for _ in range(trial.periods)]
    with left.open(newline="") as file:
        for row in csv.reader(file):
            if row[0] != "ts":
                rows[int((float(row[0]) - scenario.start) // length_s)].append(row)
    return enumerate(rows, 1)


def _counted(scenario: Scenario, events: Events, trial: tuning.Trial) -> list[int]:
    length_ms = trial.rotate * scenario.window_ms
    number = (events.time_ms - scenario.start * 1000) // length_ms
    return np.bincount(number, minlength=trial.periods).tolist()


def _audited(file: Path, rows: list[list[str]], number: int, events: int, k: int) -> tuning.Period:
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([["ts", "user", "site"], *rows])
    answer = json.loads(_run("audit", file, *FIELDS, "--json", "-q"))
    share = answer["k_share"][str(k)]
    return tuning.Period(number, answer["users_visible"], share, len(rows) / events)


def _run(*arguments: str | Path) -> str:
    done = subprocess.run([ZVEIL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise peers.DisagreementError(f"zveil {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def zanon(
    scenario: Scenario, events: Events, trial: tuning.Trial, *, first: int = 1
) -> tuple[list[tuning.Period], int, float]:
    """Let the authors' program hold the level as it does: over the last window.

    Called as its users would. What each period from the `first` on comes to, its z at the end,
    seconds for an event.
    """
    from zanonymity import zanon as module  # type: ignore[import-untyped]

    length_ms = trial.rotate * scenario.window_ms
    ends = scenario.start * 1000 + np.array([first - 1, trial.periods]) * length_ms
    part = events.at(slice(*np.searchsorted(events.time_ms, ends)))
    seconds_of = (part.time_ms - scenario.start * 1000) / 1000
    rows = zip(
        seconds_of.tolist(), map(str, part.user.tolist()), map(str, part.rank.tolist()), strict=True
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        contestant = module.zanon(scenario.window_ms // 1000, trial.hold.p, trial.hold.k)
        start = perf_counter()
        for row in rows:
            contestant.anonymize(row)
        seconds = (perf_counter() - start) / part.size
        contestant.endFiles()
        with Path("output.txt").open(encoding="utf-8") as output:
            left = {tuple(line.rstrip("\n").split("\t")) for line in output}
    # By what it wrote: time, user and value of an event say which it was.
    mask = np.fromiter(
        (
            (str(second), str(user), str(rank)) in left
            for second, user, rank in zip(
                seconds_of.tolist(), part.user.tolist(), part.rank.tolist(), strict=True
            )
        ),
        np.bool_,
        part.size,
    )
    if np.count_nonzero(mask) < 0.999 * len(left):
        raise peers.DisagreementError("zanon: what it wrote is not what it was given")
    found = tuning.periods(scenario, part, mask, trial)[first - 1 :]
    return found, int(contestant.z), seconds


if __name__ == "__main__":
    write_authors(Path(sys.argv[1]))
