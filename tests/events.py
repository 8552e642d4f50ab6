"""Random events as lines of text, spelled in any way, and what the definition says of them.

Few users, few values and a short window, as in `streams`, so that every decision is close.
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from zveil._native import Keyring
from zveil.act import TextAct
from zveil.io import Format
from zveil.policy import Policy
from zveil.reference import Reference, user_text

KEY = bytes(range(32))
START = 1_700_000_000
NANO = 10**9

# One person under several spellings; people that only look alike.
USERS = [7, "7", 7.0, "7", 8, "8", "u", "v", "ü", "07", "u v", 2**70, str(2**70), None]
# Values alike but for their type, and text that every format must quote or escape.
VALUES = [*"aaaaaa", *"bbb", 1, "1", True, "true", 1.0, 1.5, "1.0", None, "null", 2**64, 2**70]
VALUES += ["", 'q"q', "c,d", "t\tt", "l\nl", "r\r\nr", "\\", "é€😀", " s ", "/", "\u2028"]
TEXTS = [value for value in VALUES if value is None or type(value) is str]

AHEAD = [0, 0, 0, 0, 1, 1, 2, 3, 9]
BEHIND = [0, 0, 0, 0, 0, 0, 1, 1, 2, 5, 12]


@dataclass(frozen=True)
class Event:
    t: int
    """Seconds."""
    user: Any
    values: tuple[Any, ...]
    note: Any = None


@dataclass(frozen=True)
class Story:
    """A stream, and what is said about it."""

    z: int
    window: int
    lateness: int | None
    attributes: tuple[str, ...]
    events: list[Event] = field(default_factory=list)

    def policy(self, **options: Any) -> Policy:
        return Policy.of(
            **{"time": "ts", "user": "uid", "attributes": self.attributes, "z": self.z,
               "window": self.window, "lateness": self.lateness} | options
        )  # fmt: skip


def story(random: Random, length: int, *, values: Sequence[Any] = VALUES) -> Story:
    """Make up a stream that goes on, stands still and falls behind."""
    count = random.choice([1, 1, 2, 3])
    now, events = START, []
    for _ in range(length):
        now += random.choice(AHEAD)
        shown = tuple(random.choice(values) for _ in range(count))
        t = now - random.choice(BEHIND)
        events.append(Event(t, random.choice(USERS), shown, random.choice(values)))
    return Story(
        z=random.choice([1, 2, 2, 3, 4]),
        window=random.choice([0, 1, 3, 8, 30]),
        lateness=random.choice([None, None, 0, 2, 100]),
        attributes=("host", "ref", "agent")[:count],
        events=events,
    )


def decided(told: Story) -> list[list[bool]]:
    """Ask the definition: for each event, which of its attributes are released."""
    gates = [Reference(told.z, told.window, lateness=told.lateness) for _ in told.attributes]
    return [
        [gate.observe(event.t, event.user, value)
         for gate, value in zip(gates, event.values, strict=True)]
        for event in told.events
    ]  # fmt: skip


def wanted(told: Story, *, blank: bool = False) -> list[tuple[Event, dict[str, Any]]]:
    """Give the events that leave, each with its attributes as they leave."""
    return [
        (event, {name: value if out else None
                 for name, value, out in zip(told.attributes, event.values, released, strict=True)})
        for event, released in zip(told.events, decided(told), strict=True)
        if blank or any(released)
    ]  # fmt: skip


def spelled(random: Random, value: Any) -> str:
    """Write JSON in one of the ways there are: escapes, spaces, exponents."""
    if isinstance(value, str):
        return '"' + "".join(_letter(random, letter) for letter in value) + '"'
    if isinstance(value, dict):
        space = random.choice(["", "", " ", "\t "])
        members = [f"{spelled(random, k)}{space}:{space}{spelled(random, v)}"
                   for k, v in value.items()]  # fmt: skip
        return "{" + space + f"{space},{space}".join(members) + space + "}"
    if type(value) is float:
        return random.choice([repr(value), f"{value:.3f}", f"{value:e}"])
    return json.dumps(value)


def _letter(random: Random, letter: str) -> str:
    if random.random() < 0.9:
        return json.dumps(letter, ensure_ascii=random.random() < 0.3)[1:-1]
    units = letter.encode("utf-16-be")
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    return "".join(f"\\u{random.choice([pair, pair.upper()])}" for pair in pairs)


def ndjson(random: Random, told: Story) -> list[bytes]:
    """Write each event as a line of JSON: keys in any order, other members among them."""
    lines = []
    for event in told.events:
        members = {"ts": event.t, "uid": event.user, "note": event.note}
        members |= dict(zip(told.attributes, event.values, strict=True))
        if random.random() < 0.5:
            members["other"] = {"host": "deep", "list": [1, {"uid": "deep"}]}
        absent = [name for name in (*told.attributes[1:], "note") if members[name] is None]
        for name in absent:
            if random.random() < 0.5:
                del members[name]
        keys = list(members)
        if random.random() < 0.3:
            random.shuffle(keys)
        line = spelled(random, {key: members[key] for key in keys})
        lines.append(line.encode() + random.choice([b"\n", b"\n", b"\n", b"\r\n", b" \n"]))
    return lines


def csv_lines(random: Random, told: Story, delimiter: str = ",") -> list[bytes]:
    """Write a header, then each event as a record of CSV, quoted where it must be or just so."""
    columns = ["ts", "uid", "note", *told.attributes, "other"]
    random.shuffle(columns)
    line_break = random.choice(["\n", "\r\n"])
    lines = [delimiter.join(columns) + line_break]
    for event in told.events:
        members = {"ts": str(event.t), "uid": user_text(event.user), "note": event.note}
        members |= dict(zip(told.attributes, event.values, strict=True)) | {"other": "x"}
        fields = [_csv_field(random, members[name] or "", delimiter) for name in columns]
        lines.append(delimiter.join(fields) + line_break)
    return [line.encode() for line in lines]


def _csv_field(random: Random, text: str, delimiter: str) -> str:
    if random.random() < 0.2 or any(letter in text for letter in f'"\r\n{delimiter}'):
        return '"' + text.replace('"', '""') + '"'
    return text


def cut(random: Random, data: bytes, pieces: int) -> list[bytes]:
    """Cut bytes anywhere, also within a line or a letter; pieces may be empty."""
    places = sorted(random.randrange(len(data) + 1) for _ in range(pieces - 1))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def keyring_of(policy: Policy, key: bytes = KEY) -> Keyring | None:
    """Give the keys that a policy's users leave under: one key that all tests have."""
    return None if policy.user.pseudonym == "raw" else Keyring.fixed("base32", key)


def fed(
    policy: Policy,
    pieces: Iterable[bytes],
    source: Format = Format.NDJSON,
    to: Format | None = None,
    *,
    threads: int = 1,
    max_line: int = 1 << 20,
    key: bytes = KEY,
) -> tuple[bytes, TextAct]:
    """Feed pieces of one file to the native way; what leaves, and the way for its counts."""
    act = TextAct(
        policy, policy.gates(threads=threads), source, to or source,
        keyring=keyring_of(policy, key), max_line=max_line, stop_at_problem=False, threads=threads,
    )  # fmt: skip
    act.way.start_file()
    written = [lines for piece in pieces if piece for lines in act.lines(piece, last=False)]
    return b"".join([*written, *act.lines(b"", last=True)]), act


def objects(data: bytes) -> list[dict[str, Any]]:
    """Read NDJSON as anyone else would."""
    return [json.loads(line) for line in data.decode().split("\n")[:-1]]


def table(data: bytes, delimiter: str = ",") -> list[dict[str, str]]:
    """Read CSV as anyone else would."""
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))


def exact(records: list[dict[str, Any]]) -> list[str]:
    """Compare types too: 1, 1.0 and True are equal in Python."""
    return [repr(record) for record in records]
