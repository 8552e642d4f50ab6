"""What the controller did and saw: changes of z with their reasons, and periods with their ends."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from zveil.policy.hold import Hold

if TYPE_CHECKING:
    from zveil.hold.outlook import Outlook
    from zveil.hold.standing import Standing

Kind = Literal["opened", "raised", "lowered", "closed"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of z, and why.

    Attributes
    ----------
    at_ns
        The newest time of the stream then, in nanoseconds since 1970.
    kind
        What became of z.
    before, z
        What was needed, and what is; None where nothing is released.
    wanted
        The share of visible users who are to be k alike when the period ends.
    share
        What the meter showed; None where nobody was visible.
    outlook_before, outlook
        What the period would end with at the z before, and is expected to end with now; None where
        nothing was released.
    """

    at_ns: int
    kind: Kind
    before: int | None
    z: int | None
    k: int
    wanted: float
    share: float | None
    outlook_before: float | None
    outlook: float | None

    @classmethod
    def of(
        cls, at_ns: int, hold: Hold, now: Standing, z: int | None, outlook: Outlook | None
    ) -> Change:
        """Describe the change to a z, from how things stand and what to expect of it."""

        def expected(z: int | None) -> float | None:
            return None if z is None or outlook is None else outlook.at(z)

        return cls(
            at_ns=at_ns,
            kind=_kind(now.z, z),
            before=now.z,
            z=z,
            k=hold.k,
            wanted=hold.p,
            share=now.share,
            outlook_before=expected(now.z),
            outlook=expected(z),
        )

    def __str__(self) -> str:
        return f"{moment(self.at_ns)}: {self._what()}"

    def _what(self) -> str:
        if self.z is None:
            return (
                f"nothing more leaves in this period: {_percent(self.share)} of the visible users "
                f"are {self.k} alike, {_percent(self.wanted)} are wanted, and it would go on "
                "falling"
            )
        end = f"the period is expected to end with {_percent(self.outlook)}"
        if self.before is None:
            return f"z = {self.z:,}: {end} of the visible users {self.k} alike"
        would = f"at {self.before:,} it would be {_percent(self.outlook_before)}"
        return (
            f"z goes {'up' if self.kind == 'raised' else 'down'} from {self.before:,} to "
            f"{self.z:,}: {end} of the visible users {self.k} alike; {would}, and "
            f"{_percent(self.wanted)} are wanted"
        )

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A period that is over.

    Attributes
    ----------
    start_ns
        When it began, in nanoseconds since 1970.
    visible
        Users with something released.
    share
        Of them, those who were k alike at its end, but for records that came late; None where
        nobody was visible.
    z
        What was needed at its end; None where nothing was released then.
    """

    start_ns: int
    visible: int
    share: float | None
    z: int | None

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain values, for JSON."""
        return asdict(self)


def _kind(before: int | None, z: int | None) -> Kind:
    if z is None:
        return "closed"
    if before is None:
        return "opened"
    return "raised" if z > before else "lowered"


def moment(at_ns: int) -> str:
    """Write a time as people do, to the second.

    >>> moment(1_577_836_800 * 10**9)
    '2020-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(at_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
