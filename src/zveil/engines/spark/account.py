"""What became of all rows, told by the tasks to whoever started them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from zveil.act.columns import ColumnsAct
from zveil.gate import Gate
from zveil.policy import Policy
from zveil.summary import Outcome, Summary

Counts = Counter[Any]
"""By what is counted: a name, or a name and the number of the attribute."""

_VEILED = ("observed", "released", "late", "future", "empty", "filtered", "refused")


class Account:
    """Counts what tasks decide; give it to `anonymize`, and read it after an action.

    Spark may run a task again, or evaluate a frame again for another action: that is counted
    again. So read it after one action, such as a write.

    Parameters
    ----------
    session
        The session of the data frame. Not of Spark Connect, which has no accumulators.

    Raises
    ------
    ValueError
        If the session has no accumulators.
    """

    def __init__(self, session: Any) -> None:
        from pyspark.accumulators import AccumulatorParam

        class Sums(AccumulatorParam):  # type: ignore[misc, unused-ignore]
            def zero(self, value: Counts) -> Counts:  # noqa: ARG002  # as Spark calls it
                return Counter()

            def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802
                value1.update(value2)
                return value1

        try:
            context = session.sparkContext
        except Exception:  # Spark has several for it, by version
            raise ValueError(
                "account: Spark Connect has no accumulators; leave it out, or use a classic session"
            ) from None
        self.counts = context.accumulator(Counter(), Sums())
        """The accumulator that tasks add to."""
        self._policy: Policy | None = None

    def of(self, policy: Policy) -> None:
        """Take note of what is counted; for one frame only."""
        if self._policy is not None:
            raise ValueError("account: counts another frame already; make one for each")
        self._policy = policy

    def summary(self) -> Summary:
        """Give the account as `zveil run` has it.

        Raises
        ------
        ValueError
            If nothing was given to count.
        """
        policy = self._policy
        if policy is None:
            raise ValueError("account: nothing is counted; give it to anonymize(account=...)")
        counts: Counts = self.counts.value
        outcomes = []
        for place, each in enumerate(policy.attributes):
            found = {name: int(counts[name, place]) for name in _VEILED}
            veiled = sum(found[name] for name in ("late", "future", "empty", "filtered"))
            outcome = Outcome(
                attribute=each.field,
                z=each.z,
                window_ns=each.window_ns,
                few_users=found["observed"] - found["released"] - veiled,
                **found,  # type: ignore[arg-type]  # each a whole number
            )
            if each.hierarchy is not None:
                names = each.hierarchy.names
                released = [int(counts["level", place, level]) for level in range(len(names))]
                outcome = outcome.at_levels(names, released)
            outcomes.append(outcome)
        return Summary(
            policy=policy.fingerprint,
            records=int(counts["records"]),
            left=int(counts["left"]),
            bad={"time": int(counts["bad"])} if counts["bad"] else {},
            outcomes=outcomes,
            time_format=policy.time.format,
        )


def decided(place: int, policy: Policy, act: ColumnsAct, gates: Iterable[Gate]) -> Counts:
    """Count what one task has decided about one attribute."""
    counts: Counts = Counter()
    (gate,) = gates
    outcome = Outcome.of(policy.attributes[place], gate, sum(act.filtered))
    for name in _VEILED:
        counts[name, place] = getattr(outcome, name)
    for level, count in enumerate(act.levels[0]):
        counts["level", place, level] = count
    return counts
