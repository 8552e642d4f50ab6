"""Made-up streams: the same from the same seed, in order, and as many as expected."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from simulated import all_of, deviations, measured_px

from zveil import Gate
from zveil.reference import Reference
from zveil.simulate import Events, Flash, Late, Scenario, UserClass, isp_day, paper, preset
from zveil.simulate.draws import Ranks
from zveil.simulate.rates import DAY, DAY_MS, HOUR_MS, Profile, calibrated, exposed
from zveil.simulate.rows import Rows

SMALL = Scenario(users=3_000, attributes=400, windows=30, rate=0.2)
CLASSES = (UserClass(0.9, 0.5), UserClass(0.1, 5))
UNEVEN = replace(
    SMALL,
    classes=CLASSES,
    diurnal=1.0,
    flashes=(Flash("6h", "30m", 20, 3), Flash("10h", "2h", 3)),
    late=Late(0.05, "90s"),
)
LAPS = [SMALL, replace(SMALL, diurnal=1.0), UNEVEN, isp_day(windows=3), paper(windows=4)]


def same(one: Events, other: Events) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("scenario", LAPS)
def test_the_same_seed_gives_the_same_events_whatever_the_block(scenario: Scenario) -> None:
    whole = all_of(scenario.columns())
    assert same(whole, all_of(replace(scenario).columns()))
    for rows in (1_000, 65_535, 200_000):
        cut = list(scenario.columns(rows))
        assert same(whole, all_of(cut))
        assert {part.size for part in cut[:-1]} <= {rows}
        assert 0 < cut[-1].size <= rows
    assert not same(whole, all_of(replace(scenario, seed=scenario.seed + 1).columns()))


def test_blocks_of_one_row() -> None:
    scenario = replace(SMALL, users=20, windows=2)
    cut = list(scenario.columns(1))
    assert len(cut) > 20
    assert same(all_of(cut), all_of(scenario.columns()))


@pytest.mark.parametrize("scenario", LAPS)
def test_counts_are_within_sampling_error(scenario: Scenario) -> None:
    events = all_of(scenario.columns())
    expected = scenario.expected_events()
    assert abs(events.size - expected) < 4 * np.sqrt(expected)
    assert events.user.min() >= 1
    assert events.user.max() <= scenario.users
    assert events.rank.min() >= 1
    assert events.rank.max() <= scenario.attributes


@pytest.mark.parametrize("scenario", LAPS)
def test_the_expected_px_is_what_is_measured(scenario: Scenario) -> None:
    """Classes make a user's windows alike, so that the spread is no larger than if independent."""
    found = deviations(scenario, all_of(scenario.columns()))[:300]
    assert np.abs(found).max() < 4.5
    assert abs(found.mean()) < 4 / np.sqrt(len(found))
    assert 0.8 < found.std() < 1.2


def test_px_is_exact_where_nothing_varies() -> None:
    scenario = Scenario(rate=0.3, exponent=0.7, attributes=50, window="7m")
    ranks = np.arange(1, 51)
    assert np.allclose(scenario.px(), 1 - np.exp(-0.3 / ranks**0.7), rtol=1e-13)


def test_users_and_windows_are_uniform() -> None:
    events = all_of(SMALL.columns())
    for counts in (
        np.bincount(events.user, minlength=SMALL.users + 1)[1:],
        np.bincount((events.time_ms - SMALL.start * 1000) // SMALL.window_ms),
    ):
        mean = counts.mean()
        chi = ((counts - mean) ** 2).sum() / mean
        assert abs(chi - len(counts)) < 5 * np.sqrt(2 * len(counts))


def test_gaps_are_exponential() -> None:
    scenario = Scenario(users=1_000, attributes=1, rate=0.01, windows=200)
    gaps = np.diff(all_of(scenario.columns()).time_ms)
    mean = scenario.window_ms / 10
    assert abs(gaps.mean() - mean) < 5 * mean / np.sqrt(len(gaps))
    assert abs((gaps > 2 * mean).mean() - np.exp(-2)) < 0.03


@pytest.mark.parametrize("scenario", [s for s in LAPS if s.late is None])
def test_times_are_in_order(scenario: Scenario) -> None:
    events = all_of(scenario.columns())
    assert (np.diff(events.time_ms) >= 0).all()
    assert events.time_ms[0] >= scenario.start * 1000


def test_a_longer_stream_begins_with_a_shorter_one() -> None:
    for scenario in (SMALL, replace(SMALL, diurnal=0.7), isp_day(windows=2)):
        short = all_of(scenario.columns())
        long = all_of(replace(scenario, windows=scenario.windows + 3).columns())
        assert long.size > short.size
        assert same(short, long.at(slice(0, short.size)))


def test_late_events_are_the_same_events_in_another_order_bounded() -> None:
    late = Late(0.1, "10m", "25m")
    calm, events = all_of(SMALL.columns()), all_of(replace(SMALL, late=late).columns())
    newest = np.maximum.accumulate(events.time_ms)
    behind = newest - events.time_ms
    assert behind.max() <= late.most_ms
    assert behind.max() > late.mean_ms
    # Some of the late ones are overtaken by nobody; few others are behind.
    assert 0.09 < (behind > 0).mean() <= 0.101
    order, calm_order = (np.lexsort(each[::-1]) for each in (events, calm))
    assert same(events.at(order), calm.at(calm_order))
    gate = Gate(5, "1h", lateness="25m")
    gate.observe_many(*events, time_unit="ms")
    assert gate.stats().late == 0


def test_all_may_be_late_and_none() -> None:
    assert same(all_of(replace(SMALL, late=Late(0, "1h")).columns()), all_of(SMALL.columns()))
    events = all_of(replace(SMALL, late=Late(1, "1h")).columns())
    assert events.size == all_of(SMALL.columns()).size
    assert (np.diff(events.time_ms) < 0).mean() > 0.4


def test_classes_have_their_rates_and_numbers() -> None:
    scenario = replace(SMALL, classes=CLASSES)
    events = all_of(scenario.columns())
    is_first = events.user <= 2_700
    per_user = is_first.sum() / 2_700, (~is_first).sum() / 300
    calm = SMALL.expected_events() / SMALL.users
    assert per_user[0] == pytest.approx(0.5 * calm, rel=0.02)
    assert per_user[1] == pytest.approx(5 * calm, rel=0.02)
    assert scenario.expected_events() == pytest.approx(0.95 * SMALL.expected_events())
    mixed = 0.9 * scenario.px(0) + 0.1 * scenario.px(1)
    assert np.allclose(mixed, scenario.px(), rtol=1e-12)
    assert np.allclose(scenario.px(1), 1 - np.exp(-5 * SMALL.rates), rtol=1e-12)


def test_a_flash_adds_to_its_while_and_leaves_the_rest() -> None:
    flash = Flash("5h30m", "1h", 40, 7)
    calm, events = all_of(SMALL.columns()), all_of(replace(SMALL, flashes=(flash,)).columns())
    start = SMALL.start * 1000
    is_within = (events.time_ms >= start + flash.at_ms) & (events.time_ms < start + flash.until_ms)
    is_flash = is_within & (events.rank == 7)
    expected = SMALL.users * SMALL.rates[6] * 40
    assert abs(is_flash.sum() - expected) < 4 * np.sqrt(expected)
    is_calm = (calm.time_ms >= start + flash.at_ms) & (calm.time_ms < start + flash.until_ms)
    assert same(events.at(~is_flash), calm.at(~(is_calm & (calm.rank == 7))))


def test_flashes_of_all_ranks_overlap_by_adding() -> None:
    flashes = (Flash("0s", "10h", 3), Flash("5h", "100h", 2.5))
    scenario = replace(SMALL, flashes=flashes)
    per_hour = SMALL.expected_events() / SMALL.windows
    assert scenario.expected_events() == pytest.approx(per_hour * (30 + 2 * 10 + 1.5 * 25))
    events = all_of(scenario.columns())
    hours = np.bincount((events.time_ms - SMALL.start * 1000) // HOUR_MS)
    factors = np.repeat([3, 4.5, 2.5], [5, 5, 20])
    assert (np.abs(hours - per_hour * factors) < 5 * np.sqrt(per_hour * factors)).all()
    assert same(
        events, all_of(replace(scenario, flashes=(*flashes, Flash("1h", "1h", 1))).columns())
    )


@pytest.mark.parametrize("attributes", [1, 2, 400, 30_000, 3_000_000])
def test_ranks_are_drawn_as_a_search_would(attributes: int) -> None:
    weights = np.random.default_rng(attributes).pareto(1.0, attributes)
    borders = np.cumsum(weights) / np.cumsum(weights)[-1]
    drawn = Ranks(weights).draw(np.random.default_rng(5), 200_000)
    expected = np.searchsorted(borders, np.random.default_rng(5).random(200_000), "right") + 1
    assert np.array_equal(drawn, expected)


def test_a_huge_flash_is_cut_into_cells_too() -> None:
    scenario = Scenario(users=20_000, attributes=20, windows=3, flashes=(Flash("1h", "30m", 300),))
    parts = list(scenario.columns(10_000))
    assert sum(part.size for part in parts) == pytest.approx(scenario.expected_events(), rel=0.01)
    assert (np.diff(all_of(parts).time_ms) >= 0).all()


def test_the_day_has_as_many_events_as_without_its_course() -> None:
    assert sum(DAY) == pytest.approx(24)
    for start in (SMALL.start, SMALL.start + 5 * 3600 + 1234):
        even = replace(SMALL, windows=48, start=start)
        daily = replace(even, diurnal=1.0)
        assert daily.expected_events() == pytest.approx(even.expected_events(), rel=1e-9)
        assert (daily.px() < even.px()).all()
        events = all_of(daily.columns())
        hours = np.bincount(events.time_ms // HOUR_MS % 24)
        expected = 2 * np.array(DAY) * SMALL.expected_events() / SMALL.windows
        assert (np.abs(hours - expected) < 5 * np.sqrt(expected)).all()


def test_half_a_depth_is_halfway() -> None:
    night = (Profile(depth).activity([HOUR_MS * 4, HOUR_MS * 5]) for depth in (0, 0.5, 1))
    assert [round(float(b - a) / HOUR_MS, 6) for a, b in night] == [1.0, 0.6, 0.2]


def test_activity_and_time_undo_each_other() -> None:
    profile = Profile(1.0)
    times = np.random.default_rng(1).uniform(0, 5 * DAY_MS, 1_000)
    assert np.allclose(profile.times_ms(profile.activity(times)), times, atol=1e-3)


def test_rates_are_calibrated_to_any_px() -> None:
    random = np.random.default_rng(2)
    px = np.concatenate([random.uniform(1e-9, 0.999, 500), [1e-15, 0.999999]])
    exposures, weights = random.uniform(0.1, 9, 30), np.full(30, 1 / 30)
    assert np.allclose(exposed(calibrated(px, exposures, weights), exposures, weights), px, 1e-9)


def test_a_popularity_of_ones_own_holds_with_classes_and_days() -> None:
    scenario = replace(
        SMALL, windows=24, popularity=((1, 0.5), (400, 0.001)), diurnal=1.0, classes=CLASSES
    )
    assert scenario.px()[[0, -1]] == pytest.approx([0.5, 0.001], rel=1e-9)
    found = measured_px(scenario, all_of(scenario.columns()))
    assert found[0] == pytest.approx(0.5, abs=0.01)


def test_the_gate_takes_columns_and_batches_alike() -> None:
    scenario = replace(UNEVEN, windows=8, flashes=UNEVEN.flashes[:1])
    gates = Gate(10, "1h"), Gate(10, "1h")
    for events, batch in zip(scenario.columns(), scenario.batches(), strict=True):
        mask = gates[0].observe_many(*events, time_unit="ms")
        assert np.array_equal(mask, gates[1].observe_many(*batch.columns))
    assert gates[0].stats().released == gates[1].stats().released > 0


def test_the_gate_releases_what_the_definition_does() -> None:
    events = all_of(replace(UNEVEN, users=300, windows=8, flashes=()).columns())
    reference = Reference(8, 3_600_000)
    rows = zip(*(column.tolist() for column in events), strict=True)
    expected = [reference.observe(*row) for row in rows]
    mask = Gate(8, "1h").observe_many(*events, time_unit="ms")
    assert mask.tolist() == expected
    assert 0 < mask.sum() < len(mask)


def test_batches_say_what_they_are() -> None:
    batch = next(UNEVEN.batches(10))
    assert batch.num_rows == 10
    assert batch.schema.types == [pa.timestamp("us", "UTC"), pa.string(), pa.string()]
    events = next(UNEVEN.columns(10))
    assert batch.column("user").to_pylist() == [f"user-{number:05}" for number in events.user]
    names = [f"site-{rank:05}.example" for rank in events.rank]
    assert batch.column("attribute").to_pylist() == names
    assert batch.column("time").cast("int64").to_pylist() == (events.time_ms * 1000).tolist()
    batch.validate(full=True)
    assert b"no real" in batch.schema.metadata[b"synthetic"]
    assert b'"diurnal": 1.0' in batch.schema.metadata[b"scenario"]


@pytest.mark.parametrize("digits", range(1, 12))
def test_rows_write_numbers_of_any_width(digits: int) -> None:
    numbers = np.random.default_rng(digits).integers(0, 10**digits, 200)
    numbers[:2] = 0, 10**digits - 1
    expected = "".join(f"<{number:0{digits}}>{number % 10}\n" for number in numbers.tolist())
    assert (
        Rows("<", digits, ">", 1, "\n").text(numbers, numbers % 10).tobytes().decode() == expected
    )


def test_names_grow_with_their_number() -> None:
    scenario = Scenario(users=2_000_000, attributes=1_000_000, windows=1, rate=0.001, exponent=0.2)
    batch = next(scenario.batches())
    assert {len(name) for name in batch.column("user").to_pylist()} == {len("user-") + 7}
    assert max(batch.column("user").to_pylist()) <= "user-2000000"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"users": 0}, "users: expected a whole number from 1 to 2,147,483,647, got 0"),
        ({"users": 1.5}, "users: expected a whole number"),
        ({"attributes": True}, "attributes: expected a whole number"),
        ({"windows": 0}, "windows: expected a whole number from 1"),
        ({"windows": 10**9}, "windows: expected an end before 2286"),
        ({"rate": 0}, "rate: expected a number above 0, got 0"),
        ({"rate": 1e300}, "rate: expected at most 1,000,000 events a millisecond"),
        ({"rate": float("nan")}, "rate: expected a number above 0, got nan"),
        ({"exponent": -1}, "exponent: expected a number of at least 0, got -1"),
        ({"window": "1.5us"}, "window: expected whole milliseconds, at least one, got '1.5us'"),
        ({"window": "an hour"}, "window: expected a duration"),
        ({"start": 0}, "start: expected a whole number from 1,000,000,000"),
        ({"seed": -1}, "seed: expected a whole number from 0"),
        ({"diurnal": 1.1}, "diurnal: expected a depth from 0 to 1, got 1.1"),
        ({"classes": (UserClass(0.5, 2),)}, "class: expected shares that make 1, got 0.5"),
        (
            {"flashes": (Flash("1h", "1h", 2, 401),)},
            "flash: expected a rank from 1 to 400, got 401",
        ),
        ({"flashes": (Flash("30h", "1h", 2),)}, "flash: expected a start within the stream"),
        ({"popularity": ((1, 0.5), (399, 0.1))}, "popularity: expected rising ranks from 1 to 400"),
        ({"popularity": ((1, 1.0), (400, 0.1))}, "popularity: expected p^X between 0 and 1"),
    ],
)
def test_a_wrong_parameter_is_named(change: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("^", r"\^")):
        replace(SMALL, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "text", "words"),
    [
        (UserClass.of, "0.5", "class: expected SHARE:FACTOR"),
        (UserClass.of, "0:2", "class: expected a share above 0 to 1, got 0.0"),
        (UserClass.of, "0.5:0", "class: expected a factor above 0, got 0.0"),
        (UserClass.of, "half:2", "class: expected a number, got 'half'"),
        (Flash.of, "6h:30m", "flash: expected AT:DURATION:FACTOR"),
        (Flash.of, "6h:30m:0.5", "flash: expected a factor of at least 1, got 0.5"),
        (Flash.of, "6h:soon:2", "flash: expected a duration"),
        (Flash.of, "6h:30m:2:0", "flash: expected a rank from 1, got 0"),
        (Flash.of, "6h:30m:2:x", "flash: expected a whole number, got 'x'"),
        (Late.of, "5%", "late: expected SHARE:MEAN"),
        (Late.of, "120%:1s", "late: expected a share from 0 to 1, got 1.2"),
        (Late.of, "5%:0s", "late: expected whole milliseconds, at least one, got '0s'"),
    ],
)
def test_a_wrong_variation_is_named(make: type[Flash], text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("[", r"\[")):
        make(text)  # type: ignore[call-arg]


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(ValueError, match="preset: expected paper or isp-day, got 'home'"):
        preset("home")
