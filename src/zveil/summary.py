"""What a run came to: every event accounted for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from zveil.gate import Gate
from zveil.meter import Meter, Reading
from zveil.policy import Attribute


@dataclass(frozen=True, kw_only=True)
class Level:
    """What was released at one level of a hierarchy."""

    level: int
    """0 is the value itself, or the finest cell."""
    name: str
    released: int
    share: float
    """Of all observations of the attribute."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of the observations of one attribute: released, or veiled for one reason."""

    attribute: str
    z: int
    window_ns: int
    observed: int
    released: int
    few_users: int
    """Veiled: fewer than z users in the window."""
    late: int
    """Veiled: older than the clock - lateness."""
    future: int
    """Veiled: too far past the wall clock."""
    empty: int
    """Veiled: no value, no user, or no time."""
    filtered: int
    """Veiled: left out by a list of names."""
    refused: int
    """How many of those with few users met the memory limit."""
    swapped: int | None = None
    """How many of the released ones left under another value; None where none may."""
    levels: tuple[Level, ...] = ()
    """The released ones by level, where there is a hierarchy."""

    def at_levels(self, names: Sequence[str], released: Sequence[int]) -> "Outcome":
        """Add what was released at each level; gates count levels from the coarsest."""
        counts = list(released)[::-1] or [0] * len(names)
        levels = [
            Level(level=number, name=name, released=count, share=count / max(self.observed, 1))
            for number, (name, count) in enumerate(zip(names, counts, strict=True))
        ]
        return replace(self, levels=tuple(levels))

    @classmethod
    def of(cls, attribute: Attribute, gate: Gate, filtered: int) -> "Outcome":
        """Read it off a gate, which takes what a list left out for no value."""
        stats = gate.stats(entries=False)
        known = stats.released + stats.late + stats.future + stats.invalid
        return cls(
            attribute=attribute.field,
            z=gate.z,
            window_ns=gate.window_ns,
            observed=stats.observed,
            released=stats.released,
            few_users=stats.observed - known,
            late=stats.late,
            future=stats.future,
            empty=stats.invalid - filtered,
            filtered=filtered,
            refused=stats.refused,
        )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a meter shows of what left: by the set of values of each pseudonym, without times."""

    present: Reading
    """The period that the stream is in."""
    periods: list[Reading]
    """All in which something left, in their order: the last thousand."""
    bytes: int
    """Memory of what is measured."""

    @classmethod
    def of(cls, meter: Meter, *, is_brief: bool = False) -> "Measured":
        """Read it off a meter; without the periods where it is to be brief."""
        periods = [] if is_brief else meter.periods()
        return cls(present=meter.report(), periods=periods, bytes=meter.bytes)

    def as_dict(self) -> dict[str, object]:
        """Give it as plain values, for JSON."""
        return {
            "observer": "set of values",
            "periods": [period.as_dict() for period in self.periods],
            "bytes": self.bytes,
        }


@dataclass(frozen=True, kw_only=True)
class Rung:
    """What a z would have released."""

    z: int | None
    """For all attributes; None for each its own, as the policy says."""
    released: int
    """Observations, over all attributes."""
    records: int
    """Records that would have left."""


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """How the state of a run was kept."""

    resumed: bool = False
    """Whether it went on from a saved state; the counts are then of all runs together."""
    records_before: int = 0
    """Records of the runs before."""
    bytes_before: int = 0
    """Bytes of the inputs that were read before."""
    saves: int = 0
    failed_saves: int = 0
    longest_pause_ms: float | None = None
    """For how long a save has held up the stream at the most, those at its end left out; None if
    there was none."""
    age_seconds: float | None = None
    """How old the newest state on the disk is; None if there is none."""
    gap_seconds: float | None = None
    """How long nobody listened to a pipe, since the state was saved; None where nothing is lost."""
    gap_event_seconds: float | None = None
    """The same by the times of the events."""


@dataclass(kw_only=True)
class Summary:
    """The account of a run, at any moment of it."""

    policy: str
    """The policy's fingerprint."""
    lines: int = 0
    """Lines of text read; 0 for formats that have none."""
    records: int = 0
    """Good records: each was decided."""
    left: int = 0
    """Records that left."""
    passed: int = 0
    """Lines of a log that are no records of the kind that is read: none of them left."""
    bad: dict[str, int] = field(default_factory=dict)
    """Bad lines by kind: none of them left."""
    outcomes: list[Outcome] = field(default_factory=list)
    rungs: list[Rung] = field(default_factory=list)
    time_format: str | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    state_bytes: int = 0
    """Memory of the gates."""
    seconds: float = 0.0
    repeated: int | None = None
    """Records left out because their id came before; None where they have no ids."""
    forgotten_ids: int = 0
    """Ids that had to be forgotten before their time."""
    state: Keeping | None = None
    """None where the state ends with the run."""
    ended: str = "end of input"
    """Why it ended: ``end of input``, ``closed pipe``, ``signal``, ``bad input`` or ``error``."""
    meter: Measured | None = None
    """What was measured; None without a meter."""
    hold: dict[str, Any] | None = None
    """What was done to hold a level of k-anonymity; None where none was."""

    @property
    def observed(self) -> int:
        """Observations decided, over all attributes."""
        return sum(outcome.observed for outcome in self.outcomes)

    @property
    def released(self) -> int:
        """Observations released, over all attributes."""
        return sum(outcome.released for outcome in self.outcomes)

    @property
    def bad_lines(self) -> int:
        """All bad lines."""
        return sum(self.bad.values())

    def take(
        self,
        attributes: Sequence[Attribute],
        gates: Sequence[Gate],
        zs: Sequence[int | None],
        filtered: Sequence[int] = (),
    ) -> int:
        """Read outcomes off the gates: those of the policy, and what each z of a trial releases.

        Gives which of the sets of gates is the policy's own.
        """
        count = len(attributes)
        number = zs.index(None if None in zs else attributes[0].z)
        own = gates[number * count : (number + 1) * count]
        self.outcomes = [
            Outcome.of(each, gate, out)
            for each, gate, out in zip(attributes, own, filtered or [0] * count, strict=True)
        ]
        self.state_bytes = sum(gate.stats(entries=False).bytes for gate in gates)
        self.rungs = [
            Rung(z=z, released=released, records=0)
            for place, z in enumerate(zs)
            for released in [
                sum(
                    gate.stats(entries=False).released
                    for gate in gates[place * count : (place + 1) * count]
                )
            ]
        ]
        return number

    def as_dict(self, *, without_z: bool = False) -> dict[str, object]:
        """Give it as plain values, for JSON; `without_z` for a trial of no z in particular."""
        found = asdict(replace(self, meter=None))
        del found["meter"]
        if self.hold is None:
            del found["hold"]
        if self.meter is not None:
            found["meter"] = self.meter.as_dict()
        if without_z:
            for name in ("policy", "left", "outcomes"):
                del found[name]
        for outcome in found.get("outcomes", []):
            if not outcome["levels"]:
                del outcome["levels"]
            if outcome["swapped"] is None:
                del outcome["swapped"]
        if self.state is None:
            del found["state"]
        if self.repeated is None:
            del found["repeated"], found["forgotten_ids"]
        found["observed"] = self.observed
        if not without_z:
            found["released"] = self.released
        found["bad_lines"] = self.bad_lines
        found["seconds"] = round(self.seconds, 3)
        return found
