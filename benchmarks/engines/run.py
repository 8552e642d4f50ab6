"""Measure the engines side by side with peers, in one run.

usage: python benchmarks/engines/run.py [--quick] [--out FILE]
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).resolve().parent
# The report is that of the other benchmark, the broker that of the tests.
sys.path[1:1] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "engines")]

import jars  # noqa: E402
import kafka  # noqa: E402
import report  # noqa: E402
import spark  # noqa: E402
from messages import FULL, QUICK  # noqa: E402
from peers import DisagreementError  # noqa: E402


def main() -> int:
    """Measure, print the table, keep the run."""
    parser = argparse.ArgumentParser(prog="run.py", description="Measure the engines.")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that everything works"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where the JSON goes (a whole run: benchmarks/engines/runs/<date>-<processor>.json)",
    )
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL

    start = perf_counter()
    try:
        results = [*kafka.runs(scale), *spark.runs(scale)]
    except (jars.MissingError, FileNotFoundError) as error:
        print(f"bench-engines: {error}", file=sys.stderr)
        return 1
    except DisagreementError as error:
        print(f"run.py: {error}; nothing was kept", file=sys.stderr)
        return 1
    seconds = perf_counter() - start

    machine = report.machine()
    print(f"{machine['cpu']}, {machine['cores']} cores; {seconds:.0f} s\n")
    print(report.table(results, judged=scale.judged))
    print(report.summary(results, judged=scale.judged))
    if not options.quick or options.out:
        content = report.document(results, scale, seconds=seconds)
        content["versions"] |= {"kafka": broker_version(), "pyspark": spark.version()}
        path = report.keep(content, options.out, folder=HERE / "runs")
        print(f"Kept: {path.name}")
    return 0


def broker_version() -> str:
    """Give the version of the broker, as its jars were asked for."""
    asked = re.search(r"kafka_2.13</artifactId>\s*<version>([^<]+)", jars.POM.read_text())
    return asked[1] if asked else "unknown"


if __name__ == "__main__":
    sys.exit(main())
