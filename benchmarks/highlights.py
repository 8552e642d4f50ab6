"""What the kept runs come to, in a few lines: one for each kind of peer.

usage: python benchmarks/highlights.py

Prints the table of the README, from the newest kept runs of this benchmark and the engines'.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Row:
    """A line of the table: what is measured beside what, in all cases that there are."""

    subject: str
    peer: str
    what: str
    beside: str
    case: str = ""
    is_faster: bool = True

    def line(self, ratios: list[dict[str, Any]]) -> str:
        """Give the line, from the ratios of a run."""
        found = [
            each["other"] / each["gate"] if self.is_faster else each["gate"] / each["other"]
            for each in ratios
            if (each["what"], each["beside"]) == (self.what, self.beside)
            and each["case"].startswith(self.case)
        ]
        words = f"{_span(found)} times " + ("as fast" if self.is_faster else "its time")
        return f"| {self.subject} | {self.peer} | {words} |"


NATIVE = (
    Row("an observation of a batch", "the paper's algorithm in plain Rust",
        "integer batch", "algorithm 1 in Rust"),
    Row("", "the authors' own program", "integer batch", "zanon"),
    Row("", "the reference in plain Python", "integer batch", "the reference"),
    Row("", "one hash and one counter, the least there is to do",
        "integer batch", "the limit", is_faster=False),
    Row("one call of `observe()`", "the reference in plain Python",
        "observe() on strings", "the reference"),
    Row("`zveil run`, NDJSON in a pipe", "the same in Python",
        "NDJSON through pipes", "the same in Python, first 1.2e6"),
    Row("", "`cat \\| cat`, which does nothing",
        "NDJSON through pipes", "cat | cat", is_faster=False),
)  # fmt: skip
ENGINES = (
    Row("`zveil kafka --throughput`, exactly once", "the same in Python",
        "Kafka, one worker", "the same in Python", case="exactly-once, throughput"),
    Row("`zveil flink`", "Flink's operators in Python",
        "Flink, one core", "PyFlink's own operator"),
)  # fmt: skip


def table() -> Iterator[str]:
    """Give the lines of the table."""
    yield "| | beside | |"
    yield "|:--|:--|:--|"
    for folder, rows in ((HERE / "runs", NATIVE), (HERE / "engines" / "runs", ENGINES)):
        run = json.loads(max(folder.glob("*.json")).read_text(encoding="utf-8"))
        for row in rows:
            yield row.line(run["ratios"])


def _span(ratios: list[float]) -> str:
    """Give the least and the most, in as many digits as the machine gives."""
    ends = [_rounded(min(ratios)), _rounded(max(ratios))]
    return " to ".join(dict.fromkeys(ends))


def _rounded(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):.0f}"


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in table()))
