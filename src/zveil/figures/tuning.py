"""A level held by a z that tunes itself, on simulated streams, beside the best z that stays.

Each stream goes through the gate, the meter and the controller as `zveil run --hold` has them. What
a period comes to is counted afterwards from what was released, as the audit counts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zveil.figures.measurements import Ints, Watch, set_sizes
from zveil.figures.rows import TuningRow
from zveil.gate import Gate
from zveil.hold import Change, Controller
from zveil.hold.course import Compared
from zveil.hold.steering import Steering
from zveil.meter import Meter
from zveil.model import Classes, Population, averaged, class_p_k
from zveil.policy import Hold
from zveil.simulate import Events, Scenario
from zveil.simulate import paper as paper_users
from zveil.simulate.variations import Flash, UserClass, duration_ms

Mask: TypeAlias = NDArray[np.bool_]

ZS = (20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 240, 280)
MEASURED_ZS = (20, 60, 100, 140, 180, 220, 260)

ROWS = 512
"""Between two questions to the controller, as for columns in `zveil run`."""

# Any key would do; with one that stays the same stream gives the same data.
_KEY = bytes(range(32))


@dataclass(frozen=True)
class Trial:
    """How large the streams are.

    Attributes
    ----------
    rotate
        Windows that a pseudonym lasts.
    periods
        How many there are; the first is for the controller to begin with.
    hold
        What is held.
    users
        Changes to the paper's users.
    """

    rotate: int
    periods: int
    hold: Hold
    users: dict[str, Any]

    def scenario(self, name: str, seed: int) -> Scenario:
        """Make one of the `STREAMS`."""
        more: dict[str, Any] = {}
        if name == "day and night":
            more = {"diurnal": 1.0}
        elif name == "flash crowds":
            more = {"flashes": self._flashes()}
        elif name == "two classes":
            more = {"classes": (UserClass(0.9, 0.5), UserClass(0.1, 5.0))}
        return paper_users(windows=self.rotate * self.periods, seed=seed, **self.users, **more)

    def _flashes(self) -> tuple[Flash, ...]:
        """Crowds in the middle and near the end of a period: of everybody, and of one value."""
        length = self.rotate * duration_ms(self.users.get("window", "1h"), "window")

        def flash(period: int, at: float, part: float, factor: float, rank: int | None) -> Flash:
            start, long = round((period - 1 + at) * length), round(part * length)
            return Flash(f"{start}ms", f"{long}ms", factor, rank)

        found = (
            flash(5, 0.3, 1 / 12, 8.0, None),
            flash(7, 0.7, 1 / 24, 60.0, 40),
            flash(9, 0.85, 1 / 16, 8.0, None),
        )
        return tuple(each for each in found if each.at_ms < self.periods * length)


STREAMS = ("stationary", "day and night", "flash crowds", "two classes")

FULL = Trial(rotate=24, periods=11, hold=Hold(k=2, p=0.8), users={})
QUICK = Trial(
    rotate=12,
    periods=6,
    hold=Hold(k=2, p=0.8),
    users={"users": 10_000, "attributes": 300, "rate": 0.1, "window": "2h"},
)


@dataclass(frozen=True)
class Tuned:
    """What came of a stream.

    Attributes
    ----------
    is_released
        Which events.
    changes
        What was done to z.
    looks
        What model and meter said at each look of the last period.
    """

    is_released: Mask
    changes: Sequence[Change]
    looks: Sequence[Compared]


def tuned(scenario: Scenario, events: Events, trial: Trial) -> Tuned:
    """Run a stream through gate, meter and controller."""
    window_ns = scenario.window_ms * 10**6
    hold, rotate = trial.hold, f"{trial.rotate * window_ns}ns"
    gate = Gate(
        hold.z_min, scenario.window, z_max=hold.z_max, max_future=None, time_unit="ms", key=_KEY
    )
    meter = Meter(rotate=rotate, lateness=scenario.window, time_unit="ms", key=_KEY)
    controller = Controller(
        hold,
        [gate],
        least=[hold.z_min],
        rotate_ns=trial.rotate * window_ns,
        lateness_ns=window_ns,
    )
    is_released = np.zeros(events.size, np.bool_)
    for piece in Steering(controller, meter).pieces(events.size, ROWS):
        rows = events.at(piece)
        is_released[piece] = gate.observe_many(*rows)
        meter.add(*rows, is_released[piece])
    course = controller.now.course
    return Tuned(is_released, controller.now.changes, course.corrections if course else ())


def fixed(scenario: Scenario, events: Events, z: int) -> Mask:
    """Run a stream through a gate whose z stays."""
    gate = Gate(z, scenario.window, max_future=None, time_unit="ms", key=_KEY)
    return gate.observe_many(*events)


class Period(NamedTuple):
    """What was released in a period."""

    period: int
    visible: int
    share: float | None
    released: float


def periods(scenario: Scenario, events: Events, is_released: Mask, trial: Trial) -> list[Period]:
    """Count each period: visible users, those who are k alike, and the share released."""
    length_ms = trial.rotate * scenario.window_ms
    number = (events.time_ms - scenario.start * 1000) // length_ms
    found = []
    for each in range(trial.periods):
        rows = slice(*np.searchsorted(number, [each, each + 1]))
        kept = is_released[rows]
        if not kept.size:
            found.append(Period(each + 1, 0, None, 0.0))
            continue
        sizes = _sizes(events.user[rows][kept], events.rank[rows][kept], scenario.attributes)
        share = float(np.mean(sizes >= trial.hold.k)) if len(sizes) else None
        found.append(Period(each + 1, len(sizes), share, float(kept.mean())))
    return found


def _sizes(user: NDArray[Any], rank: NDArray[Any], attributes: int) -> Ints:
    keys = np.unique(user.astype(np.int64) * (attributes + 1) + rank)
    return set_sizes(*np.divmod(keys, attributes + 1))


def best_fixed(scenario: Scenario, events: Events, trial: Trial, watch: Watch) -> tuple[int, Mask]:
    """Find the smallest z that stays and reaches the level in every period after the first."""
    low, high = trial.hold.z_min, trial.hold.z_max
    masks: dict[int, Mask] = {}

    def reaches(z: int) -> bool:
        watch(f"deciding {events.size:,} events with z = {z}")
        masks[z] = fixed(scenario, events, z)
        found = periods(scenario, events, masks[z], trial)[1:]
        return all(each.share is None or each.share >= trial.hold.p for each in found)

    while low < high:
        middle = (low + high) // 2
        if reaches(middle):
            high = middle
        else:
            low = middle + 1
    return high, masks[high] if high in masks else fixed(scenario, events, high)


def compared(name: str, seed: int, trial: Trial, watch: Watch) -> list[TuningRow]:
    """Hold a level on one stream, beside the best z that stays; the rows of all figures."""
    if (found := _KNOWN.get((name, seed, trial.periods))) is None:
        found = _KNOWN[name, seed, trial.periods] = list(_compared(name, seed, trial, watch))
    return found


# Several figures show the same runs.
_KNOWN: dict[tuple[str, int, int], list[TuningRow]] = {}


def _compared(name: str, seed: int, trial: Trial, watch: Watch) -> Iterator[TuningRow]:
    scenario = trial.scenario(name, seed)
    watch(f"{name}: simulating {scenario.expected_events():,.0f} events")
    events = Events.joined(list(scenario.columns()))
    watch(f"{name}: holding k = {trial.hold.k} for {trial.hold.p:.0%} of the visible users")
    held = tuned(scenario, events, trial)
    z, mask = best_fixed(scenario, events, trial, lambda words: watch(f"{name}: {words}"))
    start_ns, hour_ns = scenario.start * 10**9, scenario.window_ms * 10**6
    for change in held.changes:
        at = (change.at_ns - start_ns) / hour_ns
        yield TuningRow("hold-z", name, "held", at, change.z, int(at // trial.rotate) + 1)
    yield TuningRow("hold-z", name, "fixed", 0.0, z)
    yield TuningRow("hold-z", name, "end", float(scenario.windows), None)
    for source, released in (("held", held.is_released), ("fixed", mask)):
        for each in periods(scenario, events, released, trial):
            end = each.period * trial.rotate
            last = z if source == "fixed" else _z_at(held.changes, start_ns + end * hour_ns)
            yield TuningRow("hold-share", name, source, float(end), last, *each)
    for look in held.looks:
        at = look.place * trial.rotate
        row = TuningRow("hold-unequal", name, "meter", at, None, trial.periods)
        yield row._replace(share=look.share)
        yield row._replace(source="model", share=look.model)


def _z_at(changes: Sequence[Change], at_ns: int) -> int | None:
    before = [change.z for change in changes if change.at_ns < at_ns]
    return before[-1] if before else None


def unequal(seed: int, trial: Trial, watch: Watch) -> Iterator[TuningRow]:
    """Work out what the model says of two classes of users, and what the gate shows."""
    name, measured = "two classes", replace(trial, periods=2)
    scenario = measured.scenario(name, seed)
    alike = Population(scenario.users, scenario.px())
    shares = [each.share for each in scenario.classes]
    rates = [scenario.rates * each.factor for each in scenario.classes]
    classes = Classes(scenario.users, shares, rates)
    base = TuningRow("hold-unequal", name, "model", float(trial.rotate), 0, 2)
    k = trial.hold.k
    for z in ZS:
        watch(f"the model at z = {z}")
        yield base._replace(z=z, share=averaged(alike, z, k, trial.rotate, error=1e-5).visible)
        found = class_p_k(classes, z, k, trial.rotate, sets=4_096)
        yield base._replace(source="classes", z=z, share=found.visible)
    events = Events.joined(list(scenario.columns()))
    for z in MEASURED_ZS:
        watch(f"deciding {events.size:,} events with z = {z}")
        mask = fixed(scenario, events, z)
        last = periods(scenario, events, mask, measured)[-1]
        yield base._replace(source="measured", z=z)._replace(**last._asdict())
