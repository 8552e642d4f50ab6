"""All that an operator says about a stream before it begins."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from zveil._native import NameFilter, field_path
from zveil.durations import Duration, Size, duration_ns, size_bytes
from zveil.gate import Gate
from zveil.io.presets import PRESETS
from zveil.keys import derive_key
from zveil.names import Names
from zveil.policy.error import PolicyError, Where
from zveil.policy.hold import Hold
from zveil.policy.parts import (
    EVERYTHING,
    Attribute,
    Empty,
    Input,
    Limits,
    Path,
    Pseudonym,
    Record,
    Rounding,
    Time,
    TimeFormat,
    User,
)

# The keys of so many periods are held at most, for events that come late.
_MOST_PERIODS = 100_000

SMALLEST_GATE = 4 << 20
"""Bytes that a gate needs at least for each thread."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What an operator says about a stream before it begins; its parts are those of a policy file.

    Output is an allow-list: time, user, the attributes and what the record keeps leave, nothing
    else. In JSON ``page.host`` is the member ``host`` of the member ``page``; a dot that belongs to
    a name has a backslash before it.

    Parameters
    ----------
    time, user
        Their fields, and as what they leave.
    attributes
        The fields that are decided about, each by itself: the same word in two of them is two
        values.
    record, limits, input
        What else leaves; what is taken; what comes in.
    hold
        A level of k-anonymity that z is tuned to hold; the z of an attribute is then its smallest.

    Raises
    ------
    PolicyError
        If a field has two roles, or a kept field holds another inside.

    Examples
    --------
    >>> host = Attribute("host", z=20, window="1h")
    >>> Policy(time=Time("ts"), user=User("uid"), attributes=(host,)).fields
    ('ts', 'uid', 'host')
    >>> Policy.of(time="ts", user="uid", attributes=["page.host"], z=20, window="1h", keep=["page"])
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    zveil.policy.error.PolicyError: record.keep: 'page' holds 'page.host' inside, which would ...
    """

    time: Time
    user: User
    attributes: tuple[Attribute, ...]
    record: Record = field(default_factory=Record)
    limits: Limits = field(default_factory=Limits)
    input: Input = field(default_factory=Input)
    hold: Hold | None = None

    @classmethod
    def of(
        cls,
        *,
        time: str,
        user: str,
        attributes: Sequence[str],
        z: int,
        window: Duration,
        noise: int = 0,
        keep: Sequence[str] = (),
        empty: Empty = "drop",
        raw_users: bool = False,
        pseudonym: Pseudonym = "base32",
        rotate: Duration | None = None,
        keep_keys: bool = False,
        time_format: TimeFormat | None = None,
        round: Rounding = "none",  # noqa: A002  # what it is called everywhere
        lateness: Duration | None = None,
        max_future: Duration | None = "1d",
        memory: Size | None = None,
        swap: float = 0.0,
        max_attributes: int | None = None,
        format: str | None = None,  # noqa: A002  # what it is called everywhere
        id: str | None = None,  # noqa: A002  # what it is called everywhere
        year: int | None = None,
        only: Names | None = None,
        except_: Names | None = None,
        hold: Hold | None = None,
    ) -> "Policy":
        """Make a policy of what `zveil run` takes as options: one z and window for all."""
        parts: list[Attribute] = []
        for number, name in enumerate(attributes):
            try:
                parts.append(
                    Attribute(
                        name, z=z, window=window, noise=noise, swap=swap, only=only, except_=except_
                    )
                )
            except PolicyError as error:
                raise error.below(("attribute", number)) from None
        try:
            pseudonym = "raw" if raw_users else pseudonym
            whose = User(user, pseudonym=pseudonym, rotate=rotate, keep_keys=keep_keys)
        except PolicyError as error:
            raise error.below(("user",)) from None
        try:
            limits = Limits(
                lateness=lateness, max_future=max_future, memory=memory, attributes=max_attributes
            )
        except PolicyError as error:
            raise error.below(("limits",)) from None
        try:
            comes = Input(format, id)
        except PolicyError as error:
            raise error.below(("input",)) from None
        return cls(
            time=Time(time, format=time_format, round=round, year=year),
            user=whose,
            attributes=tuple(parts),
            record=Record(keep=tuple(keep), empty=empty),
            limits=limits,
            input=comes,
            hold=hold,
        )

    def __post_init__(self) -> None:
        if not self.attributes:
            raise PolicyError(("attribute",), "expected at least one field")
        roles: list[tuple[Where, str]] = [
            (("time",), self.time.field),
            (("user",), self.user.field),
        ]
        roles += [
            (("attribute", n), name)
            for n, each in enumerate(self.attributes)
            for name in (each.field, *each.fields)
        ]
        paths: dict[Path, Where] = {}
        for role, name in roles:
            path = tuple(field_path(name))
            if not all(path):
                raise _at_field(role, f"expected the name of a field, got {name!r}")
            if path in paths:
                raise _at_field(
                    role, f"{name!r} is the {paths[path][0]} already; a field has one role"
                )
            paths[path] = role
        for path, role in paths.items():
            for inner in _below(path, paths):
                raise _at_field(
                    role,
                    f"{_name(path)!r} holds {_name(inner)!r} inside, the {paths[inner][0]}; "
                    "name the fields in it",
                )
        self._check_kept(list(paths))
        if self.rotate_ns and self.lateness_ns // self.rotate_ns > _MOST_PERIODS:
            raise PolicyError(
                ("user", "rotate"),
                f"expected at least a {_MOST_PERIODS:,}th of the lateness: so many keys are held",
            )
        self._check_preset()
        if self.hold is not None:
            self._check_hold(self.hold)

    def _check_hold(self, hold: Hold) -> None:
        if self.rotate_ns is None:
            raise PolicyError(
                ("user", "rotate"),
                "expected with hold: the level is held over the time that a pseudonym lasts, and "
                "over all time none can be; state such as '24 windows'",
            )
        for number, each in enumerate(self.attributes):
            if each.z > hold.z_max:
                raise PolicyError(
                    ("attribute", number, "z"),
                    f"expected at most hold.z_max, which is {hold.z_max}, got {each.z}",
                )
        # What may be needed later must be remembered from the beginning.
        held = (
            replace(
                each,
                z=max(each.z, hold.z_min),
                z_max=max(each.z_max or 0, hold.z_max + each.noise),
            )
            for each in self.attributes
        )
        object.__setattr__(self, "attributes", tuple(held))

    def _check_preset(self) -> None:
        preset = PRESETS.get(self.input.format or "")
        if preset is None:
            return
        if self.time.format is not None and preset.format.has_known_times:
            raise PolicyError(
                ("time", "format"), "this log tells itself what its times are; leave it out"
            )
        for kept in self.record.keep:
            for name in preset.leaks(self.names, kept):
                among = " keeps the field that" if kept == EVERYTHING else ""
                raise _at_keep(
                    f"{kept!r}{among} holds {name!r} inside, which would leave undecided; keep "
                    "other fields by name"
                )

    def _check_kept(self, named: list[Path]) -> None:
        positions = {
            tuple(field_path(name)): each.field for each in self.attributes for name in each.fields
        }
        for name in self.record.keep:
            path = tuple(field_path(name))
            if not all(path):
                raise _at_keep(f"expected the name of a field, got {name!r}")
            if path in positions:
                raise _at_keep(
                    f"{name!r} is part of {positions[path]!r}, and would tell the exact position"
                )
            for inner in _below(path, named):
                raise _at_keep(
                    f"{name!r} holds {_name(inner)!r} inside, which would leave undecided; "
                    "keep its other members by name"
                )
            for outer in named:
                if path[: len(outer)] == outer and path != outer:
                    raise _at_keep(
                        f"{name!r} is inside {_name(outer)!r}, which has a role of its own"
                    )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(each.field for each in self.attributes)

    @property
    def keeps_all(self) -> bool:
        """Whether fields without a name here leave too."""
        return EVERYTHING in self.record.keep

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that leave, in this order: time, user, attributes, then what is kept."""
        named = (self.time.field, self.user.field, *self.names)
        kept = [name for name in self.record.keep if name != EVERYTHING]
        # By path: a name may be spelled in several ways.
        paths: dict[Path, str] = {}
        for name in (*named, *kept):
            paths.setdefault(tuple(field_path(name)), name)
        # A field inside another that is kept leaves with it.
        return tuple(
            name
            for path, name in paths.items()
            if not any(path[:length] in paths for length in range(1, len(path)))
        )

    @property
    def lateness_ns(self) -> int:
        """How late a record may come, in nanoseconds; the longest window if nothing is stated."""
        if self.limits.lateness is not None:
            return duration_ns(self.limits.lateness, "lateness")
        return max(each.window_ns for each in self.attributes)

    @property
    def rotate_ns(self) -> int | None:
        """How long a pseudonym lasts, in nanoseconds; windows are the longest there are."""
        try:
            return self.user.period_ns(max(each.window_ns for each in self.attributes))
        except PolicyError as error:
            raise error.below(("user",)) from None

    def meaning(self) -> dict[str, Any]:
        """Give what it means in one form: how it is spelled, and defaults, make no difference."""
        longest = max(each.window_ns for each in self.attributes)
        late = {} if self.lateness_ns == longest else {"lateness_ns": self.lateness_ns}
        rotates = {} if self.rotate_ns is None else {"rotate_ns": self.rotate_ns}
        return {
            "input": self.input.meaning(),
            "time": self.time.meaning(),
            "user": self.user.meaning() | rotates,
            "attribute": [each.meaning() for each in self.attributes],
            "record": self.record.meaning(),
            "limits": self.limits.meaning() | late,
            "fields": [field_path(name) for name in self.fields],
            "rest": self.keeps_all,
        } | ({} if self.hold is None else {"hold": self.hold.meaning()})

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of what it means: the same for all policies that mean the same.

        >>> def policy(window):
        ...     return Policy.of(time="t", user="u", attributes=["a"], z=2, window=window)
        >>> policy("1h").fingerprint == policy(3600).fingerprint != policy("2h").fingerprint
        True
        """
        meaning = json.dumps(self.meaning(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(f"zveil policy 1\n{meaning}".encode()).hexdigest()[:32]

    def filters(self) -> list[NameFilter]:
        """Give the filters of the attributes by lists of names; nothing if none has one."""
        if all(each.only is None and each.except_ is None for each in self.attributes):
            return []
        return [
            NameFilter(
                None if each.only is None else each.only.names,
                None if each.except_ is None else each.except_.names,
            )
            for each in self.attributes
        ]

    def gates(
        self,
        *,
        z: int | None = None,
        threads: int = 1,
        key: bytes | None = None,
        memory: int | None = None,
    ) -> list[Gate]:
        """Make the gates: one for each attribute, each with a secret of its own.

        Where a level is to be held, they are closed: `zveil.hold.Controller` opens them.

        Parameters
        ----------
        z
            Instead of the policy's, for a trial.
        threads
            As for `zveil.Gate`.
        key
            32 secret bytes that the secrets are derived from, each by the name of its attribute, so
            that the same key draws the same noise and swaps; random by default.
        memory
            Bytes for all of them where the policy has no limit; no limit by default.
        """
        limit = self.memory_part(memory, threads=threads)
        gates = []
        for number, each in enumerate(self.attributes):
            try:
                gates.append(
                    Gate(
                        each.z if z is None else z,
                        each.window,
                        z_max=each.z_max if z is None else None,
                        lateness=self._lateness(),
                        max_future=self.limits.max_future,
                        rule=each.rule,
                        fixed_level=each.gate_level(),
                        memory_limit=limit,
                        time_unit="ns",
                        threads=threads,
                        noise=each.noise,
                        noise_period=each.noise_period,
                        key=None if key is None else derive_key(key, _label(each)),
                    )
                )
            except ValueError as error:
                raise _of_gate(error, number, each) from None
            if self.limits.attributes is not None:
                gates[-1]._limit_attributes(self.attributes_part or 1)
            if self.hold is not None and z is None:
                # Whoever does not know how to hold a level releases nothing.
                gates[-1].close()
        return gates

    def memory_part(self, default: int | None = None, *, threads: int = 1) -> int | None:
        """Give the bytes that each gate may take; `default` for all where nothing is stated."""
        if self.limits.memory is not None:
            return size_bytes(self.limits.memory, "memory") // len(self.attributes)
        if default is None:
            return None
        return max(default // len(self.attributes), SMALLEST_GATE * threads)

    @property
    def attributes_part(self) -> int | None:
        """How many values each gate may remember; None for any number."""
        most = self.limits.attributes
        return None if most is None else max(most // len(self.attributes), 1)

    def _lateness(self) -> Duration:
        stated = self.limits.lateness
        return stated if stated is not None else f"{self.lateness_ns}ns"


def _label(attribute: Attribute) -> str:
    # By path: a name may be spelled in several ways.
    return "gate " + json.dumps(field_path(attribute.field), separators=(",", ":"))


def _of_gate(error: ValueError, number: int, attribute: Attribute) -> PolicyError:
    """Name the key that a gate's complaint is about."""
    name, _, words = str(error).partition(": ")
    keys: dict[str, Where] = {
        "z": ("attribute", number, "z"),
        "z_max": ("attribute", number, "z" if attribute.z_max is None else "z_max"),
        "window": ("attribute", number, "window"),
        "noise": ("attribute", number, "noise"),
        "noise_period": ("attribute", number, "noise_period"),
        "lateness": ("limits", "lateness"),
        "max_future": ("limits", "max_future"),
        "memory_limit": ("limits", "memory"),
    }
    return PolicyError(keys[name], words) if name in keys else PolicyError((), str(error))


def _at_field(role: Where, words: str) -> PolicyError:
    return PolicyError((*role, "field"), words)


def _at_keep(words: str) -> PolicyError:
    return PolicyError(("record", "keep"), words)


def _name(path: Path) -> str:
    return ".".join(part.replace("\\", "\\\\").replace(".", "\\.") for part in path)


def _below(path: Path, others: Iterable[Path]) -> Iterator[Path]:
    """Give the others that are inside a path."""
    for other in others:
        if len(other) > len(path) and other[: len(path)] == path:
            yield other
