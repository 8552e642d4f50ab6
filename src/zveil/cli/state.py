"""`zveil state`: what a saved state holds, and how one user is forgotten in it."""

from __future__ import annotations

import json
import os
import textwrap
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

import click

from zveil.cli.inputs import FAILED, USAGE

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH = 88
_KEY_HELP = "The key that the run was given; by default the state's own, in DIR."


@click.group(short_help="Show what a saved state holds, or erase users from it.")
def state() -> None:
    """Show what a state holds that `zveil run --state` has saved, or erase users from it.

    \b
    zveil state show DIR
    zveil state forget DIR --user-file users.txt
    """  # noqa: D301  # click's mark for text that must not be wrapped


@state.command(short_help="Show what a saved state holds; no user and no value.")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--key-file", metavar="FILE", type=click.Path(dir_okay=False), help=_KEY_HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(folder: str, key_file: str | None, as_json: bool) -> None:
    """Show what the state in DIR holds: its age, where input and output stand, how much was seen.

    There is no user and no value in it, not even for whoever has its key: only keyed hashes.

    \b
    Exit codes:
      0    done
      1    it cannot be read
      2    there is none, or it is of another key or version
    """  # noqa: D301  # click's mark for text that must not be wrapped
    from zveil.state.error import StateError
    from zveil.state.store import read_envelope

    try:
        path = _path(folder)
        found = read_envelope(path, _key(folder, key_file))
    except StateError as error:
        _fail(str(error), USAGE)
    except ValueError as error:
        _fail(str(error).replace("key-file:", "--key-file:"), USAGE)
    told = _as_dict(found, os.path.getsize(path))
    click.echo(json.dumps(told) if as_json else _shown(told))


@state.command(short_help="Erase users from a saved state.")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--user-file", metavar="FILE", type=click.Path(dir_okay=False), required=True,
    help="The ids to erase, one a line, as they are in the events.",
)  # fmt: skip
@click.option("--key-file", metavar="FILE", type=click.Path(dir_okay=False), help=_KEY_HELP)
def forget(folder: str, user_file: str, key_file: str | None) -> None:
    """Erase users from the state in DIR, in every attribute; no run may be using it.

    An attribute that loses someone may veil what it would have released, never the reverse. What
    was written before stays as it is.

    \b
    Exit codes:
      0    done
      1    reading or writing failed
      2    there is no state, or it is in use, or of another key or version
    """  # noqa: D301  # click's mark for text that must not be wrapped
    from zveil.state.erasure import erase
    from zveil.state.error import StateError

    try:
        with open(user_file, "rb") as file:
            users = [line for line in file.read().splitlines() if line]
    except OSError as error:
        _fail(f"--user-file: {user_file}: {(error.strerror or '').lower()}", FAILED)
    try:
        _path(folder)
        entries = erase(folder, _key(folder, key_file), users)
    except StateError as error:
        _fail(str(error), USAGE)
    except ValueError as error:
        _fail(str(error).replace("key-file:", "--key-file:"), USAGE)
    except OSError as error:
        _fail(str(error), FAILED)
    what = "user" if len(users) == 1 else "users"
    click.echo(f"{len(users):,} {what} erased, {entries:,} entries in all")


def _path(folder: str) -> Path:
    from zveil.state.error import StateError
    from zveil.state.folder import STATE

    path = click.format_filename(folder)
    found = os.path.join(folder, STATE)
    if not os.path.isfile(found):
        raise StateError(f"{path}: there is no state in it; name the DIR of zveil run --state")
    from pathlib import Path

    return Path(found)


def _key(folder: str, file: str | None) -> bytes:
    """Give the key that was given, or the folder's own."""
    from pathlib import Path

    from zveil.keys import key_of, take_key
    from zveil.state.folder import own_key

    given = take_key(os.environ)
    if file is not None:
        return key_of(file)
    return own_key(Path(folder), may_make=False) if given is None else given


def _as_dict(found: Mapping[str, Any], size: int) -> dict[str, Any]:
    note, policy = found["note"], found["policy"]
    figures = note.get("figures", {})
    place = (note.get("input") or {}).get("place")
    output = note.get("output")
    return {
        "saved": _moment(found["saved"]),
        "age_seconds": round(max(time.time() - found["saved"], 0.0), 1),
        "zveil": found["zveil"],
        "bytes": size,
        "events": note.get("counts", {}).get("records", 0),
        "attributes": figures.get("attributes", 0),
        "memory": figures.get("bytes", 0),
        "ids": figures.get("ids"),
        "clock": None if figures.get("clock_ns") is None else _moment(figures["clock_ns"] / 1e9),
        "finished": [mark["name"] for mark in (note.get("input") or {}).get("finished", [])],
        "input": None if place is None else place["mark"]["name"],
        "input_done": None if place is None else place["done"],
        "output": None if not output or output["mark"] is None else output["mark"]["name"],
        "output_bytes": None if not output or output["mark"] is None else output["mark"]["size"],
        "policy": policy["fingerprint"],
        "meaning": [{"about": about, "sentences": told} for about, told in policy["words"]],
    }


def _shown(told: Mapping[str, Any]) -> str:
    rows = [
        ("saved", f"{told['saved']}, {told['age_seconds']:,.1f} s ago, by zveil {told['zveil']}"),
        ("events", f"{told['events']:,}, the newest of {told['clock'] or 'no time'}"),
        ("values", f"{told['attributes']:,} remembered, as keyed hashes"),
        ("memory", f"{told['memory']:,} bytes; {told['bytes']:,} as saved"),
    ]
    if told["ids"] is not None:
        rows.append(("ids", f"{told['ids']:,} remembered, as keyed hashes"))
    if told["finished"]:
        rows.append(("finished", f"{len(told['finished']):,} inputs"))
    rows.append(("input", _place(told["input"], told["input_done"], "a pipe")))
    rows.append(("output", _place(told["output"], told["output_bytes"], "a pipe, or nothing yet")))
    rows.append(("policy", told["policy"]))
    lines = [f"{name:<9} {words}" for name, words in rows]
    for answer in told["meaning"]:
        lines.append(f"\n{answer['about']}")
        lines += [
            textwrap.fill(
                words, _WIDTH, initial_indent="  - ", subsequent_indent="    ",
                break_on_hyphens=False, break_long_words=False,
            )
            for words in answer["sentences"]
        ]  # fmt: skip
    return "\n".join(lines)


def _place(name: str | None, done: int | None, otherwise: str) -> str:
    return otherwise if name is None else f"{_near(name)}, done up to {done:,}"


def _near(name: str) -> str:
    """Give a path as it is seen from here, if it is below."""
    near = os.path.relpath(name)
    return name if near.startswith(os.pardir) else near


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "a time that no calendar has"


def _fail(words: str, code: int) -> NoReturn:
    click.echo(f"Error: {words}", err=True)
    raise SystemExit(code)
