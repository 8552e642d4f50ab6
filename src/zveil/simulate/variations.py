"""What makes a stream less even: classes of users, flash crowds, late events."""

import math
from dataclasses import dataclass
from typing import Self

from zveil.durations import Duration, duration_ns

_MOST_MEANS = 10


def duration_ms(value: Duration, name: str) -> int:
    """Give a duration in whole milliseconds, at least one.

    >>> duration_ms("1.5s", "window")
    1500
    """
    found = duration_ns(value, name)
    if found < 1_000_000 or found % 1_000_000:
        raise ValueError(f"{name}: expected whole milliseconds, at least one, got {value!r}")
    return found // 1_000_000


@dataclass(frozen=True)
class UserClass:
    """A share of the users, and what their rates are multiplied by.

    The events of a stream are multiplied by the mean of the factors, weighted by the shares: 0.9 of
    the users at half the rate and 0.1 at five times make 0.95 of the events.

    Parameters
    ----------
    share
        Of all users, above 0 to 1; the shares of all classes make 1.
    factor
        Above 0.

    Examples
    --------
    >>> UserClass.of("0.9:0.5")
    UserClass(share=0.9, factor=0.5)
    """

    share: float
    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"class: expected a share above 0 to 1, got {self.share!r}")
        if not 0 < self.factor < math.inf:
            raise ValueError(f"class: expected a factor above 0, got {self.factor!r}")

    @classmethod
    def of(cls, text: str) -> Self:
        """Read ``SHARE:FACTOR``."""
        share, factor = _parts(text, "class", "SHARE:FACTOR such as 0.1:5", 2, 2)
        return cls(_number(share, "class"), _number(factor, "class"))


@dataclass(frozen=True)
class Flash:
    """A crowd that comes suddenly: for a while, rates are multiplied.

    It adds ``factor - 1`` times the events that this while has anyway; the others stay as they
    are, one by one. Where two overlap, what they add is added.

    Parameters
    ----------
    at
        When it begins, since the start of the stream.
    duration
        How long it lasts.
    factor
        At least 1.
    rank
        The attribute that it is about; all of them by default.

    Examples
    --------
    >>> Flash.of("6h:30m:20:3")
    Flash(at='6h', duration='30m', factor=20.0, rank=3)
    """

    at: Duration
    duration: Duration
    factor: float
    rank: int | None = None

    def __post_init__(self) -> None:
        duration_ns(self.at, "flash")
        duration_ms(self.duration, "flash")
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"flash: expected a factor of at least 1, got {self.factor!r}")
        if self.rank is not None and self.rank < 1:
            raise ValueError(f"flash: expected a rank from 1, got {self.rank!r}")

    @classmethod
    def of(cls, text: str) -> Self:
        """Read ``AT:DURATION:FACTOR`` or ``AT:DURATION:FACTOR:RANK``."""
        form = "AT:DURATION:FACTOR[:RANK] such as 6h:30m:20 or 6h:30m:20:3"
        at, duration, factor, *rest = _parts(text, "flash", form, 3, 4)
        rank = int(_number(rest[0], "flash", whole=True)) if rest else None
        return cls(at, duration, _number(factor, "flash"), rank)

    @property
    def at_ms(self) -> int:
        """When it begins, in milliseconds since the start of the stream."""
        return duration_ns(self.at, "flash") // 1_000_000

    @property
    def until_ms(self) -> int:
        """When it is over, in milliseconds since the start of the stream."""
        return self.at_ms + duration_ms(self.duration, "flash")


@dataclass(frozen=True)
class Late:
    """Events that arrive after younger ones.

    A share of the events, chosen at random, is held back for an exponential time. No event is
    added, lost or given another time: only the order is another. An event arrives behind others
    that are younger by at most `most`.

    Parameters
    ----------
    share
        Of all events, from 0 to 1.
    mean
        How long they are held back on average.
    most
        A longer delay is cut down to this; ten times the mean by default, which cuts one delay of
        22,000.

    Examples
    --------
    >>> Late.of("5%:30s").most_ms
    300000
    """

    share: float
    mean: Duration
    most: Duration | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"late: expected a share from 0 to 1, got {self.share!r}")
        duration_ms(self.mean, "late")
        if self.most is not None:
            duration_ms(self.most, "late")

    @classmethod
    def of(cls, text: str) -> Self:
        """Read ``SHARE:MEAN`` or ``SHARE:MEAN:MOST``."""
        form = "SHARE:MEAN[:MOST] such as 5%:30s or 0.05:30s:5m"
        share, mean, *most = _parts(text, "late", form, 2, 3)
        part = _number(share.removesuffix("%"), "late") / (100 if share.endswith("%") else 1)
        return cls(part, mean, *most)

    @property
    def mean_ms(self) -> int:
        """The mean delay in milliseconds."""
        return duration_ms(self.mean, "late")

    @property
    def most_ms(self) -> int:
        """The longest delay in milliseconds."""
        return _MOST_MEANS * self.mean_ms if self.most is None else duration_ms(self.most, "late")


def _parts(text: str, name: str, form: str, least: int, most: int) -> list[str]:
    parts = [part.strip() for part in text.split(":")]
    if not least <= len(parts) <= most or not all(parts):
        raise ValueError(f"{name}: expected {form}, got {text!r}")
    return parts


def _number(text: str, name: str, *, whole: bool = False) -> float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{name}: expected {kind}, got {text!r}") from None
