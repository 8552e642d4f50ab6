"""Observations as columns of numbers: who showed what, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil._native import spell
from zveil.act.levels import plain_values, text_array

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

# Rows that are given numbers in one go: enough that looking up those known by now costs little.
_BLOCK_ROWS = 1 << 20
# Beyond this a float stands for several whole numbers, that is, for several people.
_LARGEST_WHOLE = 2.0**53


class Codebook:
    """Numbers for values, counted up in the order in which values first come.

    Values of two types are two values; the widths of integers, floats and text make no difference.

    >>> book = Codebook()
    >>> book.codes(pa.array(["a", "b", None, "a"])).tolist()
    [0, 1, -1, 0]
    >>> book.codes(pa.array([1, 2])).tolist(), len(book)
    ([2, 3], 4)
    >>> book.words([3, 0])
    ['2', 'a']
    """

    def __init__(self) -> None:
        self._known: dict[pa.DataType, list[tuple[pa.Array, int]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def codes(self, column: pa.Array) -> Codes:
        """Give each value its number; -1 where there is none."""
        column = _plain(column)
        if pa.types.is_null(column.type):
            return np.full(len(column), -1, np.int32)
        encoded = column.dictionary_encode()
        pieces = self._known.setdefault(column.type, [])
        numbers = np.full(len(encoded.dictionary), -1, np.int64)
        for known, first in pieces:
            found = pc.index_in(encoded.dictionary, value_set=known)
            places = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
            numbers = np.where(places >= 0, places + first, numbers)
        is_new = numbers < 0
        new = encoded.dictionary.filter(pa.array(is_new))
        numbers[is_new] = self._count + np.arange(len(new))
        if len(new):
            pieces.append((new, self._count))
            self._count += len(new)
            self._merge(pieces)
        rows = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        codes: Codes = np.append(numbers, -1).astype(np.int32)[rows]
        return codes

    def words(self, codes: Sequence[int]) -> list[str]:
        """Give values by their numbers, as text."""
        found = []
        for code in codes:
            for pieces in self._known.values():
                for known, first in pieces:
                    if first <= code < first + len(known):
                        found.append(str(known[code - first].as_py()))
        return found

    def texts(self) -> pa.Array:
        """Give all values as text, in the order of their numbers."""
        pieces = sorted(
            ((first, known) for every in self._known.values() for known, first in every),
            key=lambda piece: piece[0],
        )
        texts = [text_array(spell(plain_values(known))) for _, known in pieces]
        return pa.concat_arrays([pa.array([], pa.large_string()), *texts])

    def holds_all(self, others: Codebook) -> bool:
        """Whether every value of another book is in this one."""
        for kind, pieces in others._known.items():
            own = [known for known, _ in self._known.get(kind, [])]
            values = pa.chunked_array(own, type=kind)
            for piece, _ in pieces:
                if not pc.all(pc.is_in(piece, value_set=values)).as_py():
                    return False
        return True

    def _merge(self, pieces: list[tuple[pa.Array, int]]) -> None:
        """Join pieces whose numbers follow each other, so that few are to be looked through."""
        while len(pieces) > 1:
            (one, first), (two, second) = pieces[-2:]
            if first + len(one) != second or len(two) * 2 < len(one):
                return
            pieces[-2:] = [(pa.concat_arrays([one, two]), first)]


@dataclass(frozen=True, kw_only=True)
class Observations:
    """Observations as columns of numbers, 16 bytes each.

    Only those are in it that have a time, a user and a value: of a released stream, what was
    released.
    """

    time_ns: Ints
    user: Codes
    value: Codes
    """Numbers of values; the same word in two fields is two values."""
    fields: tuple[str, ...]
    firsts: Ints
    """The number of the first value of each field, and behind them the number of all values."""
    users: Codebook
    """Every user met, those without any value too."""
    values: tuple[Codebook, ...]
    """One book for each field."""
    incomplete: int
    """Values without a time or a user, which are left out."""

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def field(self) -> Ints:
        """The number of each observation's field."""
        return np.searchsorted(self.firsts, self.value, side="right").astype(np.int64) - 1


def read(
    batches: Iterable[pa.RecordBatch], *, user: str, attributes: Sequence[str]
) -> Observations:
    """Read observations from batches of events.

    Parameters
    ----------
    batches
        The first column is the time as a timestamp, as `zveil.events.Events` gives it.
    user, attributes
        Names of columns.

    Raises
    ------
    TypeError
        If a column holds what names no user, or is no value.

    Examples
    --------
    >>> stamps = pa.array([0, 1], pa.timestamp("ns", tz="UTC"))
    >>> batch = pa.record_batch({"t": stamps, "who": [7, 8], "site": ["a", None]})
    >>> found = read([batch], user="who", attributes=["site"])
    >>> len(found), len(found.users)
    (1, 2)
    """
    users, values = Codebook(), [Codebook() for _ in attributes]
    # One empty piece each, so that there is something to join.
    times = [[np.empty(0, np.int64)] for _ in attributes]
    people, shown = ([[np.empty(0, np.int32)] for _ in attributes] for _ in range(2))
    incomplete = 0
    for block in _blocks(batches):
        stamps = block.column(0)
        has_time = stamps.is_valid().to_numpy(zero_copy_only=False)
        moments = pc.fill_null(stamps.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        who = users.codes(user_texts(block.column(user)))
        for number, name in enumerate(attributes):
            try:
                codes = values[number].codes(block.column(name))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
                # The words of the library quote the data.
                raise TypeError(
                    f"attribute: {name!r} holds lists or records; name a field of single values"
                ) from None
            is_value = codes >= 0
            is_whole = is_value & (who >= 0) & has_time
            incomplete += int(np.count_nonzero(is_value) - np.count_nonzero(is_whole))
            times[number].append(moments[is_whole])
            people[number].append(who[is_whole])
            shown[number].append(codes[is_whole])
    firsts = np.cumsum([0, *(len(book) for book in values)], dtype=np.int64)
    return Observations(
        time_ns=np.concatenate([piece for pieces in times for piece in pieces]),
        user=np.concatenate([piece for pieces in people for piece in pieces]),
        value=np.concatenate(
            [piece + np.int32(first) for first, pieces in zip(firsts[:-1], shown, strict=True)
             for piece in pieces]
        ),
        fields=tuple(attributes),
        firsts=firsts,
        users=users,
        values=tuple(values),
        incomplete=incomplete,
    )  # fmt: skip


def user_texts(column: pa.Array) -> pa.Array:
    """Bring user ids to their one form: 7, 7.0 and "7" are one person.

    >>> user_texts(pa.array([7.0, 7.5, None])).to_pylist()
    [b'7', None, None]
    """
    column = _plain(column)
    kind = column.type
    if pa.types.is_floating(kind):
        is_whole = pc.and_(
            pc.equal(pc.floor(column), column), pc.less_equal(pc.abs(column), _LARGEST_WHOLE)
        )
        column = pc.if_else(is_whole, column, None).cast(pa.int64())
    if pa.types.is_large_binary(kind):
        return column
    is_word = pa.types.is_large_string(kind) or pa.types.is_null(kind)
    if not (is_word or pa.types.is_integer(column.type)):
        raise TypeError(f"user: expected text, bytes or whole numbers, got a column of {kind}")
    return column.cast(pa.large_string()).cast(pa.large_binary())


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches; files may differ in the types of their columns."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if held and (rows >= _BLOCK_ROWS or batch.schema != held[0].schema):
            yield from _one(held)
            held, rows = [], 0
        held.append(batch)
        rows += batch.num_rows
    yield from _one(held)


def _one(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def _plain(column: pa.Array) -> pa.Array:
    """Bring a column to the widest type of its kind; what is no number is missing."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_string(kind) or kind == pa.string_view():
        return column.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return column.cast(pa.int64())
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64())
        # -0.0 and 0.0 are one value.
        return pc.add(pc.if_else(pc.is_nan(column), None, column), 0.0)
    return column
