"""The parts of a policy, as the sections of a policy file: each checks what it can by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from zveil._native import field_path
from zveil.durations import LONGEST_NS, Duration, Size, duration_ns, size_bytes
from zveil.gate import Rule
from zveil.names import Names
from zveil.policy.error import PolicyError

if TYPE_CHECKING:
    from zveil.hierarchy import Hierarchy

TimeFormat = Literal["s", "ms", "us", "ns", "iso"]
Rounding = Literal["none", "minute", "hour", "day"]
Pseudonym = Literal["base32", "hex", "uuid", "crypto-pan", "raw"]
Empty = Literal["drop", "blank"]

Path: TypeAlias = tuple[str, ...]

EVERYTHING = "*"

_MINUTE_NS = 60 * 10**9
_WINDOWS = re.compile(r"([0-9]{1,9}) windows?")

STEPS_NS: dict[Rounding, int | None] = {
    "none": None,
    "minute": 60 * 10**9,
    "hour": 3_600 * 10**9,
    "day": 86_400 * 10**9,
}


@dataclass(frozen=True)
class Input:
    """What comes in.

    Parameters
    ----------
    format
        The format's name, such as ``"csv"``, or that of a log's preset, such as ``"zeek-dns"``;
        told by the file's ending or content by default.
    id
        The field of an id that no two records share: a record whose id came before is a repetition,
        and left out.
    """

    format: str | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        if self.id is not None and not all(field_path(self.id)):
            raise PolicyError(("id",), f"expected the name of a field, got {self.id!r}")

    def meaning(self) -> dict[str, Any]:
        """Give what it says in one form; how records are written is not what is decided."""
        return _told(id=None if self.id is None else field_path(self.id))


@dataclass(frozen=True)
class Time:
    """The time of a record.

    Parameters
    ----------
    field
        The name of the field.
    format
        What numbers mean, or ``"iso"``; found out from the first records by default.
    round
        What the time that leaves is rounded down to, in UTC. Decisions go by the exact time.
    year
        The year of the first time, in a log that writes none; told by when the file was written by
        default.
    """

    field: str
    _: KW_ONLY
    format: TimeFormat | None = None
    round: Rounding = "none"
    year: int | None = None

    def __post_init__(self) -> None:
        if self.format is not None:
            _one_of(self.format, get_args(TimeFormat), "format")
        _one_of(self.round, get_args(Rounding), "round")
        if self.year is not None and not 1970 <= self.year < 2262:
            raise PolicyError(("year",), f"expected a year from 1970 to 2261, got {self.year}")

    @property
    def step_ns(self) -> int | None:
        """What times that leave are multiples of; None for exact ones."""
        return STEPS_NS[self.round]

    def meaning(self) -> dict[str, Any]:
        """Give what it says in one form, without what holds by default."""
        rounding = None if self.round == "none" else self.round
        return _told(
            field=field_path(self.field), format=self.format, round=rounding, year=self.year
        )


@dataclass(frozen=True)
class User:
    """The user of a record.

    Parameters
    ----------
    field
        The name of the field.
    pseudonym
        What an id leaves as: ``"base32"``, ``"hex"``, ``"uuid"``, for IP addresses
        ``"crypto-pan"``, or ``"raw"`` for itself.
    rotate
        How often pseudonyms change: a duration of at least a minute, or windows such as
        ``"4 windows"``, counted from 1970 in UTC by the time of the record; never by default.
    keep_keys
        Past keys can be made again. By default they form a one-way chain.
    """

    field: str
    _: KW_ONLY
    pseudonym: Pseudonym = "base32"
    rotate: Duration | None = None
    keep_keys: bool = False

    def __post_init__(self) -> None:
        _one_of(self.pseudonym, get_args(Pseudonym), "pseudonym")
        if self.rotate is None and self.keep_keys:
            raise PolicyError(("keep_keys",), "no key changes; state rotate, or leave it out")
        if self.rotate is not None and self.pseudonym == "raw":
            raise PolicyError(("rotate",), "ids leave raw; state a pseudonym, or leave it out")
        self.period_ns(_MINUTE_NS)

    def period_ns(self, window_ns: int) -> int | None:
        """Give how long a pseudonym lasts, where windows are so long; None for ever.

        >>> User("uid", rotate="4 windows").period_ns(3_600 * 10**9) // 10**9
        14400
        """
        if self.rotate is None:
            return None
        rule = "expected a duration of at least 1m such as '24h', or windows such as '4 windows'"
        windows = _WINDOWS.fullmatch(self.rotate) if isinstance(self.rotate, str) else None
        try:
            period = int(windows[1]) * window_ns if windows else duration_ns(self.rotate, "rotate")
        except ValueError:
            raise PolicyError(("rotate",), f"{rule}, got {self.rotate!r}") from None
        if not _MINUTE_NS <= period <= LONGEST_NS:
            raise PolicyError(("rotate",), f"{rule}, got {self.rotate!r}")
        return period

    def meaning(self) -> dict[str, Any]:
        """Give what it says in one form, without what holds by default."""
        form = None if self.pseudonym == "base32" else self.pseudonym
        keeps = True if self.keep_keys else None
        return _told(field=field_path(self.field), pseudonym=form, keep_keys=keeps)


@dataclass(frozen=True)
class Attribute:
    """A field whose values are released or veiled, by a gate of its own.

    Parameters
    ----------
    field
        The name of the field; of a position the name that it leaves under.
    z, window, z_max
        As for `zveil.Gate`.
    veiled
        The text that a veiled value becomes where its record leaves; None for null.
    noise, noise_period
        As for `zveil.Gate`.
    swap
        The share of released values that leave as another one, released shortly before; from 0 to
        less than 1.
    hierarchy
        Its coarser labels, as `zveil.hierarchy.parse` makes them; None for the value alone.
    rule
        How levels are counted, as for `zveil.Gate`.
    level
        With the rule ``"fixed"``: which; 0 is the value itself, or the finest cell.
    fields
        Of a position the fields of latitude and longitude. They do not leave by themselves.
    only, except_
        Lists of names: values that are not in the one, or are in the other, do not count and never
        leave.
    """

    field: str
    _: KW_ONLY
    z: int
    window: Duration
    z_max: int | None = None
    veiled: str | None = None
    noise: int = 0
    noise_period: Duration | None = None
    swap: float = 0.0
    hierarchy: Hierarchy | None = None
    rule: Rule = "fall-through"
    level: int | None = None
    fields: tuple[str, ...] = ()
    only: Names | None = None
    except_: Names | None = None

    def __post_init__(self) -> None:
        _check_whole(self.z, "z")
        _check_duration(self.window, "window")
        if self.z_max is not None:
            _check_whole(self.z_max, "z_max")
            if self.z_max < self.z:
                raise PolicyError(
                    ("z_max",), f"expected at least z, which is {self.z}, got {self.z_max}"
                )
        self._check_noise()
        _check_share(self.swap, "swap")
        if self.fields and (self.only or self.except_):
            key = "only" if self.only else "except"
            raise PolicyError((key,), "a position is in no list of names")
        _one_of(self.rule, get_args(Rule), "rule")
        self._check_levels()

    def _check_noise(self) -> None:
        _check_whole(self.noise, "noise", least=0)
        if self.z_max is not None and self.z_max < self.z + self.noise:
            raise PolicyError(
                ("z_max",),
                f"expected room for z and its noise, {self.z} and {self.noise}: at least "
                f"{self.z + self.noise}, got {self.z_max}",
            )
        if self.noise_period is None:
            return
        _check_duration(self.noise_period, "noise_period")
        if not self.noise:
            raise PolicyError(("noise_period",), "expected with noise only: there are no draws")
        if not duration_ns(self.noise_period, "noise_period"):
            raise PolicyError(("noise_period",), "expected longer than no time at all")

    def _check_levels(self) -> None:
        of_position = self.hierarchy is not None and self.hierarchy.takes_position
        if of_position and len(self.fields) != 2:
            raise PolicyError(
                ("hierarchy",),
                "cells are of a position; say of which fields, and what they leave as, with "
                'fields = ["lat", "lon"] and name = "cell"',
            )
        if self.fields and not of_position:
            raise PolicyError(
                ("fields",), "expected for cells only, such as hierarchy = [{ cells = [9, 7] }]"
            )
        if self.hierarchy is None and self.rule != "fall-through":
            raise PolicyError(("rule",), "expected with a hierarchy only: there are no levels")
        if (self.rule == "fixed") != (self.level is not None):
            raise PolicyError(("level",), "expected with rule = 'fixed', and only there")
        self.gate_level()

    def gate_level(self) -> int | None:
        """Give the fixed level as a gate counts it, from the coarsest; None without one."""
        if self.hierarchy is None or self.level is None:
            return None
        try:
            return self.hierarchy.gate_level(self.level)
        except ValueError as error:
            raise _at("level", error) from None

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it is read from."""
        return self.fields or (self.field,)

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return duration_ns(self.window, "window")

    @property
    def most_z(self) -> int:
        """The most users of a value that its gate remembers: for z, and the noise on it."""
        return self.z + self.noise if self.z_max is None else self.z_max

    def meaning(self) -> dict[str, Any]:
        """Give what it says in one form, without what holds by default."""
        return _told(
            field=field_path(self.field),
            z=self.z,
            window_ns=self.window_ns,
            z_max=None if self.most_z == self.z + self.noise else self.z_max,
            veiled=self.veiled,
            noise=self.noise or None,
            noise_period_ns=(
                None
                if self.noise_period is None
                else duration_ns(self.noise_period, "noise_period")
            ),
            hierarchy=None if self.hierarchy is None else list(self.hierarchy.meaning),
            rule=None if self.rule == "fall-through" else self.rule,
            level=self.level,
            fields=[field_path(name) for name in self.fields] or None,
            swap=float(self.swap) or None,
            only=self.only and self.only.digest,
            except_=self.except_ and self.except_.digest,
        )


@dataclass(frozen=True, kw_only=True)
class Record:
    """What else leaves, and what becomes of a record with nothing released.

    Parameters
    ----------
    keep
        Fields that leave as they are; ``*`` for all others.
    empty
        ``"drop"``: a record leaves if at least one attribute is released.
        ``"blank"``: every record leaves, which shows that its user was active.
    """

    keep: tuple[str, ...] = ()
    empty: Empty = "drop"

    def __post_init__(self) -> None:
        _one_of(self.empty, get_args(Empty), "empty")

    def meaning(self) -> dict[str, Any]:
        """Give what it says in one form, without what holds by default and what is kept."""
        return _told(empty=None if self.empty == "drop" else self.empty)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is taken, and what it may cost.

    Parameters
    ----------
    lateness
        As for `zveil.Gate`, and the same for all attributes: the longest window by default.
    max_future
        As for `zveil.Gate`.
    memory
        For the state of all attributes together.
    attributes
        The most values that are remembered at a time, of all attributes together.
    """

    lateness: Duration | None = None
    max_future: Duration | None = "1d"
    memory: Size | None = None
    attributes: int | None = None

    def __post_init__(self) -> None:
        if self.lateness is not None:
            _check_duration(self.lateness, "lateness")
        if self.max_future is not None:
            _check_duration(self.max_future, "max_future")
        if self.memory is not None:
            try:
                size_bytes(self.memory, "memory")
            except ValueError as error:
                raise _at("memory", error) from None
        if self.attributes is not None:
            _check_whole(self.attributes, "attributes")

    def meaning(self) -> dict[str, Any]:
        """Give what it says in one form, without what holds by default and the lateness."""
        future: int | str | None = "any"
        if self.max_future is not None:
            future = duration_ns(self.max_future, "max_future")
        return _told(
            max_future_ns=None if future == STEPS_NS["day"] else future,
            memory=None if self.memory is None else size_bytes(self.memory, "memory"),
            attributes=self.attributes,
        )


def _told(**said: Any) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


def _one_of(value: str, choices: Sequence[str], key: str) -> None:
    if value not in choices:
        expected = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
        raise PolicyError((key,), f"expected {expected}, got {value!r}")


def _check_whole(value: int, key: str, least: int = 1) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PolicyError((key,), f"expected a whole number from {least}, got {value!r}")


def _check_share(value: float, key: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise PolicyError((key,), f"expected a share from 0 to less than 1, got {value!r}")


def _check_duration(value: Duration, key: str) -> None:
    try:
        duration_ns(value, key)
    except ValueError as error:
        raise _at(key, error) from None


def _at(key: str, error: ValueError) -> PolicyError:
    return PolicyError((key,), str(error).removeprefix(f"{key}: "))
