"""What a run found: ratios beside the wanted ones, figures, a table to read, a file to keep."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RUNS = Path(__file__).parent / "runs"
PACKAGES = ("zveil", "numpy", "pyarrow", "zanon", "orjson", "confluent-kafka")


@dataclass(frozen=True)
class Wanted:
    """A bound on a ratio, or only the way the ratio is read where nothing is asked of it."""

    bound: float | None
    upper: bool

    def __str__(self) -> str:
        return "" if self.bound is None else f"{'<=' if self.upper else '>='} {self.bound:g}"

    def met_by(self, ratio: float) -> bool | None:
        """Tell whether a ratio keeps the bound; None if there is none."""
        if self.bound is None:
            return None
        return ratio <= self.bound if self.upper else ratio >= self.bound


def at_least(bound: float | None) -> Wanted:
    """Ask for a lower bound on peer / gate: how many times as fast the gate is."""
    return Wanted(bound, upper=False)


def at_most(bound: float | None) -> Wanted:
    """Ask for an upper bound on gate / peer: how many times as much the gate takes."""
    return Wanted(bound, upper=True)


@dataclass(frozen=True)
class Ratio:
    """The gate beside something else on the same stream."""

    what: str
    case: str
    beside: str
    gate: float
    other: float
    wanted: Wanted
    unit: str = "ns"

    @property
    def ratio(self) -> float:
        """Read the pair the way the bound is put."""
        return self.gate / self.other if self.wanted.upper else self.other / self.gate


@dataclass(frozen=True)
class Figures:
    """Measured values that nothing is asked of, by name; a note where there are none."""

    what: str
    case: str
    values: Mapping[str, float]
    unit: str = ""
    note: str = ""


Result = Ratio | Figures


def table(results: Sequence[Result], *, judged: bool) -> str:
    """Lay the results out for a person: first what is asked for, then what is only shown."""
    ratios = [result for result in results if isinstance(result, Ratio)]
    rows = [("what", "case", "beside", "gate", "other", "ratio", "wanted", "")]
    rows += [
        (
            ratio.what,
            ratio.case,
            ratio.beside,
            quantity(ratio.gate, ratio.unit),
            quantity(ratio.other, ratio.unit),
            f"{ratio.ratio:.2f} x",
            str(ratio.wanted),
            verdict(ratio, judged=judged),
        )
        for ratio in sorted(ratios, key=lambda ratio: _order(ratios, ratio))
    ]
    figures = [result for result in results if isinstance(result, Figures)]
    shown = [
        (line.what, line.case, line.note or _values(line))
        for line in sorted(figures, key=lambda line: _order(figures, line))
    ]
    return f"{_aligned(rows)}\n\nShown, with nothing asked of them:\n\n{_aligned(shown)}\n"


def summary(results: Sequence[Result], *, judged: bool) -> str:
    """Say in one line how many of the wanted ratios were met."""
    if not judged:
        return "A quick run: it shows that everything works; its ratios are not judged."
    verdicts = [r.wanted.met_by(r.ratio) for r in results if isinstance(r, Ratio)]
    asked = [met for met in verdicts if met is not None]
    return f"{sum(asked)} of {len(asked)} wanted ratios met."


def verdict(ratio: Ratio, *, judged: bool) -> str:
    """Say "met" or "MISSED", or nothing where nothing is asked."""
    met = ratio.wanted.met_by(ratio.ratio) if judged else None
    return "" if met is None else "met" if met else "MISSED"


def quantity(value: float, unit: str) -> str:
    """Write a measured value with its unit, in digits a reader can compare."""
    if not unit and value == int(value):
        return f"{int(value)}"
    for step, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit == "B" and value >= step:
            return f"{value / step:.1f} {prefix}B"
    return f"{value:.3g} {unit}" if value < 1e3 else f"{value:.0f} {unit}"


def document(results: Iterable[Result], scale: Any, *, seconds: float) -> dict[str, Any]:
    """Put the run into one JSON document: no host, user or path in it.

    The scale is a dataclass that says, as `judged`, whether the ratios mean anything.
    """
    ratios, figures = [], []
    for result in results:
        if isinstance(result, Ratio):
            met = result.wanted.met_by(result.ratio) if scale.judged else None
            ratios.append({**asdict(result), "ratio": result.ratio, "met": met})
        else:
            figures.append(asdict(result))
    return {
        "date": datetime.date.today().isoformat(),
        "seconds": round(seconds, 1),
        "machine": machine(),
        "versions": versions(),
        "scale": asdict(scale),
        "ratios": ratios,
        "figures": figures,
    }


def keep(content: dict[str, Any], path: Path | None, folder: Path = RUNS) -> Path:
    """Write the document to the path, or among the kept runs by date and processor."""
    if path is None:
        slug = re.sub(r"[^a-z0-9]+", "-", content["machine"]["cpu"].lower()).strip("-")
        path = folder / f"{content['date']}-{slug}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_finite(content), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _finite(value: Any) -> Any:
    """Put null for what is no number, or has no end: JSON knows neither."""
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def machine() -> dict[str, Any]:
    """Describe the machine as far as the figures depend on it, and no further."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
    }


def cpu_model() -> str:
    """Give the processor's name as the system has it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Give the versions of what took part; what is not installed is left out."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _order(results: Sequence[Result], result: Result) -> int:
    """Keep the order of measuring, but bring what belongs together side by side."""
    key = (result.what, getattr(result, "beside", ""))
    return [(other.what, getattr(other, "beside", "")) for other in results].index(key)


def _values(line: Figures) -> str:
    return ", ".join(f"{name}: {quantity(value, line.unit)}" for name, value in line.values.items())


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
