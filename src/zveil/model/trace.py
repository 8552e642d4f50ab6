"""A trace: who showed what when, as columns of numbers; and a population estimated from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from zveil.columns import Columns, aligned
from zveil.durations import Duration, duration_ns
from zveil.model.population import Population
from zveil.times import TimeUnit, unit_ns

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

# A last window that is covered so far counts as a whole one: a stream rarely ends on the dot.
_COVERED = 0.9
# Half of what fits, so that the difference of two times fits too.
_FARTHEST_NS = 2**62


@dataclass(frozen=True, eq=False)
class Trace:
    """What was observed, in the order it came, 16 bytes an observation.

    Made by `of_columns` or `of_codes`. Users and attributes are numbers from 0 up, each of which
    occurs. The rows of a field, which have a gate of their own, lie together.

    Attributes
    ----------
    time_ns, user, attribute
        The columns.
    starts
        The row that each field begins at.
    users, attributes
        How many there are.
    window_ns
        Length of a window.
    """

    time_ns: Ints
    user: Codes
    attribute: Codes
    starts: tuple[int, ...]
    users: int
    attributes: int
    window_ns: int

    @classmethod
    def of_columns(
        cls,
        times: Columns,
        users: Columns,
        attributes: Columns | Mapping[str, Columns],
        *,
        window: Duration,
        time_unit: TimeUnit = "s",
    ) -> Trace:
        """Take the columns of a trace, in the order in which its events came.

        A row without a time, a user or an attribute does not count.

        Parameters
        ----------
        times
            Numbers in ``time_unit``, or datetimes.
        users, attributes
            Columns of any one type: NumPy, Arrow, pandas, Polars, or a sequence. A mapping of
            attributes has a column for each field; the same word in two fields is two attributes.
        window
            Length of a window: ``"1h"``, a timedelta, or seconds; above 0.
        time_unit
            What plain numbers are as times: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.

        Examples
        --------
        >>> columns = {"host": ["a", "a", None], "page": ["a", None, "b"]}
        >>> trace = Trace.of_columns([0, 5, 12], ["ada", "bob", "ada"], columns, window=10)
        >>> len(trace), trace.users, trace.attributes
        (4, 2, 3)
        """
        scale_ns = unit_ns(time_unit)
        fields = attributes if isinstance(attributes, Mapping) else {"attributes": attributes}
        if not fields:
            raise ValueError("attributes: expected at least one column")
        names = ("times", "users", *fields)
        pieces = list(aligned((times, users, *fields.values()), names))
        moments, people, *shown = (
            _plain([piece[at] for piece in pieces]) for at in range(len(names))
        )
        complete = pc.and_(moments.is_valid(), people.is_valid())
        who = _codes(people)
        rows = []
        for column in shown:
            there = pc.and_(complete, column.is_valid())
            rows.append(
                (
                    _nanoseconds(moments.filter(there), scale_ns),
                    who[there.to_numpy()],
                    _codes(column.filter(there)),
                )
            )
        firsts = np.cumsum([0, *(int(codes.max(initial=-1)) + 1 for _, _, codes in rows)])
        return cls.of_codes(
            np.concatenate([each for each, _, _ in rows]),
            np.concatenate([each for _, each, _ in rows]),
            np.concatenate(
                [codes + first for first, (_, _, codes) in zip(firsts, rows, strict=False)]
            ),
            starts=np.cumsum([0, *(len(each) for each, _, _ in rows[:-1])]).tolist(),
            window=window,
        )

    @classmethod
    def of_codes(
        cls,
        time_ns: ArrayLike,
        user: ArrayLike,
        attribute: ArrayLike,
        *,
        window: Duration,
        starts: Sequence[int] = (0,),
    ) -> Trace:
        """Take columns of numbers, field after field.

        Parameters
        ----------
        time_ns
            Nanoseconds since 1970, within 146 years of it.
        user, attribute
            Numbers from 0 up that stand for them; an attribute belongs to one field.
        window
            Length of a window; above 0.
        starts
            The row that each field begins at.

        Examples
        --------
        >>> Trace.of_codes([0, 1], [4, 7], [0, 0], window=1).users
        2
        """
        window_ns = duration_ns(window, "window")
        if window_ns == 0:
            raise ValueError("window: expected a duration above 0, got 0")
        moments = np.asarray(time_ns, np.int64)
        if not moments.size:
            raise ValueError(
                "times: expected at least one row with a time, a user and an attribute"
            )
        if not -_FARTHEST_NS < moments.min() <= moments.max() < _FARTHEST_NS:
            raise ValueError("time: expected times within 146 years of 1970; is their unit right?")
        people, users = _dense(user)
        shown, attributes = _dense(attribute)
        return cls(moments, people, shown, tuple(starts), users, attributes, window_ns)

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def fields(self) -> list[slice]:
        """The rows of each field."""
        ends = [*self.starts[1:], len(self)]
        return [slice(start, end) for start, end in zip(self.starts, ends, strict=True)]

    @property
    def start_ns(self) -> int:
        """The first time."""
        return int(self.time_ns.min())

    @property
    def windows(self) -> int:
        """Windows side by side from the first time on, that of the last time included."""
        return (int(self.time_ns.max()) - self.start_ns) // self.window_ns + 1

    @property
    def empty_windows(self) -> int:
        """Those in which nothing was observed."""
        index = (self.time_ns - self.start_ns) // self.window_ns
        return self.windows - len(np.unique(index))

    @property
    def whole_windows(self) -> int:
        """The same without a last one that the trace covers less than nine tenths of.

        >>> Trace.of_codes([0, 10**9 * 25], [0, 0], [0, 0], window=10).whole_windows
        2
        """
        in_last = (int(self.time_ns.max()) - self.start_ns) % self.window_ns
        is_part = in_last < _COVERED * self.window_ns
        return max(self.windows - is_part, 1)

    def population(self, *, whole: bool = False) -> Population:
        """Estimate the population that showed this.

        p^X of an attribute is the mean over the windows of the share of users who show it; its rate
        is how often a user shows it in a window.

        Parameters
        ----------
        whole
            Leave the last window out if the trace covers only a part of it.
        """
        windows = self.whole_windows if whole else self.windows
        index = (self.time_ns - self.start_ns) // self.window_ns
        user, attribute = self.user.astype(np.int64), self.attribute.astype(np.int64)
        if windows < self.windows:
            kept = index < windows
            index, user, attribute = index[kept], user[kept], attribute[kept]
        # Who showed what when, once each: two steps, so that no product of three counts overflows.
        if windows * self.attributes >= 2**63:
            index = np.unique(index, return_inverse=True)[1].astype(np.int64)
        _, place = np.unique(index * self.attributes + attribute, return_inverse=True)
        once = np.unique(place.astype(np.int64) * self.users + user, return_index=True)[1]
        shown = np.bincount(attribute[once], minlength=self.attributes)
        rows = np.bincount(attribute, minlength=self.attributes)
        every = windows * self.users
        return Population(self.users, shown / every, rows / every)


def from_columns(
    times: Columns,
    users: Columns,
    attributes: Columns | Mapping[str, Columns],
    *,
    window: Duration,
    time_unit: TimeUnit = "s",
) -> Population:
    """Estimate a population from the columns of a trace.

    The trace is cut into windows side by side, from its first time on. p^X of an attribute is the
    mean over the windows of the share of users who show it; its rate is how often a user shows it
    in a window. Attributes are in the order of their first row. A row without a time, a user or an
    attribute does not count.

    Parameters
    ----------
    times, users, attributes, window, time_unit
        As for `Trace.of_columns`.

    Examples
    --------
    >>> found = from_columns([0, 5, 12], ["ada", "bob", "ada"], ["x", "x", "y"], window=10)
    >>> found.users, found.p_x
    (2, array([0.5 , 0.25]))
    """
    return Trace.of_columns(
        times, users, attributes, window=window, time_unit=time_unit
    ).population()


def _plain(pieces: list[pa.Array]) -> pa.ChunkedArray:
    """Put a column together, in a type that Arrow's own functions take."""
    column = pa.chunked_array(pieces)
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    views = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    return column.cast(views.get(str(column.type), column.type))


def _nanoseconds(column: pa.ChunkedArray, scale_ns: int) -> Ints:
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.timestamp("ns")).cast(pa.int64())
        scale_ns = 1
    values = column.to_numpy()
    if values.dtype.kind not in "iuf":
        raise TypeError(f"times: expected numbers or datetimes, got {column.type}")
    # NaN is not within it.
    limit = _FARTHEST_NS / scale_ns
    if values.size and not -limit < values.min() <= values.max() < limit:
        raise ValueError("times: expected times within 146 years of 1970; is time_unit right?")
    if values.dtype.kind == "f":
        return np.asarray(np.rint(values * scale_ns), dtype=np.int64)
    return np.asarray(values, dtype=np.int64) * scale_ns


def _codes(column: pa.ChunkedArray) -> Ints:
    """Give each row the number of its value, -1 where there is none."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    found = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.int64)


def _dense(codes: ArrayLike) -> tuple[Codes, int]:
    """Give codes new numbers, in their order, so that each one occurs."""
    given = np.asarray(codes, np.int64)
    occurs = np.bincount(given) > 0
    return (np.cumsum(occurs) - 1)[given].astype(np.int32), int(np.count_nonzero(occurs))
