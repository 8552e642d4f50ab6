"""The definition of the gate: Algorithm 1 of the z-anonymity paper, in plain Python.

Everything else in zveil that decides is tested against this module. It keeps every user of the
window, raw, and is written to be read; `zveil.Gate` gives the same answers in O(z) memory.

An observation (t, u, a) says that user u exposed attribute value a at time t. It is released if
at least z distinct users, u among them, exposed a within the past window, and veiled otherwise.
Veiled or released, it counts. The paper's Figure 1, with z = 3 and a window of 10:

    time       0      2      4      6               12      14   15
    exposes a  u0     u1     u0     u2               :       :   u3
    crowd      u0     u0 u1  u1 u0  u1 u0 u2         :       :   u2 u3
    answer     veil   veil   veil   release          :       :   veil
                                    u1 counts up to 12,      :
                                    and u0, seen again at 4, up to 14

>>> figure = Reference(z=3, window=10)
>>> [figure.observe(t, u, "a") for t, u in [(0, "u0"), (2, "u1"), (4, "u0"), (6, "u2"), (15, "u3")]]
[False, False, False, True, False]

Boundaries
    z users are enough (>= z), and the window is closed: a user last seen at exactly t - window
    counts; one seen any earlier does not.
Time out of order
    Each attribute has a clock, the largest t seen for it, and is decided at that clock: the crowd
    is the users whose last-seen time lies in [clock - window, clock]. A last-seen time never goes
    back. An observation older than clock - window could never count: veiled. One older than the
    largest t of all attributes, less the lateness, is late: veiled, state untouched.
Identity
    A user is a text: 7, 7.0, "7" and b"7" are one person. A value keeps its type: 1, 1.0, "1",
    b"1" and True are five values.
Missing
    Without a user, an attribute or a finite time there is nothing to count: veiled, state
    untouched, reported as invalid.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from math import inf

RULES = ("fall-through", "fixed", "authors")


def user_text(user: object) -> str | None:
    """Give the one canonical form of a user id, or None if it is missing or names nobody.

    >>> user_text(7), user_text(7.0), user_text(b"7"), user_text("007"), user_text(7.5)
    ('7', '7', '7', '007', None)
    """
    if isinstance(user, str):
        return user
    if isinstance(user, bytes):
        return user.decode("utf-8", "surrogateescape")
    if isinstance(user, int) and not isinstance(user, bool):
        return str(user)
    if isinstance(user, float):
        # Beyond 2^53 a float stands for several integers, that is, for several people.
        return str(int(user)) if user.is_integer() and abs(user) <= 2**53 else None
    if user is None:
        return None
    raise TypeError(f"user: expected text, bytes, a number or None, got {type(user).__name__}")


def attribute_key(value: Hashable) -> Hashable | None:
    """Give the identity of an attribute value, its type included, or None if it is missing."""
    if value is None or value != value:  # None or NaN
        return None
    return type(value), value


class Crowd:
    """The users of one attribute, H(a) in the paper.

    `last_seen` is V_a and LRU_a in one: a hash table of users that is also a linked list of them,
    from the one seen longest ago to the one seen last. Users seen at the same time stand in the
    order in which they were last observed at it. Its length is c_a.
    """

    __slots__ = ("clock", "last_seen")

    def __init__(self, clock: float) -> None:
        self.clock = clock
        self.last_seen: OrderedDict[str, float] = OrderedDict()


class Reference:
    """Decide observations one at a time, by the definition.

    Times, window and lateness are numbers of one unit, whichever; integers are exact. Users and
    values are plain Python ones: str, bytes, int, float, None (and bool, as a value).

    Parameters
    ----------
    z
        Distinct users needed, 1 to z_max. May be set anew at any time.
    window
        How long an exposure counts, >= 0.
    z_max
        The largest z that may be set; z by default. It bounds what `forget` leaves.
    lateness
        How far behind the largest time seen an observation may lie; the window by default.
    rule
        How `observe_levels` counts: "fall-through", "fixed" or "authors".
    fixed_level
        The level that the rule "fixed" goes by, 0 for the coarsest.
    more
        How many users more than z an attribute needs: called with its identity (the value, or the
        path of a level as a tuple) and the attribute's clock. None more by default.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """

    def __init__(
        self,
        z: int,
        window: float,
        *,
        z_max: int | None = None,
        lateness: float | None = None,
        rule: str = "fall-through",
        fixed_level: int | None = None,
        more: Callable[[Hashable, float], int] | None = None,
    ) -> None:
        self.z_max = z if z_max is None else z_max
        self.z = z
        self.window = window
        self.lateness = window if lateness is None else lateness
        if not (self.window >= 0 and self.lateness >= 0):
            raise ValueError(f"window, lateness: expected >= 0, got {window!r}, {lateness!r}")
        if rule not in RULES:
            raise ValueError(f"rule: expected one of {', '.join(RULES)}, got {rule!r}")
        if (rule == "fixed") != (fixed_level is not None) or (fixed_level or 0) < 0:
            raise ValueError(f"fixed_level: rule 'fixed' takes one, >= 0, got {fixed_level!r}")
        self.rule = rule
        self.fixed_level = fixed_level
        self.more = more
        self.clock: float = -inf  # the largest t of all attributes
        self.observed = self.released = self.late = self.invalid = 0
        self._crowds: dict[Hashable, Crowd] = {}  # H in the paper

    @property
    def z(self) -> int:
        """How many distinct users make a crowd. A new z holds at once, for every attribute."""
        return self._z

    @z.setter
    def z(self, z: int) -> None:
        if not 1 <= z <= self.z_max:
            raise ValueError(f"z: expected 1 to z_max ({self.z_max}), got {z!r}")
        self._z = z

    @property
    def veiled(self) -> int:
        """How many observations were not released; the late and the invalid are among them."""
        return self.observed - self.released

    def observe(self, t: float | None, user: object, attribute: Hashable) -> bool:
        """Count one observation and say whether it is released."""
        self.observed += 1
        u, a = user_text(user), attribute_key(attribute)
        if u is None or a is None or t is None or not -inf < t < inf:
            self.invalid += 1
            return False
        if self._late(t):
            return False
        released = self._count(t, u, a)
        self.released += released
        return released

    def observe_levels(
        self, t: float | None, user: object, levels: Sequence[Hashable]
    ) -> int | None:
        """Count one observation known at several levels, coarsest first; say which is released.

        Returns an index into `levels`, or None if all are veiled. A level has a clock and a crowd
        of its own, like an attribute, and is known by its whole path from the coarsest: "www"
        under two domains is two things. A missing level is skipped, though it keeps its place in
        the path of the finer ones.

        fall-through: a level counts the users whose observation was veiled at every finer one.
        fixed: only `fixed_level` counts, and is released or not.
        authors: every level counts everyone, and the finest that passes is released. For
        comparison only: a coarse label then gives away the one user who did not pass below it.

        >>> gate = Reference(z=2, window=10)
        >>> for user, host in [("u0", "www"), ("u1", "www"), ("u2", "mail"), ("u3", "ftp")]:
        ...     print(gate.observe_levels(0, user, ["example.org", host]))
        None
        1
        0
        0
        """
        self.observed += 1
        u, path = user_text(user), tuple(map(attribute_key, levels))
        if u is None or not any(path) or t is None or not -inf < t < inf:
            self.invalid += 1
            return None
        if self._late(t):
            return None
        level = None
        for n in reversed(range(len(path))):
            if path[n] is None or (self.rule == "fixed" and n != self.fixed_level):
                continue
            # A path is a tuple of keys, a plain attribute's key begins with a type: never equal.
            if self._count(t, u, path[: n + 1]) and level is None:
                level = n
                if self.rule != "authors":
                    break
        self.released += level is not None
        return level

    def forget(self, user: object) -> int:
        """Erase a user; returns from how many crowds.

        Each crowd is first cut to its z_max users seen last, which is all that a gate of bounded
        memory knows of it: whoever stood behind those does not move up into the erased user's
        place. That can only veil more. The clocks stay as they are.
        """
        u, erased = user_text(user), 0
        for crowd in self._crowds.values():
            while len(crowd.last_seen) > self.z_max:
                crowd.last_seen.popitem(last=False)
            erased += u is not None and crowd.last_seen.pop(u, None) is not None
        return erased

    def _late(self, t: float) -> bool:
        """Say whether t is too late to count; if not, it moves the clock of all attributes."""
        if t < self.clock - self.lateness:
            self.late += 1
            return True
        if t > self.clock:
            self.clock = t
        return False

    def _count(self, t: float, u: str, a: Hashable) -> bool:
        """Run Algorithm 1, whose line numbers stand beside; say whether a has z users."""
        crowd = self._crowds.get(a)
        if crowd is None:
            crowd = self._crowds[a] = Crowd(t)  # 2-3
        last_seen = crowd.last_seen
        if t >= crowd.clock:
            crowd.clock = t
            last_seen[u] = t  # 4-6, 9-10, 13
            last_seen.move_to_end(u)  # 11, 14
            while last_seen[next(iter(last_seen))] < t - self.window:  # 18; ends at u, seen at t
                last_seen.popitem(last=False)  # 19-21
        elif t < crowd.clock - self.window:
            return False
        elif t >= last_seen.get(u, t):
            # Out of order: u goes below everyone seen after t, who keep their order.
            last_seen[u] = t
            last_seen.move_to_end(u)
            for later in [v for v, seen in last_seen.items() if seen > t]:
                last_seen.move_to_end(later)
        more = 0 if self.more is None else self.more(a, crowd.clock)
        return len(last_seen) >= self._z + more  # 23
