"""What a benchmark does before and after it has measured: its options, its table, the kept run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import report
from peers import DisagreementError


def parser(description: str, kept: str) -> argparse.ArgumentParser:
    """Make the options that every benchmark has."""
    made = argparse.ArgumentParser(prog="run.py", description=description)
    made.add_argument(
        "--quick", action="store_true", help="small sizes, to see that everything works"
    )
    made.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"where the JSON goes (a whole run: {kept}/<date>-<processor>.json)",
    )
    return made


def run(
    measure: Callable[[], list[report.Result]],
    scale: Any,
    *,
    out: Path | None,
    is_whole: bool,
    folder: Path,
    versions: Callable[[], dict[str, str]] = dict,
) -> int:
    """Measure, print the table, keep the run; gives the exit code.

    Parameters
    ----------
    measure
        Gives the results.
    scale
        How much is measured.
    out
        Where the run is kept, if someone said so.
    is_whole
        Whether it belongs among the kept ones otherwise.
    folder
        Where those are.
    versions
        What else has one, by name.
    """
    start = perf_counter()
    try:
        results = measure()
    except DisagreementError as error:
        print(f"run.py: {error}; nothing was kept", file=sys.stderr)
        return 1
    seconds = perf_counter() - start
    machine = report.machine()
    print(f"{machine['cpu']}, {machine['cores']} cores; {seconds:.0f} s\n")
    print(report.table(results, judged=scale.judged))
    print(report.summary(results, judged=scale.judged))
    if is_whole or out:
        content = report.document(results, scale, seconds=seconds)
        content["versions"].update(versions())
        print(f"Kept: {report.keep(content, out, folder=folder).name}")
    return 0
