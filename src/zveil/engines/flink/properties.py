"""Names and what is said by them, in the form that Java reads: all that the operator is told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Properties = dict[str, str]

_SPECIAL = re.compile(r"[^a-zA-Z0-9.,_-]")


def listed(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Say a list: its length, and each of its values by its number."""
    numbered = {f"{name}.{number}": value for number, value in enumerate(values)}
    return {f"{name}.length": len(values), **numbered}


def written(properties: Mapping[str, str]) -> str:
    r"""Write properties as Java reads them, in plain ASCII.

    >>> written({"a.b": "é=1"})
    'a.b=\\u00e9\\u003d1\n'
    """
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(text: str) -> str:
    return _SPECIAL.sub(_spelled, text)


def _spelled(special: re.Match[str]) -> str:
    units = special[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
