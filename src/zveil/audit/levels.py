"""Levels: which of the coarser labels of a hierarchy the released values are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil.act.levels import Levels
from zveil.audit.observations import Observations
from zveil.hierarchy import Hierarchy

# The second digit of a cell's name is its resolution.
_CELL = r"^8[0-9a-f]{14}$"


@dataclass(frozen=True, kw_only=True)
class LevelUse:
    """What was released at one level."""

    level: int
    """0 is the value itself, or the finest cell; -1 what is none of the hierarchy's labels."""
    name: str
    released: int


@dataclass(frozen=True, kw_only=True)
class FieldLevels:
    """What was released of one field, by level."""

    field: str
    levels: tuple[LevelUse, ...]


def field_levels(
    released: Observations, original: Observations | None, hierarchies: Sequence[Hierarchy | None]
) -> tuple[FieldLevels, ...]:
    """Tell the level of each released value of the fields that have a hierarchy.

    A released value is of the finest level at which the original has it. Cells tell their
    resolution; every other field needs the original, and is left out without it.

    Parameters
    ----------
    released, original
        With the same fields in the same order.
    hierarchies
        One for each field.
    """
    found = []
    for number, hierarchy in enumerate(hierarchies):
        if hierarchy is None:
            continue
        first, last = released.firsts[number : number + 2].tolist()
        uses = np.bincount(released.value, minlength=last)[first:last]
        words = released.values[number].texts()
        if hierarchy.takes_position:
            places = _resolutions(words, hierarchy)
        elif original is not None:
            places = _places(words, original.values[number].texts(), hierarchy)
        else:
            continue
        counts = np.bincount(places + 1, uses, minlength=hierarchy.levels + 1).astype(int).tolist()
        levels = [
            LevelUse(level=level, name=name, released=count)
            for level, (name, count) in enumerate(zip(hierarchy.names, counts[1:], strict=True))
        ]
        if counts[0]:
            levels.append(LevelUse(level=-1, name="none of these", released=counts[0]))
        found.append(FieldLevels(field=released.fields[number], levels=tuple(levels)))
    return tuple(found)


def _places(words: pa.Array, shown: pa.Array, hierarchy: Hierarchy) -> NDArray[np.int64]:
    """Give the finest level at which each word is a label of what was shown; -1 for none."""
    places = np.full(len(words), -1, np.int64)
    for level, labels in enumerate(reversed(Levels(hierarchy).of([shown]))):
        known = labels.dictionary.drop_null()
        is_label = pc.is_in(words, value_set=known).to_numpy(zero_copy_only=False)
        places[is_label & (places < 0)] = level
    return places


def _resolutions(words: pa.Array, hierarchy: Hierarchy) -> NDArray[np.int64]:
    places = np.full(len(words), -1, np.int64)
    is_cell = pc.match_substring_regex(words, _CELL).to_numpy(zero_copy_only=False)
    digits = pc.utf8_slice_codeunits(words, 1, 2)
    for level, resolution in enumerate(hierarchy.steps[0][1]):
        has_digit = pc.equal(digits, f"{resolution:x}").to_numpy(zero_copy_only=False)
        places[is_cell & has_digit] = level
    return places
