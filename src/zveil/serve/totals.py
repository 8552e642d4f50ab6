"""What a stream came to that arrives as text and as columns, over all requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from zveil._native import TextWay
from zveil.gate import Gate
from zveil.policy import Policy
from zveil.summary import Summary

if TYPE_CHECKING:
    from zveil.act.columns import ColumnsAct


class Reading(NamedTuple):
    """How the counters of the columns of one request stand."""

    records: int
    left: int
    bad: int
    repeated: int
    levels: list[list[int]]
    filtered: list[int]


class Totals:
    """Adds up what came as columns, request by request; text is counted where it is decided.

    Parameters
    ----------
    policy
        What is decided.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        hierarchies = [each.hierarchy for each in policy.attributes]
        levels = [[0] * each.levels if each else [] for each in hierarchies]
        self._sum = Reading(0, 0, 0, 0, levels, [0] * len(policy.filters()))

    @property
    def records(self) -> int:
        """Good records that came as columns."""
        return self._sum.records

    def state(self) -> dict[str, Any]:
        """Give the sums, for JSON."""
        return self._sum._asdict()

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from such sums."""
        self._sum = Reading(**state)

    def reading(self, act: ColumnsAct) -> Reading:
        """Read the counters of a request."""
        levels = [list(each) for each in act.levels]
        return Reading(
            act.records, act.leaving[0], act.moments.bad, act.repeated, levels, list(act.filtered)
        )

    def add(self, act: ColumnsAct, before: Reading) -> None:
        """Add what was counted in a request since its counters were read."""
        after, sums = self.reading(act), self._sum
        self._sum = Reading(
            sums.records + after.records - before.records,
            sums.left + after.left - before.left,
            sums.bad + after.bad - before.bad,
            sums.repeated + after.repeated - before.repeated,
            [_moved(*each) for each in zip(sums.levels, before.levels, after.levels, strict=True)],
            _moved(sums.filtered, before.filtered, after.filtered),
        )

    def summary(self, way: TextWay, gates: Sequence[Gate]) -> Summary:
        """Give the account of the stream, with what came as text."""
        tally, sums, policy = way.tally(), self._sum, self._policy
        found = Summary(policy=policy.fingerprint)
        found.lines = tally["lines"]
        found.records = tally["records"] + sums.records
        found.bad = {kind: count for kind, count in tally["bad"].items() if count}
        if sums.bad:
            found.bad["time"] = found.bad.get("time", 0) + sums.bad
        leaving = sum(tally["leaving"]) + sums.left
        found.left = found.records if policy.record.empty == "blank" else leaving
        found.repeated = tally["repeated"] + sums.repeated
        found.time_format = way.time_format
        found.take(policy.attributes, gates, [None], _sum(tally["filtered"], sums.filtered))
        levels = tally["levels"] or [[0] * len(each) for each in sums.levels]
        for number, attribute in enumerate(policy.attributes):
            if attribute.hierarchy is not None:
                released = _sum(levels[number], sums.levels[number])
                outcome = found.outcomes[number]
                found.outcomes[number] = outcome.at_levels(attribute.hierarchy.names, released)
        return found


def _moved(sums: Sequence[int], before: Sequence[int], after: Sequence[int]) -> list[int]:
    return [total - one + two for total, one, two in zip(sums, before, after, strict=True)]


def _sum(text: Sequence[int], columns: Sequence[int]) -> list[int]:
    # Text has counted nothing before its first record.
    return [one + two for one, two in zip(text or [0] * len(columns), columns, strict=True)]
