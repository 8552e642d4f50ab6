"""Measure the gate, `zveil run` and figures about privacy side by side with peers, in one run.

usage: python benchmarks/run.py [--quick] [--only SECTION ...] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

import extremes
import hold
import memory
import meter
import peers
import privacy
import pseudonyms
import report
import serve
import speed
import state
import text
from workloads import FULL, QUICK, Scale, Stream, grid

# Sections that go over the streams of the grid, and sections with a stream of their own.
ON_GRID: dict[str, Callable[[Stream, Scale], list[report.Result]]] = {
    "batch": speed.integer_batch,
    "where": speed.where_the_time_goes,
    "slow": speed.slow_peers,
    "strings": speed.string_columns,
    "levels": speed.three_levels,
    "single": speed.one_at_a_time,
    "pairs": memory.live_pairs,
    "reclaiming": memory.reclaiming,
    "meter": meter.beside_gate,
}
ON_THEIR_OWN: dict[str, Callable[[Scale], list[report.Result]]] = {
    "tail": memory.endless_tail,
    "worst": extremes.worst_case,
    "stalls": extremes.stalls,
    "text": text.runs,
    "serve": serve.runs,
    "pseudonyms": pseudonyms.runs,
    "state": state.runs,
    "estimator": privacy.estimator,
    "audit": privacy.audit,
    "hold": hold.runs,
}


def measure(scale: Scale, sections: Sequence[str]) -> list[report.Result]:
    """Run the sections, stream by stream, with a line of progress for each."""
    results: list[report.Result] = []

    def add(section: str, case: str, measured: Callable[[], list[report.Result]]) -> None:
        start = perf_counter()
        found = measured()
        seconds = perf_counter() - start
        if found:
            print(f"{seconds:6.1f} s  {section:10}  {case}", file=sys.stderr, flush=True)
        results.extend(found)

    on_grid = [section for section in ON_GRID if section in sections]
    for stream in grid(scale) if on_grid else ():
        for section in on_grid:
            add(section, stream.case, partial(ON_GRID[section], stream, scale))
    for section in ON_THEIR_OWN:
        if section in sections:
            add(section, "", partial(ON_THEIR_OWN[section], scale))
    return results


def main() -> int:
    """Measure, print the table, keep the run."""
    sections = [*ON_GRID, *ON_THEIR_OWN]
    parser = argparse.ArgumentParser(
        prog="run.py", description="Measure the gate and `zveil run` side by side with its peers."
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that everything works"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=sections,
        metavar="SECTION",
        default=sections,
        help=f"only these sections: {', '.join(sections)}",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where the JSON goes (a whole run: benchmarks/runs/<date>-<processor>.json)",
    )
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL

    start = perf_counter()
    try:
        results = measure(scale, options.only)
    except peers.DisagreementError as error:
        print(f"run.py: {error}; nothing was kept", file=sys.stderr)
        return 1
    seconds = perf_counter() - start

    machine = report.machine()
    print(f"{machine['cpu']}, {machine['cores']} cores; {seconds:.0f} s\n")
    print(report.table(results, judged=scale.judged))
    print(report.summary(results, judged=scale.judged))
    # A partial or quick run does not belong among the kept ones.
    whole = not options.quick and set(options.only) == set(sections)
    if whole or options.out:
        path = report.keep(report.document(results, scale, seconds=seconds), options.out)
        print(f"Kept: {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
