"""The gate: one decision for each observation, at the moment it arrives."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, overload

from zveil import _native
from zveil.durations import Duration, Size, duration_ns, size_bytes
from zveil.times import TimeUnit, unit_ns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from zveil.columns import Columns

Event = TypeVar("Event")
Rule = Literal["fall-through", "fixed", "authors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a gate has done since its start, and what it holds now."""

    observed: int
    """Observations decided: released + veiled."""
    released: int
    veiled: int
    late: int
    """Veiled because they were older than the gate's clock - lateness."""
    future: int
    """Veiled because they were too far past the wall clock."""
    invalid: int
    """Veiled because user, attribute or time was missing or no such thing."""
    refused: int
    """Times that the memory limit turned a new attribute away or cut a crowd short."""
    attributes: int
    """Attributes remembered now."""
    entries: int
    """Users remembered now, summed over the attributes; some may stand more than once."""
    bytes: int
    """Memory of the state."""
    clock_ns: int | None
    """The largest time seen, in nanoseconds since 1970."""


class Gate(_native.Gate):
    """Release an observation if z users showed its attribute within the window, veil it otherwise.

    ::

        clock - window                       clock: the attribute's largest time
        ──────┃━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┃──────▶ time
              ┗ a user last seen here counts    ┗ and one seen here

    Exact: the answer is Algorithm 1's on every stream, in memory for z users an attribute. The
    decision looks only at the past, and every observation counts, released or not. User ids and
    values are kept as keyed hashes only. Methods may be called from several threads.

    Parameters
    ----------
    z
        Distinct users needed, the observed one among them; from 1.
    window
        ``"1h"``, ``"90s"``, a timedelta, or seconds. A user seen exactly a window ago counts.
    z_max
        The largest z that may be set later, and the noise on it; both as they are by default.
        Memory grows with it.
    lateness
        Observations older than the gate's clock by more than this are veiled and counted as late;
        the window by default.
    max_future
        Observations past the wall clock by more than this are veiled and counted as future, or they
        would make everyone else late; ``"1d"`` by default, None to take any time.
    time_unit
        What plain numbers are: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``. Integers are exact, floats
        are rounded to the microsecond (nanoseconds: to the nanosecond).
    rule
        How the levels of one observation are counted, see `observe_levels`: ``"fall-through"``,
        ``"fixed"`` (with ``fixed_level``, 0 is the coarsest) or ``"authors"``.
    memory_limit
        ``"2GB"`` or bytes, at least 4 MiB for each thread. When it is reached, new attributes are
        veiled and counted as refused.
    threads
        Threads for large batches. Any number gives the same decisions.
    noise
        An attribute needs up to so many users more than z. How many is drawn for each under the
        key, so that nobody outside knows the threshold; 0 by default. Costs time.
    noise_period
        For how long a draw holds; for good by default. Over many draws the least of them, z, shows.
    key
        32 secret bytes for the hashes and snapshots; random by default. Keep it where the snapshots
        are not.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> gate = Gate(z=3, window="1h")
    >>> visits = [(0, "ada"), (600, "bob"), (1200, "ada"), (1800, "cyd"), (9000, "dan")]
    >>> [gate.observe(t, user, "example.org") for t, user in visits]
    [False, False, False, True, False]
    """

    __slots__ = ("_time_unit",)
    _time_unit: str

    def __new__(
        cls,
        z: int,
        window: Duration,
        *,
        z_max: int | None = None,
        lateness: Duration | None = None,
        max_future: Duration | None = "1d",
        time_unit: TimeUnit = "s",
        rule: Rule = "fall-through",
        fixed_level: int | None = None,
        memory_limit: Size | None = None,
        threads: int = 1,
        noise: int = 0,
        noise_period: Duration | None = None,
        key: bytes | None = None,
    ) -> Self:
        """Check the options and make the gate."""
        window_ns = duration_ns(window, "window")
        if rule not in ("fall-through", "fixed", "authors"):
            raise ValueError(f"rule: expected 'fall-through', 'fixed' or 'authors', got {rule!r}")
        if (rule == "fixed") != (fixed_level is not None):
            raise ValueError(
                "fixed_level: expected with rule='fixed', and only there: the number of the level, "
                "0 is the coarsest"
            )
        z, noise = _whole(z, "z", 1), _whole(noise, "noise", 0)
        self = super().__new__(
            cls,
            z,
            window_ns,
            z_max=_whole(z + noise if z_max is None else z_max, "z_max", 1),
            lateness_ns=window_ns if lateness is None else duration_ns(lateness, "lateness"),
            max_future_ns=None if max_future is None else duration_ns(max_future, "max_future"),
            unit_ns=unit_ns(time_unit),
            rule=rule,
            fixed_level=None if fixed_level is None else _level(fixed_level),
            memory_limit=None if memory_limit is None else size_bytes(memory_limit, "memory_limit"),
            threads=_whole(threads, "threads", 1),
            noise=noise,
            noise_period_ns=(
                None if noise_period is None else duration_ns(noise_period, "noise_period")
            ),
            key=_secret(key),
        )
        self._time_unit = time_unit
        return self

    def observe_many(
        self,
        times: Columns,
        users: Columns,
        attributes: Columns,
        *,
        time_unit: TimeUnit | None = None,
    ) -> NDArray[np.bool_]:
        """Decide many observations in their order: True where released.

        Takes NumPy arrays, Arrow arrays (text, bytes, integers and dictionaries of them without a
        copy), pandas and Polars series, and sequences. Nulls are veiled and never counted.

        Parameters
        ----------
        times
            Datetimes of any unit, or numbers in `time_unit`.
        users, attributes
            Text, bytes, or integers; attributes may be floats and bools too.
        time_unit
            What numbers are in this call, if not what the gate was told.

        Examples
        --------
        >>> gate = Gate(z=2, window="1h")
        >>> gate.observe_many([0, 60, 61], ["ada", "bob", None], ["example.org"] * 3).tolist()
        [False, True, False]
        """
        import numpy as np

        from zveil.columns import aligned

        unit = None if time_unit is None else unit_ns(time_unit)
        masks = [
            np.frombuffer(self._observe_arrays(first, second, third, unit), dtype=np.bool_)
            for first, second, third in aligned(
                [times, users, attributes], ["times", "users", "attributes"]
            )
        ]
        return masks[0] if len(masks) == 1 else np.concatenate([np.empty(0, np.bool_), *masks])

    def observe_levels_many(
        self,
        times: Columns,
        users: Columns,
        levels: Iterable[Columns],
        *,
        time_unit: TimeUnit | None = None,
    ) -> NDArray[np.int8]:
        """Decide many observations with levels: the number of the level released, -1 where veiled.

        Parameters
        ----------
        times, users, time_unit
            As for `observe_many`.
        levels
            One column for each level, coarsest first.

        Examples
        --------
        >>> gate = Gate(z=2, window="1h")
        >>> sites, pages = ["news", "news"], ["news/a", "news/b"]
        >>> gate.observe_levels_many([0, 1], ["ada", "bob"], [sites, pages]).tolist()
        [-1, 0]
        """
        import numpy as np

        from zveil.columns import aligned

        unit = None if time_unit is None else unit_ns(time_unit)
        columns = list(levels)
        names = [f"levels[{number}]" for number in range(len(columns))]
        found = [
            np.frombuffer(self._observe_level_arrays(first, second, rest, unit), dtype=np.int8)
            for first, second, *rest in aligned(
                [times, users, *columns], ["times", "users", *names]
            )
        ]
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, np.int8), *found])

    @overload
    def filter(
        self, events: AsyncIterable[Event], *, time: Any = 0, user: Any = 1, attribute: Any = 2
    ) -> AsyncIterator[Event]: ...

    @overload
    def filter(
        self, events: Iterable[Event], *, time: Any = 0, user: Any = 1, attribute: Any = 2
    ) -> Iterator[Event]: ...

    def filter(
        self,
        events: Iterable[Event] | AsyncIterable[Event],
        *,
        time: Any = 0,
        user: Any = 1,
        attribute: Any = 2,
    ) -> Iterator[Event] | AsyncIterator[Event]:
        """Pass on released events as they come, for a loop or an async one.

        Parameters
        ----------
        events
            Events in which ``event[time]``, ``event[user]`` and ``event[attribute]`` can be looked
            up: tuples, or dicts with their keys named.
        time, user, attribute
            Where they are in an event.

        Examples
        --------
        >>> gate = Gate(z=2, window="1h")
        >>> visits = [{"ts": 0, "uid": 1, "host": "a"}, {"ts": 1, "uid": 2, "host": "a"}]
        >>> list(gate.filter(visits, time="ts", user="uid", attribute="host"))
        [{'ts': 1, 'uid': 2, 'host': 'a'}]
        """

        def released(event: Event) -> bool:
            fields = cast(Any, event)
            try:
                observation = fields[time], fields[user], fields[attribute]
            except (IndexError, KeyError, TypeError):
                raise ValueError(
                    "filter: an event lacks its time, user or attribute; say where they are, such "
                    'as time="ts", user="uid", attribute="host"'
                ) from None
            return self.observe(*observation)

        if isinstance(events, AsyncIterable):
            return (event async for event in events if released(event))
        return filter(released, events)

    def stats(self, *, entries: bool = True) -> Stats:
        """Count what was decided and what is held.

        Parameters
        ----------
        entries
            Whether to count the entries too, which takes a pass over the state; 0 if not.

        Examples
        --------
        >>> Gate(z=2, window="1h").stats().observed
        0
        """
        return Stats(**self._counts(entries))

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, encrypted under the gate's key.

        The file is replaced whole or not at all, and readable by its owner only. It holds keyed
        hashes and times, no user and no value.

        Parameters
        ----------
        path
            Where to; the folder must be there.

        Raises
        ------
        OSError
            If the file cannot be written. What stood there before still does.
        """
        self._save(path, self._note())

    def to_bytes(self) -> bytes:
        """Give the state as bytes: what `snapshot` writes, for whoever keeps it elsewhere.

        Examples
        --------
        >>> key = bytes(range(32))
        >>> gate = Gate(z=2, window="1h", key=key)
        >>> gate.observe(0, "ada", "example.org")
        False
        >>> Gate.from_bytes(gate.to_bytes(), key).observe(1, "bob", "example.org")
        True
        """
        return self._to_bytes(self._note())

    @classmethod
    def from_bytes(cls, state: bytes, key: bytes, *, threads: int = 1) -> Self:
        """Make the gate that `to_bytes` was asked for; it goes on as if nothing had been between.

        Parameters
        ----------
        state
            What `to_bytes` gave.
        key, threads
            As for `restore`.

        Raises
        ------
        SnapshotError
            If the bytes are foreign, of another version or key, cut off or altered.
        """
        secret = _needed(key)
        return cls._of(_native.open_bytes(state, secret, _whole(threads, "threads", 1)), secret)

    @classmethod
    def restore(cls, path: str | os.PathLike[str], key: bytes, *, threads: int = 1) -> Self:
        """Make the gate that a snapshot was taken of; it goes on as if nothing had been between.

        Parameters
        ----------
        path
            The snapshot.
        key
            The `key` of the gate that took it.
        threads
            As for `Gate`; need not be what it was.

        Raises
        ------
        SnapshotError
            If the file is foreign, of another version or key, cut off or altered.
        OSError
            If it cannot be read.
        """
        secret = _needed(key)
        return cls._of(_native.open_snapshot(path, secret, _whole(threads, "threads", 1)), secret)

    def _note(self) -> bytes:
        return json.dumps({"time_unit": self._time_unit}).encode()

    @classmethod
    def _of(cls, saved: _native.Saved, secret: bytes) -> Self:
        note = json.loads(saved.note)
        future = None if saved.max_future_ns is None else saved.max_future_ns / 1e9
        self = cls(1, 0, max_future=future, time_unit=note["time_unit"], key=secret)
        self._adopt(saved)
        return self

    @property
    def z(self) -> int:
        """Distinct users needed. May be set up to `z_max`; holds at once on every attribute."""
        return int(self._settings()["z"])

    @z.setter
    def z(self, value: int) -> None:
        self._set_z(_whole(value, "z", 1))

    @property
    def z_max(self) -> int:
        """The largest z that may be set, with what noise may add to it."""
        return int(self._settings()["z_max"])

    @property
    def noise(self) -> int:
        """The most users that an attribute may need past z."""
        return int(self._settings()["noise"])

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return int(self._settings()["window_ns"])

    @property
    def lateness_ns(self) -> int:
        """How much later than the gate's clock an observation may be, in nanoseconds."""
        return int(self._settings()["lateness_ns"])

    def __repr__(self) -> str:
        settings = self._settings()
        return (
            f"Gate(z={settings['z']}, window_ns={settings['window_ns']}, "
            f"z_max={settings['z_max']}, lateness_ns={settings['lateness_ns']})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a gate holds a secret and is not pickled; use snapshot() and restore()")


def _whole(value: int, name: str, least: int) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = value.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: expected a whole number, got {type(value).__name__}") from None
    if not least <= number < 2**63:
        raise ValueError(f"{name}: expected a whole number from {least}, got {value!r}")
    return number


def _level(value: int) -> int:
    number = _whole(value, "fixed_level", 0)
    if number >= _native.MOST_LEVELS:
        last = _native.MOST_LEVELS - 1
        raise ValueError(f"fixed_level: expected from 0 to {last}, got {number}")
    return number


def _secret(key: bytes | None) -> bytes | None:
    if key is None or (isinstance(key, bytes | bytearray) and len(key) == 32):
        return key if key is None else bytes(key)
    raise ValueError("key: expected 32 bytes, such as secrets.token_bytes(32)")


def _needed(key: bytes) -> bytes:
    secret = _secret(key)
    if secret is None:
        raise ValueError("key: expected the 32 bytes that the gate's key was, got None")
    return secret
