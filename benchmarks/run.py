"""Measure the gate, `zveil run` and figures about privacy side by side with peers, in one run.

usage: python benchmarks/run.py [--quick] [--only SECTION ...] [--out FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

import extremes
import hold
import memory
import meter
import privacy
import pseudonyms
import report
import running
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
    """Measure what was asked for."""
    sections = [*ON_GRID, *ON_THEIR_OWN]
    parser = running.parser(
        "Measure the gate and `zveil run` side by side with its peers.", "benchmarks/runs"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=sections,
        metavar="SECTION",
        default=sections,
        help=f"only these sections: {', '.join(sections)}",
    )
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    return running.run(
        partial(measure, scale, options.only),
        scale,
        out=options.out,
        # A partial or quick run does not belong among the kept ones.
        is_whole=not options.quick and set(options.only) == set(sections),
        folder=report.RUNS,
    )


if __name__ == "__main__":
    sys.exit(main())
