"""A policy as plain properties, which is all that the operator is told of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from zveil._native import field_path
from zveil.durations import duration_ns
from zveil.engines.flink import steps
from zveil.engines.flink.properties import Properties, listed
from zveil.fields import no_such_field
from zveil.io import Format
from zveil.names import Names
from zveil.policy import Policy
from zveil.policy.parts import Attribute


@dataclass(frozen=True, kw_only=True)
class Records:
    """How records are written, the same in as out.

    Parameters
    ----------
    format
        Of JSON or CSV.
    columns
        Of CSV: what its columns are called.
    max_line
        A record of more bytes is bad.
    """

    format: Format
    columns: Sequence[str] = ()
    max_line: int


def described(
    policy: Policy, records: Records, *, gate_key: bytes, user_key: bytes | None
) -> Properties:
    """Say what the operator has to know of a policy that `fitness.check` has let pass.

    Parameters
    ----------
    policy, records
        What is decided and what leaves; how it is written.
    gate_key, user_key
        32 secret bytes for hashes in the state, and for pseudonyms; none if ids leave raw.

    Raises
    ------
    ValueError
        If the columns of CSV are not those of the policy.
    """
    future = policy.limits.max_future
    said: dict[str, Any] = {
        "format": records.format.value,
        "max_line": records.max_line,
        "fields": len(policy.fields),
        "columns": len(records.columns),
        "time.format": policy.time.format,
        "time.step_ns": policy.time.step_ns or 0,
        "lateness_ns": policy.lateness_ns,
        "max_future_ns": -1 if future is None else duration_ns(future, "max_future"),
        "user.pseudonym": policy.user.pseudonym,
        "user.key": (user_key or bytes(32)).hex(),
        "user.rotate_ns": policy.rotate_ns or 0,
        "gate.key": gate_key.hex(),
        "attributes": len(policy.attributes),
        "empty": policy.record.empty,
    }
    is_json = records.format is Format.NDJSON
    if is_json:
        for number, name in enumerate(policy.fields):
            said |= listed(f"field.{number}", field_path(name))
        said |= _pieces(list(_template(policy)), "}")
    else:
        for number, place in enumerate(_places(policy, records.columns)):
            said[f"column.{number}"] = place
        delimiter = "," if records.format is Format.CSV else "\t"
        texts = [(delimiter if number else "", number) for number in range(len(policy.fields))]
        said |= _pieces(texts, "")
    for number, attribute in enumerate(policy.attributes):
        for key, value in _attribute(attribute, records.format):
            said[f"attribute.{number}.{key}"] = value
    return {key: str(value) for key, value in said.items()}


def _pieces(texts: Sequence[tuple[str, int]], end: str) -> dict[str, Any]:
    said: dict[str, Any] = {"pieces": len(texts), "end": end}
    for number, (text, field) in enumerate(texts):
        said |= {f"piece.{number}.text": text, f"piece.{number}.field": field}
    return said


def _template(policy: Policy) -> Iterator[tuple[str, int]]:
    """Give the text before each value of a record of JSON, and the field whose value it is."""
    before = ""
    fields = [(number, field_path(name)) for number, name in enumerate(policy.fields)]
    for text, field in _members(fields):
        before += text
        if field is not None:
            yield before, field
            before = ""


def _members(fields: Sequence[tuple[int, list[str]]]) -> Iterator[tuple[str, int | None]]:
    yield "{", None
    written: list[str] = []
    for number, (name, *below) in fields:
        if name in written:
            continue
        yield ("," if written else "") + json.dumps(name, ensure_ascii=False) + ":", None
        written.append(name)
        if not below:
            yield "", number
            continue
        yield from _members([(other, path[1:]) for other, path in fields if path[0] == name])
        yield "}", None


def _places(policy: Policy, columns: Sequence[str]) -> list[int]:
    for name in policy.fields:
        if name not in columns:
            raise ValueError(f"columns: {no_such_field(name, columns)}")
        if columns.count(name) > 1:
            raise ValueError(f"columns: {name!r} is there twice")
    return [columns.index(name) for name in policy.fields]


def _attribute(attribute: Attribute, form: Format) -> Iterator[tuple[str, Any]]:
    hierarchy = attribute.hierarchy
    yield "label", json.dumps(field_path(attribute.field))
    yield "z", attribute.z
    yield "window_ns", attribute.window_ns
    yield "rule", attribute.rule
    yield "level", -1 if attribute.level is None else attribute.level
    yield "veil", _veil(attribute.veiled, form)
    yield "only", _names(attribute.only)
    yield "except", _names(attribute.except_)
    yield "steps", 0 if hierarchy is None else len(hierarchy.steps)
    for number, step in enumerate(() if hierarchy is None else hierarchy.steps):
        for key, value in steps.described(step).items():
            yield f"step.{number}.{key}", value


def _veil(text: str | None, form: Format) -> str:
    """Spell what stands for a veiled value."""
    if form is Format.NDJSON:
        return json.dumps(text, ensure_ascii=False)
    plain = text or ""
    special = ("," if form is Format.CSV else "\t") + '"\r\n'
    if plain.strip(" ") == plain and not any(letter in special for letter in plain):
        return plain
    return '"' + plain.replace('"', '""') + '"'


def _names(names: Names | None) -> str:
    """Spell the names of a list as the core takes them, with commas between; nothing for no list.

    They need not be text: a letter stands for each byte. That all lines are fit is known by now.
    """
    if names is None:
        return ""
    found = []
    for number, line in enumerate(names.text().removeprefix(b"\xef\xbb\xbf").split(b"\n")):
        written = line.strip(b" \t\n\f\r")
        rank, comma, behind = written.partition(b",")
        if (
            not written
            or written.startswith(b"#")
            or (comma and number == 0 and not _is_rank(rank))
        ):
            continue
        name = behind if comma else written
        name = name.removeprefix(b"*.") if name.startswith(b"*.") else name.removeprefix(b".")
        found.append(name.removesuffix(b".").lower())
    return b",".join(dict.fromkeys(found)).decode("latin-1")


def _is_rank(text: bytes) -> bool:
    return not text or text.isdigit()
