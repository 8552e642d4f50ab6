"""The policy file: TOML in, a policy out, or every mistake with its line and key."""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from zveil.io.presets import PRESETS
from zveil.policy.document import DocumentError, Entry, Place, Value, read_document
from zveil.policy.error import PolicyError, Where
from zveil.policy.hold import Z_MIN
from zveil.policy.policy import Policy
from zveil.policy.schema import SCHEMA, Section

_LARGEST = 1 << 20


@dataclass(frozen=True, order=True)
class Problem:
    """What is wrong at one place of a file."""

    line: int
    column: int
    key: str
    """Such as ``attribute.window``; empty where it is about none."""
    words: str

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {f'{self.key}: ' if self.key else ''}{self.words}"


class PolicyFileError(PolicyError):
    """A policy file with mistakes; `problems` has all that were found."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__((), "\n".join(f"{name}:{problem}" for problem in self.problems))


def read_policy(path: str | PathLike[str]) -> Policy:
    """Read a policy file.

    Files that it names are looked for in its own folder.

    Raises
    ------
    OSError
        If the file cannot be read.
    PolicyFileError
        If it is no policy: a ValueError with a line for each mistake.
    """
    file = Path(path)
    with file.open("rb") as opened:
        data = opened.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise PolicyFileError(str(path), [Problem(1, 1, "", "larger than 1 MiB: no policy")])
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyFileError(str(path), [Problem(line, 1, "", "not valid UTF-8")]) from None
    return parse_policy(text, folder=file.parent, name=str(path))


def parse_policy(text: str, *, folder: Path = Path(), name: str = "policy") -> Policy:
    """Read the text of a policy file.

    Parameters
    ----------
    text
        TOML.
    folder
        Where files that it names are looked for.
    name
        What the text is called in errors.

    Examples
    --------
    >>> policy = parse_policy('''
    ... time = { field = "ts" }
    ... user = { field = "uid" }
    ... attribute = [{ field = "host", z = 20, window = "1 hour" }]
    ... ''')
    Traceback (most recent call last):
    zveil.policy.file.PolicyFileError: policy:4:49: attribute.window: expected a duration such as \
'1h', '90s' or '1h30m', a timedelta, or seconds, from 0 to 292 years, got '1 hour'
    """
    reading = _Reading(folder)
    try:
        policy = reading.policy(read_document(text))
    except DocumentError as error:
        reading.note(error.place, (), str(error))
        policy = None
    if policy is None:
        raise PolicyFileError(name, reading.problems)
    return policy


class _Reading:
    """One file being read: what was wrong with it so far, and where its keys are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._meant: dict[str, dict[str, Any]] = {}
        self._places: dict[Where, Place] = {}
        self.problems: list[Problem] = []

    def note(self, place: Place, where: Where, words: str) -> None:
        key = ".".join(part for part in where if isinstance(part, str))
        self.problems.append(Problem(*place, key, words))

    def policy(self, document: dict[str, Entry]) -> Policy | None:
        for entry in document.values():
            if entry.key not in SCHEMA:
                words = _unknown("section", entry.key, SCHEMA)
                self.note(entry.place, (), words)
        parts: dict[str, Any] = {}
        self._meant = _meant(document)
        for name, section in SCHEMA.items():
            if name in document:
                self._read_section(document[name], section, parts)
            elif (
                not section.is_repeated
                and not section.is_optional
                and set(section.required) <= set(self._meant.get(name, ()))
            ):
                parts[name] = section.part(**self._meant.get(name, {}))
            elif section.is_optional:
                continue
            elif section.required or section.is_repeated:
                shown = f"[[{name}]]" if section.is_repeated else f"[{name}]"
                keys = " and ".join(map(repr, section.required))
                self.note((1, 1), (name,), f"expected a section {shown} with {keys}")
        if self.problems:
            return None
        parts["attributes"] = tuple(parts.pop("attribute"))
        try:
            policy = Policy(**parts)
            # What only a gate knows to be wrong is said with the line too. It costs nothing yet.
            policy.gates()
        except PolicyError as error:
            self.note(self._place(error.where), error.where, error.words)
            return None
        return policy

    def _read_section(self, entry: Entry, section: Section, parts: dict[str, Any]) -> None:
        value, name = entry.value, entry.key
        if not section.is_repeated:
            parts[name] = self._read_part(value, section, (name,), entry.place)
        elif value.kind != "list":
            self.note(entry.place, (name,), f"expected [[{name}]] with two brackets: a list")
        else:
            self._places[(name,)] = entry.place
            parts[name] = [
                self._read_part(item, section, (name, number), item.place)
                for number, item in enumerate(value.held)
            ]

    def _read_part(self, value: Value, section: Section, where: Where, place: Place) -> Any:
        """Make a part of the policy; None, and a note, where that cannot be."""
        self._places[where] = place
        if value.kind != "table":
            return self.note(place, where, f"expected a section with keys, got {value}")
        before = len(self.problems)
        given: dict[str, Any] = {}
        for key, entry in value.held.items():
            self._places[*where, key] = entry.value.place
            if key not in section.keys:
                self.note(entry.place, where, _unknown("key", key, section.keys))
                continue
            try:
                made = section.keys[key](entry.value, self._folder)
            except ValueError as error:
                self.note(entry.value.place, (*where, key), str(error))
                continue
            meant = section.instead.get(key, key)
            if meant in given:
                self.note(entry.place, (*where, key), f"expected either {key!r} or {meant!r}")
            given[f"{meant}_" if keyword.iskeyword(meant) else meant] = made
        # What a log's preset, or a level to hold, says by default.
        given = self._meant.get(str(where[0]), {}) | given
        given_keys = {section.instead.get(key, key) for key in value.held}
        for key in section.required:
            if key not in given_keys and key not in given:
                self.note(place, where, f"expected the key {key!r}")
        if len(self.problems) > before:
            return None
        try:
            return section.part(**given)
        except PolicyError as error:
            found = error.below(where)
            return self.note(self._place(found.where), found.where, found.words)

    def _place(self, where: Where) -> Place:
        """Give the place of a key, or of what it would stand in."""
        while where and where not in self._places:
            where = where[:-1]
        return self._places.get(where, (1, 1))


def _meant(document: dict[str, Entry]) -> dict[str, dict[str, Any]]:
    """Give what need not be said, by section: the fields of a log, the z of a level to hold."""
    found: dict[str, dict[str, Any]] = {}
    for name, field in _fields_of_log(document).items():
        found[name] = {"field": field}
    if "hold" in document:
        found.setdefault("attribute", {})["z"] = _least_z(document["hold"].value)
    return found


def _least_z(hold: Value) -> int:
    stated = hold.held.get("z_min") if hold.kind == "table" else None
    is_good = stated is not None and stated.value.kind == "integer" and stated.value.held >= 1
    return int(stated.value.held) if stated is not None and is_good else Z_MIN


def _fields_of_log(document: dict[str, Entry]) -> dict[str, str]:
    """Give the fields that the preset of a log means, by section."""
    section = document.get("input")
    form = None
    if section is not None and section.value.kind == "table" and "format" in section.value.held:
        form = section.value.held["format"].value.held
    preset = PRESETS.get(form) if isinstance(form, str) else None
    if preset is None:
        return {}
    return {"time": preset.time, "user": preset.user, "attribute": preset.attribute}


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    import difflib  # only where something is misspelt

    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"there is no {kind} {name!r}.{hint} The {kind}s there are: {', '.join(known)}"
