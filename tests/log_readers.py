"""Plain readers of logs, to hold the native ones against."""

import re
from calendar import timegm
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from ipaddress import ip_address
from typing import NamedTuple

from logs import MONTHS, NANO

from zveil._native import parse_time


@dataclass
class Found:
    """What a log holds: time in nanoseconds, user and value of each record."""

    records: list[tuple[int, str | None, str | None]] = field(default_factory=list)
    passed: int = 0
    bad: int = 0


class BadError(Exception):
    """A line that is not as the program writes it."""


def unescaped(raw: str, *, letters: bool = False) -> str:
    """Undo escapes; where no text comes of it, leave it as it is."""
    known = {"n": 10, "r": 13, "t": 9, "b": 8, "v": 11, "f": 12, '"': 34} if letters else {}

    def byte(found: re.Match[bytes]) -> bytes:
        text = found[0].decode()
        if len(text) == 4:
            return bytes([int(text[2:], 16)])
        return bytes([known.get(text[1], 92)]) if text[1] in known or text[1] == "\\" else found[0]

    made = re.sub(rb'\\x[0-9a-fA-F]{2}|\\["\\nrtbvf]', byte, raw.encode())
    try:
        text = made.decode()
    except UnicodeDecodeError:
        return raw
    return raw if "\0" in text else text


def number(text: str, unit: int) -> int:
    """Read a time that is a number; digits past a nanosecond are cut off towards the past."""
    if not re.fullmatch(r"[-+]?\d+(\.\d+)?([eE][-+]?\d{1,9})?", text, re.ASCII):
        raise BadError
    exact = Decimal(text) * unit
    if not -(2**63) < exact < 2**63:
        raise BadError
    return int(exact.to_integral_value(ROUND_FLOOR, Context(prec=60)))


def lines_of(text: bytes) -> Iterator[str | None]:
    """Give the lines that are not empty; None for one that is no text."""
    for line in text.split(b"\n"):
        if not line.strip(b" \t\n\x0c\r"):
            continue
        try:
            decoded = line.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            yield None
            continue
        yield None if "\0" in decoded else decoded


def read_zeek(text: bytes, names: tuple[str, str, str]) -> Found:
    found, fields = Found(), []
    separator, none = "\t", {"", "-", "(empty)"}
    for line in lines_of(text):
        if line is not None and line.startswith("#"):
            if line.startswith("#separator "):
                separator = unescaped(line.removeprefix("#separator "))
            name, _, rest = line.partition(separator)
            if name == "#fields":
                fields = rest.split(separator)
            continue
        cells = [] if line is None else line.split(separator)
        try:
            if len(cells) != len(fields):
                raise BadError
            row = dict(zip(fields, cells, strict=True))
            user, value = (
                None if row[name] in none else unescaped(row[name]) for name in names[1:]
            )
            raw = row[names[0]]
            found.records.append(
                (NONE if raw in none else number(unescaped(raw), NANO), user, value)
            )
        except BadError:
            found.bad += 1
    return found


NONE = -(2**63)
"""No time."""


def read_tstat_tcp(text: bytes, names: tuple[str, str, str]) -> Found:
    found, fields = Found(), []
    for line in lines_of(text):
        if line is not None and line.startswith("#"):
            header = line.rpartition("#")[2]
            fields = [name.partition(":")[0] for name in header.rstrip().split(" ")]
            continue
        cells = [] if line is None else line.rstrip(" \t\n\x0c\r").split(" ")
        if len(cells) != len(fields):
            found.bad += 1
            continue
        time, user, value = (cells[fields.index(name)] for name in names)
        keep = [None if text in ("", "-") else text for text in (user, value)]
        try:
            nanos = NONE if time in ("", "-") else number(time, 10**6)
            found.records.append((nanos, keep[0], keep[1]))
        except BadError:
            found.bad += 1
    return found


def read_tstat_http(text: bytes, _: tuple[str, str, str]) -> Found:
    found = Found()
    for line in lines_of(text):
        cells = [] if line is None else line.split("\t")
        is_other = len(cells) > 5 and cells[5] in ("HTTP", "RES2", "REQ2")
        if is_other or (line is not None and line.startswith("#")):
            found.passed += 1
        elif not 10 <= len(cells) <= 13:
            found.bad += 1
        else:
            keep = [None if text in ("", "-") else text for text in (cells[0], cells[6])]
            try:
                time = NONE if cells[4] in ("", "-") else number(cells[4], NANO)
                found.records.append((time, keep[0], keep[1]))
            except BadError:
                found.bad += 1
    return found


WEB = re.compile(
    r'([^ ]*) (?!\[)[^ ]* ((?:(?! \[).)*) \[([^\]]*)\] "((?:[^"\\]|\\.)*)" (\d+|-) (\d+|-)'
    r'(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"(?: .*)?)?',
    re.DOTALL | re.ASCII,
)


def web_time(text: str) -> int:
    parts = re.fullmatch(
        r"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d) ([-+])(\d\d)(\d\d)", text, re.ASCII
    )
    if not parts or parts[2] not in MONTHS:
        raise BadError
    day, year, hour, minute, second = (int(parts[n]) for n in (1, 3, 4, 5, 6))
    ahead, past = int(parts[8]), int(parts[9])
    if second > 60 or ahead > 23 or past > 59:
        raise BadError
    try:
        at = datetime(
            year, MONTHS.index(parts[2]) + 1, day, hour, minute, min(second, 59), tzinfo=UTC
        )
    except ValueError:
        raise BadError from None
    zone = timedelta(hours=ahead, minutes=past) * (1 if parts[7] == "+" else -1)
    return ranged((timegm(at.timetuple()) - int(zone.total_seconds())) * NANO)


def ranged(nanos: int) -> int:
    if not -(2**63) < nanos < 2**63:
        raise BadError
    return nanos


def read_combined(text: bytes, _: tuple[str, str, str]) -> Found:
    found = Found()
    for line in lines_of(text):
        parts = None if line is None else WEB.fullmatch(line)
        try:
            if parts is None:
                raise BadError
            time = web_time(parts[3])
            request = re.fullmatch(
                r"[A-Z]+ (?:(.+) HTTP/[^ ]*|([^ ]+))", parts[4], re.DOTALL | re.ASCII
            )
            path = None
            if request:
                path = re.split("[?#]", request[1] or request[2], maxsplit=1)[0]
            found.records.append((
                time,
                None if parts[1] in ("", "-") else unescaped(parts[1], letters=True),
                None if path in (None, "", "-") else unescaped(path or "", letters=True),
            ))  # fmt: skip
        except BadError:
            found.bad += 1
    return found


LEAD = re.compile(
    rf"(?:(?P<iso>\d[^ ]*)|(?P<undated>(?:{'|'.join(MONTHS)}) .. ..:..:..)) (?P<rest>.*)",
    re.DOTALL | re.ASCII,
)


def led(line: str) -> "Lead | None":
    """Take the time off; places in it are counted in bytes."""
    parts = LEAD.fullmatch(line.encode().decode("latin-1"))
    if parts is None:
        return None
    return Lead(parts["iso"], parts["undated"], parts["rest"].encode("latin-1").decode())


class Lead(NamedTuple):
    iso: str | None
    undated: str
    rest: str


@dataclass
class Calendar:
    """Finds the year of times without one, the first being of 2024."""

    before: int | None = None

    def read(self, lead: Lead) -> int:
        if lead.iso is not None:
            return self.exact(lead.iso)
        shape = re.fullmatch(r"(\w{3}) ([ \d]\d) (\d\d):(\d\d):(\d\d)", lead.undated, re.ASCII)
        if not shape or int(shape[3]) > 23 or int(shape[4]) > 59 or int(shape[5]) > 60:
            raise BadError
        year = 2024 if self.before is None else datetime.fromtimestamp(self.before, UTC).year
        near = [year] if self.before is None else [year - 1, year, year + 1]
        times = []
        for each in near:
            try:
                at = datetime(each, MONTHS.index(shape[1]) + 1, int(shape[2]), int(shape[3]),
                              int(shape[4]), min(int(shape[5]), 59), tzinfo=UTC)  # fmt: skip
                times.append(timegm(at.timetuple()))
            except ValueError:
                continue
        before = self.before
        if before is not None:
            times = [t for t in times if abs(t - before) <= 183 * 86_400]
            times.sort(key=lambda t: abs(t - before))
        if not times:
            raise BadError
        self.before = times[0]
        return times[0] * NANO

    def exact(self, text: str) -> int:
        try:
            nanos = parse_time(text.encode(), "iso")
        except ValueError:
            raise BadError from None
        return self.seen(nanos)

    def seen(self, nanos: int) -> int:
        self.before = nanos // NANO
        return nanos


def is_address(text: str) -> bool:
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return text.isascii()


def message(rest: str, program: str) -> str | None:
    """Give what stands behind the program's name, perhaps with a host before it."""
    tag = re.compile(rf"{program}(\[[^ ]*\])?:?")
    words = rest.split(" ", 2)
    if len(words) > 1 and tag.fullmatch(words[0]):
        return rest.split(" ", 1)[1]
    return words[2] if len(words) > 2 and tag.fullmatch(words[1]) else None


def read_dnsmasq(text: bytes, _: tuple[str, str, str]) -> Found:
    found, calendar = Found(), Calendar()
    for line in lines_of(text):
        lead = None if line is None else led(line)
        if lead is None:
            found.bad += 1
            continue
        words = message(lead.rest, "dnsmasq")
        if words is not None:
            words = re.sub(r"^\d* [^ ]*/[^ ]* ", "", words, count=1, flags=re.ASCII)
        if words is None or not words.startswith("query["):
            found.passed += 1
            continue
        try:
            words = words.rstrip(" \t\n\x0c\r")
            query = re.fullmatch(r"query\[[^\]]*\] (.*) from ([^ ]*)", words, re.DOTALL | re.ASCII)
            if not query or not is_address(query[2]):
                raise BadError
            name = query[1] if query[1] == "." else query[1].removesuffix(".")
            value = None if name in ("", "-") or " " in name else name
            found.records.append((calendar.read(lead), query[2], value))
        except BadError:
            found.bad += 1
    return found


def read_unbound(text: bytes, _: tuple[str, str, str]) -> Found:
    found, calendar = Found(), Calendar()
    for line in lines_of(text):
        epoch = None if line is None else re.fullmatch(r"\[([^\]]*)\] (.*)", line, re.DOTALL)
        lead = None if line is None else led(line)
        if epoch is None and lead is None:
            found.bad += 1
            continue
        words = message(epoch[2] if epoch else lead.rest if lead else "", "unbound")
        info = re.match(
            r"(?:(?!info: )[^ ])*(?: (?:(?!info: )[^ ])*)?info: (?:query: )?", words or ""
        )
        parts = (
            []
            if info is None or words is None
            else words[info.end() :].rstrip(" \t\n\x0c\r").split(" ")
        )
        if len(parts) != 4 or parts[3] not in ("IN", "CH", "HS", "ANY") or not is_address(parts[0]):
            found.passed += 1
            continue
        name = parts[1] if parts[1] == "." else parts[1].removesuffix(".")
        try:
            if epoch:
                time = calendar.seen(number(epoch[1], NANO))
            elif lead:
                time = calendar.read(lead)
            found.records.append((time, parts[0], None if name in ("", "-") else name))
        except BadError:
            found.bad += 1
    return found


READERS: dict[str, Callable[[bytes, tuple[str, str, str]], Found]] = {
    "zeek-ssl": read_zeek,
    "zeek-dns": read_zeek,
    "zeek-http": read_zeek,
    "zeek-conn": read_zeek,
    "tstat-tcp": read_tstat_tcp,
    "tstat-http": read_tstat_http,
    "combined": read_combined,
    "dnsmasq": read_dnsmasq,
    "unbound": read_unbound,
}
