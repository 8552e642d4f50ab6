"""A plan for the users of a trace: what the model proposes, and what the trace says about it.

The model proposes a z for each period after which user ids may change. The real gate is run over
the trace at each, and p_k is measured. A measurement whose upper bound lies under the wanted
probability says that these users are not as the model takes them: nothing that it says of them is
relied on any more, and the trace is searched for the z that measure up.

Neither is p_k measured sure to grow with z. What is sure: a larger z never releases more, so where
nobody is visible, nobody is for any larger z. The search goes from the model's z by about an eighth
at a time: up until one measures up, or to the last z at which anyone is visible; or down until one
does not. Then it halves what lies between the two. So the z found measures up and the one before it
does not; of those further away, not every one was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zveil.model.measurement import Measurement, Meter
from zveil.model.parameters import Count, counted, positive
from zveil.model.plan import Option, Plan, Unreachable, periods, plan
from zveil.model.trace import Trace

Watch = Callable[[str], None]
"""Told what is being done."""

_STEP = 1.125


@dataclass(frozen=True, kw_only=True)
class Check:
    """What the trace says about one option of a plan.

    Attributes
    ----------
    option
        What the model proposed; None where it found no z.
    measured
        What that z came to on the trace.
    falls_short
        Whether even the upper bound of the measured p_k is below what was wanted, or there is none
        because nobody was visible.
    instead
        What measures up in its place: looked for only where the model does not hold. None where no
        z does.
    """

    option: Option | None
    measured: Measurement | None
    falls_short: bool
    instead: Measurement | None = None


@dataclass(frozen=True, kw_only=True)
class TracePlan:
    """What to choose for the users of a trace, for a wanted k and probability.

    Attributes
    ----------
    k, probability, horizon, count
        What was wanted.
    holds
        Whether the model holds for these users: no measurement fell short.
    kept
        With ids that stay for the whole horizon; None where no z reaches it then.
    options
        Also with ids that change sooner, the most observations released first. Their p_k and
        released are the model's where it holds, and measured where it does not.
    measured
        What each of them came to on the trace, in the same order.
    checks
        For each period: what the model proposed, what that came to, and what measures up instead.
    warm_up
        Windows left out in the beginning, 0 or 1.
    windows
        Whole windows that were measured after that.
    """

    k: int
    probability: float
    horizon: float
    count: Count
    holds: bool
    kept: Option | None
    options: tuple[Option, ...]
    measured: tuple[Measurement, ...]
    checks: tuple[Check, ...]
    warm_up: int
    windows: int

    @property
    def kept_measured(self) -> Measurement | None:
        """What the z for ids that stay came to on the trace."""
        return next((each for each in self.measured if each.rotate_every == self.horizon), None)


def plan_trace(
    trace: Trace,
    *,
    k: int = 2,
    probability: float = 0.95,
    horizon: float = 24,
    count: Count = "visible",
    watch: Watch = lambda _: None,
) -> TracePlan:
    """Choose z and the period of changing user ids for the users of a trace, and check it there.

    A population is estimated from the trace and planned for as `zveil.model.plan` does. Then the
    gate runs over the trace at each z proposed, and `measure` says what it comes to. Where that
    falls short, z are recommended that measure up.

    Parameters
    ----------
    trace
        What was observed.
    k, probability, horizon, count
        As for `zveil.model.plan`.
    watch
        Is told what is being done.

    Raises
    ------
    Unreachable
        If neither the model nor the trace has a z that reaches it, however often ids change.

    Examples
    --------
    >>> from zveil.simulate import Events, Scenario
    >>> events = Events.joined(list(Scenario(users=2_000, attributes=50, windows=5).columns()))
    >>> trace = Trace.of_columns(*events, window="1h", time_unit="ms")
    >>> found = plan_trace(trace, horizon=2)
    >>> found.holds, [(option.rotate_every, option.z) for option in found.options]
    (True, [(2, 13), (1, 13)])
    """
    watch("estimating how often attributes are shown")
    population = trace.population(whole=True)
    try:
        proposed: Plan | None = plan(
            population, k=k, probability=probability, horizon=horizon, count=count,
            progress=lambda done, of: watch(f"planning: {done} of {of} periods"),
        )  # fmt: skip
        reason = None
    except Unreachable as error:
        proposed, reason = None, error
    watch("sorting the trace")
    checker = _Checker(Meter(trace, k=k, count=count), probability, trace.users, watch)
    checks = [] if proposed is None else list(checker.checked(proposed))
    holds = proposed is not None and not any(each.falls_short for each in checks)
    if proposed is not None and holds:
        options = proposed.options
        measured = [each.measured for each in checks if each.measured is not None]
    else:
        checks = list(checker.searched(checks, periods(positive(horizon, "horizon"))))
        measured = [each.instead for each in checks if each.instead is not None]
        measured.sort(key=lambda each: (-each.released, -each.rotate_every))
        options = tuple(_as_option(each) for each in measured)
        if reason is not None and not options:
            raise Unreachable(f"{reason}. Nor does any z measure up on the trace itself") from None
    return TracePlan(
        k=k,
        probability=probability,
        horizon=horizon,
        count=counted(count),
        holds=holds,
        kept=next((each for each in options if each.rotate_every == horizon), None),
        options=options,
        measured=tuple(measured),
        checks=tuple(checks),
        warm_up=checker.meter.warm_up,
        windows=checker.meter.windows,
    )


class _Checker:
    """Holds options against a trace, and looks for better ones."""

    def __init__(self, meter: Meter, wanted: float, users: int, watch: Watch) -> None:
        self.meter = meter
        self._wanted, self._users, self._watch = wanted, users, watch

    def checked(self, proposed: Plan) -> Iterator[Check]:
        """Measure every option of a plan."""
        for done, option in enumerate(proposed.options):
            self._watch(f"checking on the trace: {done} of {len(proposed.options)} options")
            measured = self.meter.at(option.z, option.rotate_every)
            falls_short = measured.p_k is None or measured.high < self._wanted
            yield Check(option=option, measured=measured, falls_short=falls_short)

    def searched(self, checks: list[Check], every: Iterator[float]) -> Iterator[Check]:
        """Find what measures up for each period, from the model's z on."""
        known = {_period(check): check for check in checks}
        for period in every:
            check = known.get(period, Check(option=None, measured=None, falls_short=False))
            measured = check.measured
            if measured is not None and self._reaches(measured):
                instead: Measurement | None = self._down(measured, period)
            elif measured is None or measured.p_k is None:
                instead = self._up(0, period)
            else:
                instead = self._up(measured.z, period)
            if check.option is not None or instead is not None:
                yield Check(
                    option=check.option,
                    measured=measured,
                    falls_short=check.falls_short,
                    instead=instead,
                )

    def _up(self, low: int, period: float) -> Measurement | None:
        """Give the first z after ``low`` that measures up, as far as steps can find it."""
        failed = low
        while failed < self._users:
            z = min(max(int(failed * _STEP), failed + 1), self._users)
            found = self._at(z, period)
            if self._reaches(found):
                return self._between(failed, found, period)
            if not found.visible:
                last = self._last_visible(failed, z, period)
                if last is None or not self._reaches(last):
                    return None
                return self._between(failed, last, period)
            failed = z
        return None

    def _down(self, reached: Measurement, period: float) -> Measurement:
        """Give the smallest z below one that measures up, as far as steps can find it."""
        while reached.z > 1:
            found = self._at(min(int(reached.z / _STEP), reached.z - 1), period)
            if not self._reaches(found):
                return self._between(found.z, reached, period)
            reached = found
        return reached

    def _between(self, failed: int, reached: Measurement, period: float) -> Measurement:
        """Halve until the z before the one that measures up is one that does not."""
        while reached.z - failed > 1:
            found = self._at((failed + reached.z) // 2, period)
            if self._reaches(found):
                reached = found
            else:
                failed = found.z
        return reached

    def _last_visible(self, seen: int, unseen: int, period: float) -> Measurement | None:
        """Give the largest z from after ``seen`` to before ``unseen`` at which anyone is visible.

        Only few users are left there, who often hold the same one value.
        """
        last = None
        while unseen - seen > 1:
            found = self._at((seen + unseen) // 2, period)
            if found.visible:
                seen, last = found.z, found
            else:
                unseen = found.z
        return last

    def _at(self, z: int, period: float) -> Measurement:
        self._watch(f"measuring on the trace: z = {z:,} over {period:g} windows")
        return self.meter.at(z, period)

    def _reaches(self, found: Measurement) -> bool:
        return found.p_k is not None and found.p_k >= self._wanted


def _period(check: Check) -> float:
    found = check.option or check.instead
    return found.rotate_every if found is not None else 0.0


def _as_option(found: Measurement) -> Option:
    return Option(found.rotate_every, found.z, found.p_k or 0.0, found.released)
