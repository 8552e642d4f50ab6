"""The suite itself: what holds of a split stream, and that engines with a defect do not pass."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from cases import NANO, Case, Told, exact, spread
from suite import CASES, IN_TIME, LATE, VALUES, _plain, stream


@pytest.mark.parametrize("shards", [1, 2, 3, 16])
@pytest.mark.parametrize("name", IN_TIME)
def test_in_time_a_split_changes_nothing(name: str, shards: int) -> None:
    case = CASES[name]
    assert exact(case.told(spread(shards))) == exact(case.told())


@pytest.mark.parametrize("name", LATE)
def test_late_or_not_one_shard_is_one_gate(name: str) -> None:
    case = CASES[name]
    assert exact(case.told(spread(1))) == exact(case.told())


@pytest.mark.parametrize("seed", range(40))
def test_a_split_tells_no_less_of_what_is_in_time(seed: int) -> None:
    random = Random(seed)
    case = _plain("any", seed, random.choice([2, 3]), random.choice([3, 8, 30]),
                  lateness=random.choice([0, 2, 8]), behind=(0, 0, 0, 1, 5, 12, 20))  # fmt: skip
    one, split = exact(case.told()), exact(case.told(spread(3)))
    assert one.items() <= split.items()


def test_a_split_of_late_records_differs_somewhere() -> None:
    assert any(exact(CASES[name].told(spread(3))) != exact(CASES[name].told()) for name in LATE)


def test_every_case_is_close() -> None:
    for name, case in CASES.items():
        told = sum(len(fields) - 2 for fields in case.told().values())
        assert told > 0 or case.answers is not None, name
        assert told < len(case.records) * len(case.attributes), name


def test_there_are_cases_of_every_kind() -> None:
    assert len(IN_TIME) >= 12
    assert len(LATE) >= 4
    assert {one.rule for case in CASES.values() for one in case.attributes} == {
        "fall-through", "fixed", "authors",
    }  # fmt: skip
    assert sum(case.answers is not None for case in CASES.values()) >= 6
    assert sum(len(case.records) for case in CASES.values() if case.answers is not None) >= 100


def with_attributes(case: Case, **changed: object) -> Case:
    attributes = tuple(replace(one, **changed) for one in case.attributes)
    return replace(case, attributes=attributes, answers=None)


def one_user_more(case: Case) -> Told:
    return replace(
        case, attributes=tuple(replace(one, z=one.z + 1) for one in case.attributes), answers=None
    ).told()


def open_window(case: Case) -> Told:
    shorter = (replace(one, window=max(one.window - 1, 0)) for one in case.attributes)
    longest = max(one.window for one in case.attributes)
    late = longest if case.lateness is None else case.lateness
    return replace(case, attributes=tuple(shorter), lateness=late, answers=None).told()


def late_ones_count(case: Case) -> Told:
    return replace(case, lateness=10**18, answers=None).told()


def everyone_counts_at_every_level(case: Case) -> Told:
    if all(one.climb is None for one in case.attributes):
        return case.told()
    return with_attributes(case, rule="authors", level=None).told()


def in_the_order_of_time(case: Case) -> Told:
    """Sort before deciding, as an engine does that orders by event time."""
    order = sorted(range(len(case.records)), key=lambda at: case.records[at].t)
    records = tuple(case.records[at] for at in order)
    told = replace(case, records=records, answers=None).told()
    return {order[at]: fields for at, fields in told.items()}


def in_reverse_among_ties(case: Case) -> Told:
    """Let records of one time change places, as an engine does that sorts by time and forgets."""
    order = sorted(range(len(case.records)), key=lambda at: (case.records[at].t, -at))
    records = tuple(case.records[at] for at in order)
    told = replace(case, records=records, answers=None).told()
    return {order[at]: fields for at, fields in told.items()}


def split_by_the_value(case: Case) -> Told:
    """Let each value have its own gate, whatever label it has in common with others."""
    whole: Told = {}
    for one in case.attributes:
        for item in {repr(record.values[one.field]): record.values[one.field]
                     for record in case.records}.values():  # fmt: skip
            numbers = [number for number, record in enumerate(case.records)
                       if repr(record.values[one.field]) == repr(item)]  # fmt: skip
            part = replace(case, records=tuple(case.records[n] for n in numbers),
                           attributes=(one,), answers=None).told()  # fmt: skip
            for at, fields in part.items():
                whole.setdefault(numbers[at], {}).update(fields)
    return whole


def seconds_only(case: Case) -> Told:
    """Let times lose what is below a second, as an engine does that keeps them in milliseconds."""
    cut = (replace(record, t=record.t // NANO * NANO) for record in case.records)
    return replace(case, records=tuple(cut), answers=None).told()


def split_by_user(case: Case) -> Told:
    """Let half of the users be decided apart from the others."""
    told: Told = {}
    for half in (0, 1):
        numbers = [number for number, record in enumerate(case.records)
                   if (len(str(record.user)) + ord(str(record.user)[-1])) % 2 == half]  # fmt: skip
        part = replace(case, records=tuple(case.records[n] for n in numbers), answers=None)
        told |= {numbers[at]: fields for at, fields in part.told().items()}
    return told


DEFECTS: list[Callable[[Case], Told]] = [
    one_user_more, open_window, late_ones_count, everyone_counts_at_every_level,
    in_the_order_of_time, in_reverse_among_ties, split_by_the_value, seconds_only, split_by_user,
]  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_an_engine_with_a_defect_does_not_pass(defect: Callable[[Case], Told]) -> None:
    short = [case for case in CASES.values() if len(case.records) < 1_000]
    assert any(exact(defect(case)) != exact(case.told()) for case in short)


def test_what_is_told_twice_or_unasked_does_not_pass() -> None:
    case = replace(_plain("any", 1, 1, 8), records=stream(1, 2, {"item": VALUES}))
    line = case.line(0)
    with pytest.raises(AssertionError, match="twice"):
        case.read([line, line])
    with pytest.raises(AssertionError):
        case.read([line.replace(b'"n"', b'"note": 1, "n"')])
