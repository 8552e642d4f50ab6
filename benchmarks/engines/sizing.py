"""What streams of any size take, on paper: from the figures of a kept run of this benchmark.

usage: python benchmarks/engines/sizing.py [RUN]

Prints the tables of docs/scaling.md.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUNS = Path(__file__).resolve().parent / "runs"
RATES = tuple(10**power for power in range(4, 9))
BYTES = 100
"""Of a record, as measured."""
SHARE = 0.5
"""Of what was measured is planned with: the rest is for peaks, and for catching up."""
DAY_S = 86_400


@dataclass(frozen=True)
class Measured:
    """Nanoseconds of a core for each record, everything that runs taken together."""

    native: float
    worker: float
    broker: float
    flink: float
    native_parquet: float
    spark: float

    @classmethod
    def of(cls, run: Path) -> Measured:
        """Take the figures from a kept run."""
        ratios = json.loads(run.read_text(encoding="utf-8"))["ratios"]
        worker = _found(ratios, "Kafka, workers, cores to keep up", "exactly-once")
        with_broker = _found(ratios, "Kafka, with the broker, cores to keep up", "exactly-once")
        flink = _found(ratios, "Flink, cores to keep up", "")
        spark = _found(ratios, "Spark, cores to keep up", "")
        return cls(
            native=flink["other"],
            worker=worker["gate"],
            broker=with_broker["gate"] - worker["gate"],
            flink=flink["gate"],
            native_parquet=spark["other"],
            spark=spark["gate"],
        )


def newest() -> Path:
    """Give the kept run that counts."""
    return max(RUNS.glob("*.json"))


def _found(ratios: list[dict[str, Any]], what: str, case: str) -> dict[str, Any]:
    (one,) = (each for each in ratios if each["what"] == what and each["case"].startswith(case))
    return one


def cost(measured: Measured) -> Iterator[str]:
    """Give the lines of the table of what each way costs."""
    one = "`zveil run`, NDJSON"
    yield from _heading("", "records a second of a core", "cores to beat one process", ":--")
    rows = (
        (f"{one} from file to file", measured.native, None),
        ("`zveil kafka`, the workers", measured.worker, measured.native),
        ("`zveil kafka`, workers and broker", measured.worker + measured.broker, measured.native),
        ("`zveil flink`", measured.flink, measured.native),
        ("`zveil run`, Parquet from file to file", measured.native_parquet, None),
        ("`zveil.engines.spark`", measured.spark, measured.native_parquet),
    )
    for name, ns, beside in rows:
        rate = f"{_rounded(1e9 / ns):,}"
        yield _line(name, rate, "" if beside is None else str(math.floor(ns / beside) + 1))


def sizes(measured: Measured) -> Iterator[str]:
    """Give the lines of the table of what streams of any size take."""
    yield from _heading(
        "events a second", "in, and as much out", "one process", "Kafka: cores of workers",
        "Kafka: cores of brokers", "Flink: cores", "Spark: core hours for a day of it", "--:",
    )  # fmt: skip
    for rate in RATES:
        columns = [_short(rate), f"{_short(rate * BYTES)}B/s"]
        columns.append("enough" if _cores(rate, measured.native) <= 1 else "too little")
        engines = (measured.worker, measured.broker, measured.flink)
        columns += [f"{_cores(rate, ns):,}" for ns in engines]
        hours = rate * DAY_S * measured.spark / 1e9 / 3600
        columns.append(f"{math.ceil(hours):,}")
        yield _line(*columns)


def _cores(rate: float, ns: float) -> int:
    return math.ceil(rate * ns / 1e9 / SHARE)


def _heading(*words: str) -> Iterator[str]:
    *names, side = words
    yield _line(*names)
    yield _line(*([side] * len(names))).replace(" ", "")


def _line(*columns: str) -> str:
    return f"| {' | '.join(columns)} |"


def _rounded(number: float) -> int:
    """Keep two digits: the machine does not give more."""
    digits = math.floor(math.log10(number)) - 1
    return round(number / 10**digits) * 10**digits


def _short(number: int) -> str:
    for power, letter in ((9, " G"), (6, " M"), (3, " k")):
        if number >= 10**power:
            return f"{number // 10**power}{letter}"
    return str(number)


def main(words: Sequence[str]) -> None:
    """Print both tables."""
    measured = Measured.of(Path(words[0]) if words else newest())
    print(*cost(measured), "", *sizes(measured), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
