"""The meter that runs beside the gates: exact, a lookup or two for each release."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Self

from zveil import _native
from zveil.durations import Duration, Size, duration_ns, size_bytes
from zveil.meter.reading import Reading
from zveil.times import TimeUnit, unit_ns

if TYPE_CHECKING:
    from zveil.columns import Columns


class Meter(_native.Meter):
    """Measure how many visible users look the same in what has been released.

    Look the same to whom: to an observer who sees the *set of values* of each pseudonym since
    pseudonyms last changed, and no times. Exact at every moment. Users and values are kept as keyed
    hashes only. Methods may be called from several threads.

    Parameters
    ----------
    rotate
        How often pseudonyms change: ``"24h"``, a timedelta, or seconds; never by default. Periods
        are counted from 1970 in UTC, and each is measured by itself.
    lateness
        How late a release may come: so long the period before stays open; not at all by default.
    memory_limit
        ``"2GB"`` or bytes. When it is reached, the period is not measured any more, and says so;
        the next begins anew. About 130 bytes for each user with up to 16 values, and at most 18 for
        each further value; 37 for each different value, and 32 for each set that users have.
    time_unit
        What plain numbers are: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
    key
        32 secret bytes for the hashes; random by default.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> meter = Meter()
    >>> meter.add([0, 1, 2, 3], ["ada", "bob", "bob", "cyd"], ["a", "a", "b", "a"])
    >>> now = meter.report()
    >>> now.users, now.classes, now.sizes, now.share(2)
    (3, 2, {1: 1, 2: 2}, 0.6666666666666666)
    """

    __slots__ = ("_unit_ns",)
    _unit_ns: int

    def __new__(
        cls,
        *,
        rotate: Duration | None = None,
        lateness: Duration = 0,
        memory_limit: Size | None = None,
        time_unit: TimeUnit = "s",
        key: bytes | None = None,
    ) -> Self:
        """Check the options and make the meter."""
        if key is not None and len(key) != 32:
            raise ValueError("key: expected 32 bytes, such as secrets.token_bytes(32)")
        self = super().__new__(
            cls,
            secrets.token_bytes(32) if key is None else key,
            rotate_ns=None if rotate is None else duration_ns(rotate, "rotate"),
            lateness_ns=duration_ns(lateness, "lateness"),
            memory_limit=None if memory_limit is None else size_bytes(memory_limit, "memory_limit"),
        )
        self._unit_ns = unit_ns(time_unit)
        return self

    def add(
        self,
        times: Columns,
        users: Columns,
        values: Columns,
        released: Columns | None = None,
        *,
        field: str = "",
        time_unit: TimeUnit | None = None,
    ) -> None:
        """Take in what was released, in its order.

        Takes NumPy arrays, Arrow arrays, pandas and Polars series, and sequences. What has no user,
        no value or no time adds nothing.

        Parameters
        ----------
        times
            Datetimes of any unit, or numbers in `time_unit`: they say which period it is.
        users
            As they leave: pseudonyms, or ids that leave raw.
        values
            As they leave.
        released
            True where a row was released, as `Gate.observe_many` answers; all by default.
        field
            What the values are of: the same word in two fields is two values.
        time_unit
            What numbers are in this call, if not what the meter was told.
        """
        import numpy as np

        from zveil.columns import aligned, flags

        unit = self._unit_ns if time_unit is None else unit_ns(time_unit)
        mask = None if released is None else np.asarray(released, np.bool_)
        if mask is not None and len(mask) != len(times):
            raise ValueError(
                f"released: expected one for each row, got {len(mask)} of {len(times)}"
            )
        start = 0
        for when, who, what in aligned([times, users, values], ["times", "users", "values"]):
            stop = start + len(when)
            left = None if mask is None else flags(mask[start:stop])
            self._add_arrays(when, who, [(field, what, left)], unit)
            start = stop

    def report(self) -> Reading:
        """Show the present period: the one that the newest time lies in.

        >>> Meter(rotate="24h").report().users
        0
        """
        return Reading(**self._present())

    def periods(self) -> list[Reading]:
        """Show all periods with something released, in their order: the last thousand."""
        return [Reading(**found) for found in self._periods()]

    @classmethod
    def restore(cls, saved: bytes, key: bytes, *, time_unit: TimeUnit = "s") -> Self:
        """Make the meter that `save` was called of; it goes on as if nothing had been between.

        Parameters
        ----------
        saved
            What `save` gave.
        key
            The `key` of that meter.
        time_unit
            As for `Meter`.

        Raises
        ------
        SnapshotError
            If it is of another version, cut off or altered. It is not encrypted, and not
            authenticated: keep it where nobody else writes.
        """
        self = cls(time_unit=time_unit, key=key)
        self._load(saved)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a meter holds a secret and is not pickled; use save() and restore()")
