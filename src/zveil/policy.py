"""The policy: what is taken from a record, who decides about it, and what leaves."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from zveil._native import field_path
from zveil.durations import Duration, Size, duration_ns, size_bytes
from zveil.gate import Gate

Veiled = Literal["drop", "blank"]
TimeFormat = Literal["s", "ms", "us", "ns", "iso"]

Path: TypeAlias = tuple[str, ...]

EVERYTHING = "*"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What an operator says about a stream before it begins.

    Output is an allow-list: time, user, the attributes and what `keep` names leave, nothing else.

    Parameters
    ----------
    time, user
        Names of the fields. In JSON ``page.host`` is the member ``host`` of the member ``page``; a
        dot that belongs to a name has a backslash before it.
    attributes
        Names of the fields that are decided about, each by itself: the same word in two of them is
        two values.
    z, window
        As for `zveil.Gate`.
    keep
        Fields that leave as they are; ``*`` for all others.
    veiled
        ``"drop"``: a record leaves if at least one attribute is released, the others as null.
        ``"blank"``: every record leaves, which shows that its user was active.
    raw_users
        User ids leave as they are, not as pseudonyms.
    time_format
        What numbers mean, or ``"iso"``; found out from the first records by default.
    lateness, max_future, memory_limit
        As for `zveil.Gate`; the limit is for all attributes together.

    Raises
    ------
    ValueError
        If a field has two roles, or a kept field holds another inside.

    Examples
    --------
    >>> policy = Policy(time="ts", user="uid", attributes=("host",), z=20, window="1h")
    >>> policy.fields
    ('ts', 'uid', 'host')
    >>> Policy(time="ts", user="uid", attributes=("page.host",), z=20, window="1h", keep=("page",))
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: keep: 'page' holds 'page.host' inside, which would leave undecided; ...
    """

    time: str
    user: str
    attributes: tuple[str, ...]
    z: int
    window: Duration
    keep: tuple[str, ...] = ()
    veiled: Veiled = "drop"
    raw_users: bool = False
    time_format: TimeFormat | None = None
    lateness: Duration | None = None
    max_future: Duration | None = "1d"
    memory_limit: Size | None = None

    def __post_init__(self) -> None:
        if not self.attributes:
            raise ValueError("attribute: expected at least one field")
        roles = [("time", self.time), ("user", self.user)]
        roles += [("attribute", name) for name in self.attributes]
        paths: dict[Path, str] = {}
        for role, name in roles:
            path = tuple(field_path(name))
            if not all(path):
                raise ValueError(f"{role}: expected the name of a field, got {name!r}")
            if path in paths:
                raise ValueError(
                    f"{role}: {name!r} is the {paths[path]} already; a field has one role"
                )
            paths[path] = role
        for path, role in paths.items():
            for inner in _below(path, paths):
                raise ValueError(
                    f"{role}: {_name(path)!r} holds {_name(inner)!r} inside, the {paths[inner]}; "
                    "name the fields in it"
                )
        self._check_kept(set(paths))
        duration_ns(self.window, "window")

    def _check_kept(self, named: set[Path]) -> None:
        for name in self.keep:
            path = tuple(field_path(name))
            if not all(path):
                raise ValueError(f"keep: expected the name of a field, got {name!r}")
            for inner in _below(path, named):
                raise ValueError(
                    f"keep: {name!r} holds {_name(inner)!r} inside, which would leave undecided; "
                    "keep its other members by name"
                )
            for outer in named:
                if path[: len(outer)] == outer and path != outer:
                    raise ValueError(
                        f"keep: {name!r} is inside {_name(outer)!r}, which has a role of its own"
                    )

    @property
    def keeps_all(self) -> bool:
        """Whether fields without a name here leave too."""
        return EVERYTHING in self.keep

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that leave, in this order: time, user, attributes, then what is kept."""
        named = (self.time, self.user, *self.attributes)
        kept = [name for name in self.keep if name != EVERYTHING]
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

    def gates(self, *, z: int | None = None, threads: int = 1) -> list[Gate]:
        """Make the gates: one for each attribute, each with a secret of its own.

        Parameters
        ----------
        z
            Instead of the policy's, for a trial.
        threads
            As for `zveil.Gate`.
        """
        limit = None
        if self.memory_limit is not None:
            limit = size_bytes(self.memory_limit, "memory_limit") // len(self.attributes)
        return [
            Gate(
                self.z if z is None else z,
                self.window,
                lateness=self.lateness,
                max_future=self.max_future,
                memory_limit=limit,
                time_unit="ns",
                threads=threads,
            )
            for _ in self.attributes
        ]


def _name(path: Path) -> str:
    return ".".join(part.replace("\\", "\\\\").replace(".", "\\.") for part in path)


def _below(path: Path, others: Iterable[Path]) -> Iterator[Path]:
    """Give the others that are inside a path."""
    for other in others:
        if len(other) > len(path) and other[: len(path)] == path:
            yield other
