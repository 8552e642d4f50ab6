"""`zveil run` on files and through pipes: beside cat, beside Python, and one format by another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import files
import numpy as np
import peers
import pipeline
import pyarrow.json as pj
from numpy.typing import NDArray
from report import Figures, Ratio, Result, at_least, at_most
from workloads import START_NS, WINDOW_NS, Scale, Stream, for_text, short

TIMES_CAT = at_most(3.5)
THREE_LEVELS = at_most(3)
TIMES_PYTHON = at_least(12)
FORMATS = at_most(1)
TWO_THREADS = at_least(1.3)
WITHIN = at_most(1)
FILE_TO_OPTIONS = at_most(1.05)
IDLE_MS = 5.0
MEMORY_BYTES = 64e6

ZVEIL = Path(sys.executable).parent / "zveil"

PIPED = "NDJSON through pipes"
PIPED_NET = f"{PIPED}, without start-up"

_LEVELS = """
time = {{ field = "ts" }}
user = {{ field = "uid" }}
input = {{ format = "ndjson" }}

[[attribute]]
field = "host"
z = {z}
window = "1h"
hierarchy = ["domain", {{ table = "categories.csv" }}]
"""

# Exchanges through an idle pipe before the clock starts.
_WARM_UP = 100

_POLICY = """
time = {{ field = "ts" }}
user = {{ field = "uid" }}
attribute = [{{ field = "host", z = {z}, window = "1h" }}]
"""

Best = Mapping[str, peers.Outcome]


class Programs:
    """What is measured, over files of one stream in one folder."""

    def __init__(self, folder: Path, stream: Stream, scale: Scale) -> None:
        self.ndjson, self.csv = folder / "events.ndjson", folder / "events.csv"
        self.parquet, self.prefix = folder / "events.parquet", folder / "prefix.ndjson"
        self.empty, self.key = folder / "empty.ndjson", folder / "key"
        self.no_rows = folder / "empty.parquet"
        self.policy = folder / "zveil.toml"
        self._folder = folder
        self._z = scale.z
        prefix = stream.prefix(scale.reference_prefix)
        self._events = {self.empty: 1, self.no_rows: 1, self.prefix: len(prefix)}
        self._all = len(stream)
        files.write_ndjson(stream, self.ndjson)
        files.write_ndjson(prefix, self.prefix)
        files.write_csv(stream, self.csv)
        files.write_parquet(stream, self.parquet)
        files.write_parquet(stream.prefix(0), self.no_rows)
        self.levels = folder / "levels.toml"
        files.write_categories(stream, folder / "categories.csv")
        self.levels.write_text(_LEVELS.format(z=scale.z), encoding="utf-8")
        self.empty.touch()
        self.policy.write_text(_POLICY.format(z=scale.z))
        subprocess.run([ZVEIL, "key", self.key], check=True, stdout=subprocess.DEVNULL)

    def through_pipes(self, command: pipeline.Command, file: Path) -> peers.Outcome:
        """Time ``cat FILE | COMMAND | cat > /dev/null``."""
        return self._outcome(pipeline.flow(["cat", file], command, ["cat"], watched=1), file)

    def through_two_cats(self) -> peers.Outcome:
        """Time ``cat FILE | cat > /dev/null``."""
        return self._outcome(pipeline.flow(["cat", self.ndjson], ["cat"]), self.ndjson)

    def from_file(self, *more: str) -> peers.Outcome:
        """Time ``zveil run FILE > /dev/null``."""
        return self._outcome(pipeline.flow(zveil(self._z, self.ndjson, *more)), self.ndjson)

    def by_policy(self, file: Path) -> peers.Outcome:
        """Time ``zveil run FILE --policy POLICY > /dev/null``, which says what the options do."""
        command = [ZVEIL, "run", "--policy", self.policy, "--json", file]
        return self._outcome(pipeline.flow(command), file)

    def file_to_file(self, file: Path) -> peers.Outcome:
        """Time ``zveil run FILE -o ANOTHER``, both of one format."""
        output = self._folder / f"released{file.suffix}"
        os.sync()  # nobody waits for what others have written
        passage = pipeline.flow(zveil(self._z, file, "-o", output))
        output.unlink()
        return self._outcome(passage, file)

    def digest(self, *more: str) -> str:
        """Run from the file under the key; gives what came out in short."""
        command = zveil(self._z, self.ndjson, "--key-file", self.key, *more)
        return pipeline.flow(command, digest=True).digest

    def released(self, command: pipeline.Command, name: str) -> object:
        """Run on the prefix; gives the times and values that were let out."""
        path = self._folder / name
        with self.prefix.open("rb") as events, path.open("wb") as output:
            subprocess.run(
                command, stdin=events, stdout=output, stderr=subprocess.DEVNULL, check=True
            )
        return pj.read_json(path).select(["ts", "host"])

    def _outcome(self, passage: pipeline.Passage, file: Path) -> peers.Outcome:
        facts: dict[str, float] = {"peak_bytes": passage.peak_bytes}
        if passage.said:
            summary = json.loads(passage.said)
            facts |= {name: summary[name] for name in ("released", "state_bytes")}
        return peers.Outcome(passage.seconds, self._events.get(file, self._all), facts=facts)


def zveil(z: int, *more: str | Path) -> list[str | Path]:
    """`zveil run` as it is called; what it came to goes to standard error."""
    fields = ("--time", "ts", "--user", "uid", "--attribute", "host")
    return [ZVEIL, "run", *fields, "-z", str(z), "--window", "1h", "--json", *more]


def in_levels(policy: Path) -> list[str | Path]:
    """`zveil run` with three levels: host, registered domain, category."""
    return [ZVEIL, "run", "--policy", policy, "--json"]


def in_python(z: int) -> list[str | Path]:
    """Give the same as a program in Python."""
    script = Path(__file__).with_name("in_python.py")
    return [sys.executable, script, str(z), str(WINDOW_NS // 10**9)]


def runs(scale: Scale) -> list[Result]:
    """Time and weigh `zveil run` on one stream in three formats."""
    stream = for_text(scale)
    no_python = peers.missing(peers.ORJSON)
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(Path(folder), stream, scale)
        best = _measured(programs, scale, with_python=not no_python)
        _require_agreement(programs, best, scale, with_python=not no_python)
        size = programs.ndjson.stat().st_size
    case = f"{stream.case} z={scale.z}, {short(len(stream))} events"
    results = _beside_cat(best, case)
    if no_python:
        results.append(Figures("the same in Python", case, {}, note=no_python))
    else:
        results += _beside_python(best, case)
    return [
        *results,
        *_beside_each_other(best, case),
        *_levels(best, case),
        *_two_threads(best, case),
        *_idle(scale),
        _memory(best, "NDJSON", "memory, NDJSON pipe", case),
        _memory(best, "Parquet", "memory, Parquet file", case),
        _memory_of_rows(best, case),
        _start_up(best),
        Figures(PIPED, case, {"in a second": size / best["NDJSON"].seconds}, "B"),
        Figures(PIPED, case, {"released": best["NDJSON"].percent}, "%"),
    ]


def _measured(programs: Programs, scale: Scale, *, with_python: bool) -> Best:
    through, python = programs.through_pipes, in_python(scale.z)
    run, csv = (zveil(scale.z, "--format", name) for name in ("ndjson", "csv"))
    contestants: dict[str, peers.Contestant] = {
        "cat | cat": programs.through_two_cats,
        "cat": partial(through, ["cat"], programs.ndjson),
        "NDJSON": partial(through, run, programs.ndjson),
        "CSV": partial(through, csv, programs.csv),
        "Parquet": partial(programs.file_to_file, programs.parquet),
        "Parquet, empty": partial(programs.file_to_file, programs.no_rows),
        "NDJSON, file to file": partial(programs.file_to_file, programs.ndjson),
        "file": programs.from_file,
        "policy": partial(programs.by_policy, programs.ndjson),
        "levels": partial(through, in_levels(programs.levels), programs.ndjson),
        "levels, empty": partial(through, in_levels(programs.levels), programs.empty),
        "cat, empty": partial(through, ["cat"], programs.empty),
        "NDJSON, empty": partial(through, run, programs.empty),
    }
    if peers.SEVERAL_CORES:
        two = ("--threads", "2")
        contestants["file, two threads"] = partial(programs.from_file, *two)
        contestants["NDJSON, two threads"] = partial(through, [*run, *two], programs.ndjson)
    if with_python:
        contestants["Python"] = partial(through, python, programs.prefix)
        contestants["Python, empty"] = partial(through, python, programs.empty)
    return peers.best_of(scale.text_rounds, contestants)


def _require_agreement(programs: Programs, best: Best, scale: Scale, *, with_python: bool) -> None:
    for name in best.keys() & {
        "CSV",
        "Parquet",
        "NDJSON, file to file",
        "file",
        "policy",
        "NDJSON, two threads",
    }:
        if best[name].facts["released"] != best["NDJSON"].facts["released"]:
            raise peers.DisagreementError(f"NDJSON and {name} release different numbers of events")
    if programs.digest() != programs.digest("--threads", "2"):
        raise peers.DisagreementError("one and two threads write different bytes")
    if with_python:
        ours = programs.released(zveil(scale.z), "ours.ndjson")
        if ours != programs.released(in_python(scale.z), "theirs.ndjson"):
            raise peers.DisagreementError("zveil run and the same in Python release other events")


def _beside_cat(best: Best, case: str) -> list[Result]:
    run, cat = "NDJSON", "cat"
    return [
        Ratio(PIPED, case, "cat | cat", best[run].ns, best["cat | cat"].ns, TIMES_CAT),
        Ratio(PIPED, case, "cat in its place", best[run].ns, best[cat].ns, at_most(None)),
        Ratio(
            PIPED_NET,
            case,
            "cat in its place",
            _net_ns(best, run),
            _net_ns(best, cat),
            at_most(None),
        ),
    ]


def _beside_python(best: Best, case: str) -> list[Result]:
    run, python = "NDJSON", "Python"
    first = f"the same in Python, first {short(best[python].observations)}"
    return [
        Ratio(PIPED, case, first, best[run].ns, best[python].ns, TIMES_PYTHON),
        Ratio(PIPED_NET, case, first, _net_ns(best, run), _net_ns(best, python), at_least(None)),
    ]


def _beside_each_other(best: Best, case: str) -> list[Result]:
    piped, file, both = (best[run].ns for run in ("NDJSON", "file", "NDJSON, file to file"))
    csv, parquet = best["CSV"].ns, best["Parquet"].ns
    return [
        Ratio("CSV through pipes", case, PIPED, csv, piped, FORMATS),
        Ratio("Parquet file to file", case, "NDJSON file to file", parquet, both, FORMATS),
        Ratio("Parquet file to file", case, PIPED, parquet, piped, at_most(None)),
        Ratio("Parquet file to file", case, "NDJSON from a file", parquet, file, at_most(None)),
        Ratio("a policy file", case, "options", best["policy"].ns, file, FILE_TO_OPTIONS),
    ]


def _levels(best: Best, case: str) -> list[Result]:
    three, one = "levels", "NDJSON"
    net = _net_ns(best, three), _net_ns(best, one)
    return [
        Ratio(f"three levels, {PIPED}", case, "one", best[three].ns, best[one].ns, THREE_LEVELS),
        Ratio(f"three levels, {PIPED_NET}", case, "one", *net, at_most(None)),
        Figures(f"three levels, {PIPED}", case, {"released": best[three].percent}, "%"),
    ]


def _two_threads(best: Best, case: str) -> list[Result]:
    if not peers.SEVERAL_CORES:
        return [Figures("--threads 2", case, {}, note=peers.ONE_CORE)]
    return [
        Ratio(f"--threads 2, {way}", case, "one thread", two.ns, one.ns, wanted)
        for way, one, two, wanted in (
            ("from a file", best["file"], best["file, two threads"], TWO_THREADS),
            ("through pipes", best["NDJSON"], best["NDJSON, two threads"], at_least(None)),
        )
    ]


def _idle(scale: Scale) -> list[Result]:
    """Time a line through a pipe that is otherwise idle, in and out."""
    lines = [
        b'{"ts":%d.%03d,"uid":"u%d","host":"www.site.example"}\n'
        % (START_NS // 10**9 + number // 1_000, number % 1_000, number % scale.z)
        for number in range(scale.z - 1 + _WARM_UP + scale.idle_lines)
    ]
    # The first z - 1 lines are veiled: no answer comes.
    commands: dict[str, tuple[pipeline.Command, int]] = {
        "zveil run": (zveil(scale.z), scale.z - 1),
        "cat": (["cat"], 0),
    }
    best: dict[str, NDArray[np.float64]] = {}
    for _ in range(scale.rounds):
        for name, (command, unanswered) in commands.items():
            seconds = pipeline.waits(command, lines, unanswered=unanswered)
            waits = np.array(seconds[-scale.idle_lines :]) * 1e3
            # The round with the least noise; never a mixture of rounds.
            if name not in best or _p99(waits) < _p99(best[name]):
                best[name] = waits
    case = f"{scale.idle_lines} lines, each after the answer before"
    ours = best["zveil run"]
    shown = {"half": float(np.median(ours)), "longest": float(ours.max())}
    return [
        Ratio("idle pipe, p99", case, f"{IDLE_MS:g} ms", _p99(ours), IDLE_MS, WITHIN, "ms"),
        Ratio("idle pipe, p99", case, "cat", _p99(ours), _p99(best["cat"]), at_most(None), "ms"),
        Figures("idle pipe", case, shown, "ms"),
    ]


def _memory(best: Best, run: str, what: str, case: str) -> Ratio:
    """Weigh what is neither the gate's state nor there without any input."""
    facts = best[run].facts
    more = facts["peak_bytes"] - facts["state_bytes"] - best["NDJSON, empty"].facts["peak_bytes"]
    allowed = f"{MEMORY_BYTES / 1e6:g} MB"
    return Ratio(what, case, allowed, more, MEMORY_BYTES, WITHIN, "B")


def _memory_of_rows(best: Best, case: str) -> Figures:
    """Weigh what Parquet takes beside a run over a file without rows, libraries and all."""
    facts, empty = best["Parquet"].facts, best["Parquet, empty"].facts
    more = facts["peak_bytes"] - facts["state_bytes"] - empty["peak_bytes"]
    shown = {"beside a file without rows": more, "that one": empty["peak_bytes"]}
    return Figures("memory, Parquet file", case, shown, "B")


def _start_up(best: Best) -> Figures:
    names = {"NDJSON": "zveil run", "cat": "cat", "Python": "the same in Python"}
    empty = {shown: best.get(f"{name}, empty") for name, shown in names.items()}
    times = {shown: run.seconds * 1e3 for shown, run in empty.items() if run is not None}
    return Figures("start-up", "empty input through pipes", times, "ms")


def _net_ns(best: Best, name: str) -> float:
    """Nanoseconds for each event less what the same pipeline takes with no event at all."""
    run = best[name]
    # Where there is next to nothing to do, noise may leave less than nothing.
    seconds = max(run.seconds - best[f"{name}, empty"].seconds, 1e-9)
    return seconds / run.observations * 1e9


def _p99(waits: NDArray[np.float64]) -> float:
    return float(np.quantile(waits, 0.99))
