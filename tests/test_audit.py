"""The audit against counting by hand, on small random streams."""

import math
import time
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zveil.audit import Audit, Observations, Options, audit, read
from zveil.audit.crowds import GROUPS, KS, class_sizes, crowds
from zveil.audit.linkage import linkage
from zveil.audit.observations import Codebook
from zveil.audit.points import Points, Resolution
from zveil.audit.unicity import Index, unicity, wilson

HOUR = 3_600_000_000_000
MINUTE = HOUR // 60
DAY = 24 * HOUR

Event = tuple[int, str, str]
"""Nanoseconds, user, value."""

# Around the epoch, and on the edges of hours, days and weeks.
moments = st.builds(
    lambda whole, rest: whole + rest,
    st.sampled_from([-8 * DAY, -DAY, 0, HOUR, DAY, 7 * DAY, 8 * DAY]),
    st.sampled_from([-1, 0, 1, MINUTE, 30 * MINUTE]),
)
streams = st.lists(
    st.tuples(moments, st.sampled_from("uvwxyz"), st.sampled_from("abc")), min_size=1, max_size=40
)


def observed(events: Sequence[Event]) -> Observations:
    batch = pa.record_batch(
        {
            "t": pa.array([t for t, _, _ in events], pa.timestamp("ns", tz="UTC")),
            "u": [u for _, u, _ in events],
            "a": [a for _, _, a in events],
        }
    )
    return read([batch], user="u", attributes=["a"])


def point(event: Event, resolution: Resolution) -> tuple[str, int]:
    t, _, a = event
    return a, t // resolution.length_ns if resolution.length_ns else 0


def sets(events: Sequence[Event], resolution: Resolution) -> dict[str, frozenset[tuple[str, int]]]:
    """What each visible user shows."""
    return {
        user: frozenset(point(event, resolution) for event in events if event[1] == user)
        for _, user, _ in events
    }


def sizes(events: Sequence[Event], resolution: Resolution) -> list[int]:
    """k of each user, counted one by one."""
    shown = sets(events, resolution)
    return sorted(sum(mine == other for other in shown.values()) for mine in shown.values())


def measured(events: Sequence[Event], **options: int) -> Audit:
    return audit(observed(events), options=Options(**options))  # type: ignore[arg-type]


@given(streams, st.sampled_from(list(Resolution)))
def test_k_is_the_number_of_users_with_the_same_set(
    events: list[Event], resolution: Resolution
) -> None:
    points = Points.of(observed(events))
    k = class_sizes(points, points.traces(resolution))
    assert sorted(k.tolist()) == sizes(events, resolution)


@given(streams)
def test_shares_groups_classes_and_entropy(events: list[Event]) -> None:
    for found in measured(events).crowds:
        wanted = sizes(events, found.resolution)
        n = len(wanted)
        assert found.users == n
        assert found.shares == {k: sum(size >= k for size in wanted) / n for k in KS}
        assert sum(found.groups) == n
        assert found.groups == tuple(
            sum(low <= size <= (high or n) for size in wanted) for low, high in GROUPS
        )
        classes = Counter(sets(events, found.resolution).values())
        assert found.classes == len(classes)
        entropy = -sum(c / n * math.log2(c / n) for c in classes.values())
        assert found.entropy_bits == pytest.approx(entropy, abs=1e-9)
        assert found.most_bits == pytest.approx(math.log2(n))


def test_a_finer_time_never_makes_a_crowd_larger() -> None:
    random = np.random.default_rng(5)
    events = [(int(t), f"u{u}", f"v{v}") for t, u, v in zip(
        random.integers(0, 20 * DAY, 3_000), random.integers(0, 900, 3_000),
        random.geometric(0.3, 3_000), strict=True)]  # fmt: skip
    shares = [found.shares[2] for found in measured(events).crowds]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]


def test_weeks_days_and_hours_are_cut_from_the_epoch() -> None:
    events = [(-1, "u", "a"), (0, "v", "a"), (HOUR - 1, "w", "a"), (HOUR, "x", "a")]
    found = {each.resolution.label: each.at_least[2] for each in measured(events).crowds}
    assert found == {"set": 4, "week": 3, "day": 3, "hour": 2, "minute": 0}
    later = [(7 * DAY - 1, "u", "a"), (7 * DAY, "v", "a")]
    found = {each.resolution.label: each.at_least[2] for each in measured(later).crowds}
    assert found == {"set": 2, "week": 0, "day": 0, "hour": 0, "minute": 0}


def test_the_order_of_events_and_repeats_change_nothing() -> None:
    events = [(t * HOUR, u, a) for t, u, a in [(3, "u", "a"), (1, "u", "b"), (1, "v", "b")]]
    more = [*events[::-1], events[0], (3 * HOUR, "v", "a")]
    assert [found.at_least[2] for found in measured(more).crowds] == [2] * 5
    back_and_forth = [(t * HOUR, "u", "a") for t in (3, 1, 3, 1)]
    straight = [(t * HOUR, "v", "a") for t in (1, 3)]
    found = measured([*back_and_forth, *straight])
    assert [each.at_least[2] for each in found.crowds] == [2] * 5
    assert [each.too_few for each in found.unicity] == [0, 0, 2, 2, 2]


def test_crossed_points_are_told_apart() -> None:
    """Sums of words of values and of times would be the same for these two."""
    events = [(0, "u", "a"), (HOUR, "u", "b"), (HOUR, "v", "a"), (0, "v", "b")]
    found = {each.resolution.label: each.at_least[2] for each in measured(events).crowds}
    assert found == {"set": 2, "week": 2, "day": 2, "hour": 0, "minute": 0}


@given(streams, st.sampled_from(list(Resolution)), st.integers(1, 3))
def test_every_choice_of_points_singles_out_as_counted(
    events: list[Event], resolution: Resolution, number: int
) -> None:
    points = Points.of(observed(events))
    traces = points.traces(resolution)
    index = Index(traces)
    held = [set(index.point[traces.user == user].tolist()) for user in range(points.users)]
    for user, start in enumerate(traces.starts.tolist()):
        rows = list(combinations(range(start, start + len(held[user])), number))
        if not rows:
            continue
        known = [set(index.point[list(each)].tolist()) for each in rows]
        wanted = [sum(each <= other for other in held) == 1 for each in known]
        found = index.single_out(np.full(len(rows), user), np.array(rows))
        assert found.tolist() == wanted


@given(streams, st.integers(0, 5))
def test_unicity_tries_all_who_have_enough_points(events: list[Event], seed: int) -> None:
    shown = sets(events, Resolution.HOUR)
    traces = Points.of(observed(events)).traces(Resolution.HOUR)
    for found in unicity(traces, sample=1_000, seed=seed):
        able = [mine for mine in shown.values() if len(mine) >= found.points]
        assert found.tried == len(able)
        assert found.too_few == len(shown) - len(able)
        # Whoever all choices single out is singled out, and whoever none does is not.
        answers = [
            {sum(set(some) <= other for other in shown.values()) == 1
             for some in combinations(mine, found.points)}
            for mine in able
        ]  # fmt: skip
        sure = sum(each == {True} for each in answers)
        assert sure <= found.singled_out <= sum(True in each for each in answers)


def test_unicity_is_what_all_choices_give_on_average() -> None:
    held = {"u": "abcd", "v": "abce", "w": "ab", "x": "cde"}
    events = [(0, user, value) for user, values in held.items() for value in values]
    shown = sets(events, Resolution.SET)
    traces = Points.of(observed(events)).traces(Resolution.SET)
    for number in (1, 2, 3):
        able = [mine for mine in shown.values() if len(mine) >= number]
        wanted = np.mean([
            np.mean([sum(set(some) <= other for other in shown.values()) == 1
                     for some in combinations(mine, number)]) for mine in able
        ])  # fmt: skip
        tries = [unicity(traces, sample=99, seed=seed, points=[number])[0] for seed in range(600)]
        found = sum(each.singled_out for each in tries) / sum(each.tried for each in tries)
        assert found == pytest.approx(wanted, abs=0.06)


def test_unicity_looks_through_long_lists() -> None:
    """The only other user with both points is the last of thousands that have one of them."""
    crowd = [(0, f"u{number:05}", "a") for number in range(5_000)]
    events = [*crowd, (0, "u00000", "b"), (0, "u04999", "b"), (0, "u00007", "c")]
    events += [(0, f"x{number:05}", "b") for number in range(6_000)]
    points = Points.of(observed(events))
    traces = points.traces(Resolution.SET)
    rows = traces.starts[[0, 7]][:, None] + np.array([[0, 1], [0, 1]])
    assert Index(traces).single_out(np.array([0, 7]), rows).tolist() == [False, True]


def test_the_seed_draws_the_same_and_another_another() -> None:
    random = np.random.default_rng(7)
    events = [(int(t), f"u{u}", f"v{v}") for t, u, v in zip(
        random.integers(0, 2 * DAY, 5_000), random.integers(0, 500, 5_000),
        random.geometric(0.2, 5_000), strict=True)]  # fmt: skip
    one, same, other = (measured(events, sample=50, seed=seed).unicity for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert [each.tried for each in one] == [50] * 5


def test_wilson_against_published_values() -> None:
    # Newcombe 1998, table I, method 3.
    for successes, trials, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


@given(streams, st.sampled_from([HOUR, DAY, 7 * DAY]))
def test_periods_are_audited_one_by_one(events: list[Event], length: int) -> None:
    found = measured(events, rotate_ns=length).rotation
    assert found is not None
    parts: dict[int, list[Event]] = {}
    for event in events:
        parts.setdefault(event[0] // length, []).append(event)
    assert [period.start_ns for period in found.periods] == [n * length for n in sorted(parts)]
    for period in found.periods:
        wanted = sizes(parts[period.start_ns // length], Resolution.SET)
        assert period.users_visible == len(wanted)
        assert period.at_least == {k: sum(size >= k for size in wanted) for k in KS}
    for each in found.crowds:
        every = [sizes(part, each.resolution) for part in parts.values()]
        assert each.users == sum(len(part) for part in every)
        assert each.at_least == {k: sum(s >= k for part in every for s in part) for k in KS}
        bits = [math.log2(len(part) / s) for part in every for s in part]
        assert each.entropy_bits == pytest.approx(np.mean(bits), abs=1e-9)


@given(streams, st.sampled_from([HOUR, DAY, 7 * DAY]))
def test_linkage_as_counted(events: list[Event], length: int) -> None:
    shown: dict[int, dict[str, set[str]]] = {}
    for t, user, value in events:
        shown.setdefault(t // length, {}).setdefault(user, set()).add(value)
    found = linkage(Points.of(observed(events)).rotated(length), sample=1_000, seed=1)
    cases = [(n, user) for n in shown for user in shown[n] if user in shown.get(n + 1, {})]
    if all(sum(user in users for users in shown.values()) < 2 for user in "uvwxyz"):
        assert found is None
        return
    assert found is not None
    assert found.both == found.tried == len(cases)
    matches = [
        one == two
        for n in shown
        for one in shown[n]
        for two in shown.get(n + 1, {})
        if shown[n][one] == shown[n + 1][two]
        and list(shown[n].values()).count(shown[n][one]) == 1
        and list(shown[n + 1].values()).count(shown[n][one]) == 1
    ]
    assert (found.same_set, found.same_set_wrong) == (matches.count(True), matches.count(False))
    assert found.alike == sum(nearest(shown[n][user], shown[n + 1]) == user for n, user in cases)
    if cases:
        chance = sum(1 / len(shown[n + 1]) for n, _ in cases) / len(cases)
        assert found.by_chance == pytest.approx(chance)


def nearest(mine: set[str], others: dict[str, set[str]]) -> str | None:
    """The one user whose weighted set has most in common."""
    holders = Counter(value for values in others.values() for value in values)

    def weight(values: set[str]) -> float:
        return sum(math.log((len(others) + 1) / max(holders[value], 1)) for value in values)

    scores = {
        user: weight(mine & values) / weight(mine | values) for user, values in others.items()
    }
    best = max(scores.values())
    near = [user for user, score in scores.items() if score > best - 1e-9]
    return near[0] if best > 0 and len(near) == 1 else None


def test_ids_that_really_changed_cannot_be_linked() -> None:
    events = [(0, "u1", "a"), (DAY, "u2", "a"), (2 * DAY, "u3", "a")]
    found = measured(events, rotate_ns=DAY).rotation
    assert found is not None
    assert found.linkage is None


def test_nothing_released() -> None:
    found = audit(observed([]), observed([(0, "u", "a")]), Options(rotate_ns=DAY, show_values=2))
    assert found.utility.users_visible == found.utility.released == 0
    assert found.utility.users == found.utility.users_silent == found.utility.veiled == 1
    assert found.crowds_at(Resolution.SET).shares == dict.fromkeys(KS)
    assert [each.share for each in found.unicity] == [None] * 5
    assert not found.values


@given(streams, st.data())
def test_utility_as_counted(events: list[Event], data: st.DataObject) -> None:
    kept = [event for event in events if data.draw(st.booleans())]
    found = audit(observed(kept), observed(events)).utility
    assert (found.released, found.observed) == (len(kept), len(events))
    assert found.veiled == len(events) - len(kept)
    assert found.users == len({user for _, user, _ in events})
    assert found.users_visible == len({user for _, user, _ in kept})
    assert found.users_silent == found.users - found.users_visible
    (field,) = found.fields
    assert field.values_released == len({value for _, _, value in kept})
    assert field.values_observed == len({value for _, _, value in events})
    if found.course is not None:
        assert found.course.released.sum() == len(kept)
        assert found.course.observed is not None
        assert found.course.observed.sum() == len(events)
        assert (found.course.observed >= found.course.released).all()


def test_ids_of_released_and_original() -> None:
    events = [(0, "u", "a"), (0, "v", "a")]
    others = [(0, "p", "a"), (0, "v", "a")]
    assert audit(observed(events[:1]), observed(events)).utility.ids_match is True
    assert audit(observed(others), observed(events)).utility.ids_match is False
    assert audit(observed(events)).utility.ids_match is None


def test_only_values_that_enough_users_share_are_named() -> None:
    events = [(0, u, a) for u, a in [("u", "a"), ("v", "a"), ("w", "a"), ("u", "b"), ("v", "b"),
                                     ("u", "c"), ("u", "c"), ("u", "c")]]  # fmt: skip
    assert not measured(events).values
    assert [(v.value, v.users) for v in measured(events, show_values=2).values] == [
        ("a", 3), ("b", 2)]  # fmt: skip
    assert [v.value for v in measured(events, show_values=3).values] == ["a"]


def test_a_value_has_a_field_and_a_type_and_a_user_has_one_form() -> None:
    stamps = pa.array([0] * 3, pa.timestamp("ns", tz="UTC"))
    text = pa.record_batch({"t": stamps, "u": ["7", "8", None], "a": ["1", "x", "x"],
                            "b": ["1", None, "y"]})  # fmt: skip
    numbers = pa.record_batch({"t": stamps, "u": [7.0, 9.5, 8.0], "a": [1, 1, 1],
                               "b": pa.array([None] * 3, pa.string())})  # fmt: skip
    found = read([text, numbers], user="u", attributes=["a", "b"])
    assert len(found.users) == 2
    assert len(found) == 5
    assert found.incomplete == 3
    assert [len(book) for book in found.values] == [3, 2]
    assert found.field.tolist() == [0, 0, 0, 0, 1]


def test_a_column_that_holds_no_single_values_is_named() -> None:
    batch = pa.record_batch({"t": pa.array([0], pa.timestamp("ns", tz="UTC")), "u": ["secret"],
                             "a": [["secret"]]})  # fmt: skip
    with pytest.raises(TypeError, match=r"^attribute: 'a' holds lists") as caught:
        read([batch], user="u", attributes=["a"])
    assert "secret" not in str(caught.value)
    with pytest.raises(TypeError, match=r"^user: expected text"):
        read([batch], user="a", attributes=["u"])


def test_floats_that_are_no_number_are_no_value() -> None:
    assert Codebook().codes(pa.array([0.0, float("nan"), -0.0, 1.5])).tolist() == [0, -1, 0, 1]
    assert Codebook().codes(pa.array(["a", "b", "a"]).dictionary_encode()).tolist() == [0, 1, 0]


@given(st.lists(st.lists(st.one_of(st.none(), st.text("abcdef", max_size=2)), max_size=9)))
def test_a_codebook_numbers_values_as_a_dict_does(columns: list[list[str | None]]) -> None:
    book, wanted = Codebook(), {}
    for column in columns:
        for value in dict.fromkeys(column):
            if value is not None:
                wanted.setdefault(value, len(wanted))
        codes = book.codes(pa.array(column, pa.string())).tolist()
        assert codes == [-1 if value is None else wanted[value] for value in column]
    assert len(book) == len(wanted)
    assert book.words(range(len(book))) == list(wanted)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"rotate_ns": 1}, "rotate"), ({"sample": 0}, "sample"), ({"seed": -1}, "seed"),
     ({"show_values": 1}, "show_values")],
)  # fmt: skip
def test_an_option_out_of_range_is_named(options: dict[str, int], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        Options(**options)  # type: ignore[arg-type]


def test_memory_and_time_are_a_few_arrays() -> None:
    count = 200_000
    random = np.random.default_rng(3)
    batch = pa.record_batch(
        {
            "t": pa.array(random.integers(0, 30 * DAY, count), pa.timestamp("ns", tz="UTC")),
            "u": random.zipf(1.5, count) % 20_000,
            "a": random.zipf(1.3, count) % 5_000,
        }
    )
    found = read([batch], user="u", attributes=["a"])
    assert found.time_ns.nbytes + found.user.nbytes + found.value.nbytes == 16 * count
    tracemalloc.start()
    began = time.process_time()
    audit(found, options=Options(sample=1_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 * count
    assert time.process_time() - began < 20


def test_k_of_no_users() -> None:
    found = crowds(np.empty(0, np.int64), Resolution.SET)
    assert (found.users, found.classes, found.entropy_bits) == (0, 0, 0.0)
