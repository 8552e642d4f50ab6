"""Coarser labels in plain Python, worked out anew: what the native ladders are held against."""

import csv
import ipaddress
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from publicsuffixlist import PublicSuffixList

Labels = list[str | None]
Climb = Callable[[str], Labels]

_LIST = PublicSuffixList()
_FORMS = {"minute": "%Y-%m-%dT%H:%M", "hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "month": "%Y-%m",
          "year": "%Y"}  # fmt: skip


def domain(host: str) -> Labels:
    name = host.lower().removesuffix(".")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        pass
    else:
        return [None]
    return [_LIST.privatesuffix(name)]


def table(path: Path) -> Climb:
    rows = [
        [cell.strip() or None for cell in row]
        for row in csv.reader(path.read_text().splitlines())
        if row
    ]
    width = max(map(len, rows)) - 1
    known = {row[0]: [*row[1:], *[None] * (width - len(row) + 1)] for row in rows}
    return lambda value: known.get(value, [None] * width)


def segments(separator: str, levels: int) -> Climb:
    def climb(path: str) -> Labels:
        root = separator if path.startswith(separator) else ""
        parts = [part for part in path.split(separator) if part]
        if not parts:
            return [root or None] * levels
        return [root + separator.join(parts[:level]) for level in range(levels, 0, -1)]

    return climb


def bins(*widths: str) -> Climb:
    def climb(value: str) -> Labels:
        labels: Labels = []
        for width in map(Decimal, widths):
            number = (Decimal(value) / width).to_integral_value("ROUND_FLOOR") * width
            labels.append(f"[{_plain(number)},{_plain(number + width)})")
        return labels

    return climb


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}" if number else "0"


def dates(*parts: str) -> Climb:
    def climb(value: str) -> Labels:
        moment = datetime.fromisoformat(value)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        return [moment.strftime(_FORMS[part]) for part in parts]

    return climb


def prefixes(v4: Sequence[int], v6: Sequence[int]) -> Climb:
    def climb(value: str) -> Labels:
        address: Any = ipaddress.ip_address(value)
        address = getattr(address, "ipv4_mapped", None) or address
        widths = v4 if address.version == 4 else v6
        return [str(ipaddress.ip_network((address, bits), strict=False)) for bits in widths]

    return climb


def chain(*steps: Climb) -> Climb:
    """Let each step go on from the last label of the one before."""

    def climb(value: str) -> Labels:
        labels: Labels = []
        last: str | None = value
        for step in steps:
            made = step(last) if last is not None else [None] * len(step("x"))
            labels += made
            last = made[-1]
        return labels

    return climb
