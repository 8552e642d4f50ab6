"""Plans for the users of a trace: where the model holds, where it does not, and what then."""

import numpy as np
import pytest
from simulated import all_of

from zveil.model import (
    Option,
    Plan,
    Population,
    Trace,
    Unreachable,
    averaged,
    measure,
    plan,
    plan_trace,
)
from zveil.model.check import _Checker
from zveil.model.measurement import Meter, wilson
from zveil.simulate import Scenario, UserClass


def simulated(**options: object) -> Trace:
    scenario = Scenario(**options)  # type: ignore[arg-type]
    return Trace.of_columns(*all_of(scenario.columns()), window="1h", time_unit="ms")


@pytest.fixture(scope="module")
def poisson() -> Trace:
    return simulated(users=8_000, attributes=500, windows=13, seed=5)


@pytest.fixture(scope="module")
def mixed() -> Trace:
    """Users of two kinds: what the model takes for alike is not."""
    classes = (UserClass(0.9, 0.5), UserClass(0.1, 6))
    return simulated(users=3_000, attributes=200, windows=13, seed=5, classes=classes)


def test_on_the_models_own_users_the_model_holds(poisson: Trace) -> None:
    seen: list[str] = []
    found = plan_trace(poisson, horizon=12, watch=seen.append)
    assert found.holds
    assert (found.warm_up, found.windows) == (1, 12)
    proposed = plan(poisson.population(whole=True), horizon=12)
    assert found.options == proposed.options
    assert found.kept == proposed.kept
    for option, measured in zip(found.options, found.measured, strict=True):
        assert (measured.z, measured.rotate_every) == (option.z, option.rotate_every)
        # Within sampling error: of the interval, and of what the estimate was made from.
        assert measured.low <= option.p_k <= measured.high
        assert measured.released == pytest.approx(option.released, abs=0.01)
        assert measured == measure(poisson, option.z, rotate_every=option.rotate_every)
    assert {words.split(":")[0].split(" ")[0] for words in seen} >= {"planning", "checking"}


@pytest.mark.parametrize("z", [3, 10, 30, 60])
@pytest.mark.parametrize("count", ["visible", "all"])
def test_measured_as_expected_at_other_z(poisson: Trace, z: int, count: str) -> None:
    population = Population.power_law(users=8_000, attributes=500)
    for horizon in (1, 4, 12):
        expected = averaged(population, z, 2, horizon).of(count)  # type: ignore[arg-type]
        found = measure(poisson, z, rotate_every=horizon, count=count)  # type: ignore[arg-type]
        low, high = wilson(expected, found.counted / 2)
        assert found.p_k is not None
        # The model takes windows side by side, and the gate's slides: that is worth a little.
        assert low - 0.01 <= found.p_k <= high + 0.01


def test_where_the_model_is_wrong_the_trace_decides(mixed: Trace) -> None:
    found = plan_trace(mixed, horizon=12)
    assert not found.holds
    short = [check for check in found.checks if check.falls_short]
    assert short
    for check in short:
        assert check.option is not None
        assert check.measured is not None
        assert check.instead is not None
        assert check.option.p_k >= 0.95 > check.measured.high
        assert check.instead.z > check.option.z
    for option, measured in zip(found.options, found.measured, strict=True):
        assert option.p_k == measured.p_k
        assert option.p_k >= 0.95
        assert option.released == measured.released
        again = measure(mixed, option.z, rotate_every=option.rotate_every)
        assert again == measured
        before = measure(mixed, option.z - 1, rotate_every=option.rotate_every)
        assert before.p_k is not None
        assert before.p_k < 0.95
    shares = [option.released for option in found.options]
    assert shares == sorted(shares, reverse=True)
    assert found.kept is not None
    assert found.kept_measured is not None
    assert found.kept.z == found.kept_measured.z


def test_what_the_trace_reaches_and_the_model_does_not() -> None:
    # Thirty users in step: every one shows the same three values in every window.
    windows, users = 6, 30
    rows = [(w * 3600 + u, u, v) for w in range(windows) for v in range(3) for u in range(users)]
    # And each has one value of their own, so that the model expects different sets.
    rows += [(w * 3600 + 60, u, 10 + u) for w in range(windows) for u in range(users) if u % 2]
    times, people, values = zip(*sorted(rows), strict=True)
    trace = Trace.of_columns(times, people, values, window="1h")
    found = plan_trace(trace, probability=0.99, horizon=2)
    assert found.kept is not None
    assert found.kept.p_k >= 0.99
    assert measure(trace, found.kept.z, rotate_every=2).p_k == 1


def test_if_nothing_measures_up_it_says_so() -> None:
    # Pairs of values that hardly anyone shares, so that visible users differ at every z.
    random = np.random.default_rng(3)
    users, windows = 60, 8
    rows = [
        (w * 3600 + int(random.integers(3600)), u, int(v))
        for w in range(windows) for u in range(users)
        for v in random.choice(40, size=int(random.integers(12, 25)), replace=False)
    ]  # fmt: skip
    times, people, values = zip(*sorted(rows), strict=True)
    trace = Trace.of_columns(times, people, values, window="1h")
    with pytest.raises(Unreachable, match=r"no z reaches .*\. Nor does any z measure up"):
        plan_trace(trace, k=40, probability=0.999, horizon=4)


def test_only_a_part_of_a_long_horizon_can_be_checked(poisson: Trace) -> None:
    found = plan_trace(poisson, horizon=30)
    assert found.windows == 12
    measured = {each.rotate_every: each for each in found.measured}
    assert measured[30].windows == 12
    assert measured[4].windows == 4


def test_where_nobody_is_visible_nothing_is_borne_out(poisson: Trace) -> None:
    meter = Meter(poisson, k=2, count="visible")
    checker = _Checker(meter, 0.95, poisson.users, lambda _: None)
    option = Option(4, z=5_000, p_k=0.96, released=0.1)
    (check,) = checker.checked(Plan(2, 0.95, 4, "visible", option, (option,)))
    assert check.measured is not None
    assert (check.measured.p_k, check.measured.visible, check.falls_short) == (None, 0, True)
    *_, found = checker.searched([check], iter([4]))
    assert found.instead is not None
    assert found.instead.z < 5_000
    assert found.instead.p_k is not None
    assert found.instead.p_k >= 0.95


@pytest.mark.parametrize("count", ["visible", "all"])
def test_a_wrong_time_takes_no_memory_for_the_windows_between(count: str) -> None:
    times = [0, 10**9, 10**9 + 1, 10**9 + 2]
    trace = Trace.of_columns(times, ["ada", "ada", "bob", "cyd"], ["x"] * 4, window=1e-3)
    assert trace.empty_windows == trace.windows - 4
    found = measure(trace, z=1, rotate_every=1, count=count)  # type: ignore[arg-type]
    assert found.periods > 10**11
    assert found.p_k == (0 if count == "visible" else pytest.approx(1))


@pytest.mark.parametrize("count", ["visible", "all"])
def test_those_counted(poisson: Trace, count: str) -> None:
    found = plan_trace(poisson, horizon=2, count=count)  # type: ignore[arg-type]
    assert found.count == count
    for measured in found.measured:
        assert measured.counted == (
            measured.visible if count == "visible" else poisson.users * measured.periods
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 9_000}, "k: expected at most the number of users, 7,908, got 9,000"),
        ({"k": 1}, "k: expected a whole number from 2"),
        ({"probability": 1.0}, "probability: expected a number above 0 and below 1"),
        ({"horizon": 0}, "horizon: expected a finite number above 0"),
        ({"count": "some"}, "count: expected 'visible' or 'all'"),
    ],
)
def test_the_impossible_is_refused(poisson: Trace, options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan_trace(poisson, **options)  # type: ignore[arg-type]
