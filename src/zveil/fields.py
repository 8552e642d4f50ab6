"""Names of fields: which there are, and what to say about one that is not."""

import json
import re
from collections.abc import Sequence

_NAMES_SHOWN = 40
_DATUM = re.compile(r"[-+]?[0-9][-+0-9.,:/ eTZ]*")


class FieldError(ValueError):
    """A field that the input does not have."""


def names_of(head: bytes, *, flat: bool = False) -> list[str]:
    """List the fields of the first lines of NDJSON, those inside others too.

    `flat`: a dot belongs to its name, and nothing is looked for inside.

    >>> names_of(b'{"ts": 1, "page": {"host": "a", "path": "/"}}')
    ['ts', 'page.host', 'page.path']
    """
    names: dict[str, None] = {}
    for line in head.splitlines()[:100]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # what is nested too deeply is a bad line anyway
            continue
        if isinstance(record, dict) and flat:
            names |= dict.fromkeys(record)
        elif isinstance(record, dict):
            _add_names(record, "", names)
    return list(names)


def no_such_field(wanted: str, found: Sequence[str]) -> str:
    """Say that a field is not there, which one may have been meant, and which there are."""
    import difflib  # only where something is misspelt

    close = difflib.get_close_matches(wanted, found, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    there = ", ".join(found[:_NAMES_SHOWN]) or "none"
    if len(found) > _NAMES_SHOWN:
        there += f", and {len(found) - _NAMES_SHOWN:,} more"
    return f"there is no field {wanted!r}.{hint} The fields there are: {there}"


def wrong_columns(error: LookupError, *, is_text: bool) -> str:
    """Say what is wrong with the columns of a file; a first line that is data is not shown.

    Parameters
    ----------
    error
        With the column that is missing or there twice and those there are; or, for a header that
        cannot be read, with what is wrong with it.
    is_text
        The columns were named by a line of text, which may have been one of data.
    """
    if len(error.args) == 1:
        return str(error.args[0])
    wanted, found = error.args
    if wanted in found:
        return f"has the column {wanted!r} twice"
    if is_text and any(_DATUM.fullmatch(name) for name in found):
        return (
            f"there is no field {wanted!r}; the first line looks like data, "
            "and must be a header that names the columns"
        )
    return no_such_field(wanted, found)


def _add_names(record: dict[str, object], above: str, names: dict[str, None]) -> None:
    for key, value in record.items():
        name = above + key.replace("\\", "\\\\").replace(".", "\\.")
        if isinstance(value, dict) and above.count(".") < 3:
            _add_names(value, f"{name}.", names)
        else:
            names[name] = None
