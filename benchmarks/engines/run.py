"""Measure the engines side by side with peers, in one run.

usage: python benchmarks/engines/run.py [--quick] [--only ENGINE ...] [--out FILE]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The report is that of the other benchmark, the broker that of the tests.
sys.path[1:1] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "engines")]

import flink  # noqa: E402
import jars  # noqa: E402
import kafka  # noqa: E402
import running  # noqa: E402
import spark  # noqa: E402
from messages import FULL, QUICK, Scale  # noqa: E402
from report import Result  # noqa: E402

ENGINES: dict[str, Callable[[Scale], list[Result]]] = {
    "kafka": kafka.runs,
    "spark": spark.runs,
    "flink": flink.runs,
}


def runs(scale: Scale, names: Sequence[str]) -> list[Result]:
    """Measure one engine behind the other."""
    return [result for name in names for result in ENGINES[name](scale)]


def main() -> int:
    """Measure what was asked for."""
    parser = running.parser("Measure the engines.", "benchmarks/engines/runs")
    parser.add_argument(
        "--only", nargs="+", default=list(ENGINES), choices=list(ENGINES), metavar="ENGINE",
        help=f"only these engines: {', '.join(ENGINES)}",
    )  # fmt: skip
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    try:
        return running.run(
            partial(runs, scale, options.only),
            scale,
            out=options.out,
            is_whole=not options.quick and set(options.only) == set(ENGINES),
            folder=HERE / "runs",
            versions=partial(versions, options.only),
        )
    except (jars.MissingError, FileNotFoundError) as error:
        print(f"bench-engines: {error}", file=sys.stderr)
        return 1


def versions(names: Sequence[str]) -> dict[str, str]:
    """Give the versions of engines that this environment does not have itself."""
    asked = {"kafka": ("kafka", broker_version), "spark": ("pyspark", spark.version)}
    return {asked[name][0]: asked[name][1]() for name in names if name in asked}


def broker_version() -> str:
    """Give the version of the broker, as its jars were asked for."""
    asked = re.search(r"kafka_2.13</artifactId>\s*<version>([^<]+)", jars.POM.read_text())
    return asked[1] if asked else "unknown"


if __name__ == "__main__":
    sys.exit(main())
