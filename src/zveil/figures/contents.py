"""The contents of each figure: curves from the model, points from the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from zveil.figures.detail import ATTRIBUTE_ZS, DAY_RANK_ZS, HORIZON_ZS, KS, RANK_ZS, Detail
from zveil.figures.measurements import Watch, releases
from zveil.figures.rows import DAY, FLAT_DAY, PAPER_USERS, Row, TuningRow
from zveil.figures.tuning import STREAMS, compared, unequal
from zveil.model import Population, averaged, from_columns, p_y, paper
from zveil.simulate import Events, Scenario, isp_day
from zveil.simulate import paper as paper_users

USERS, ATTRIBUTES, HORIZON, Z, K = 50_000, 5_000, 24, 20, 2
_ERROR = 1e-5
_NEXT_STREAM = 1_000  # between the seeds of two streams, so that neighbouring seeds share none


@dataclass(frozen=True)
class Work:
    """What a figure is worked out with: how finely, from which seed, and who watches."""

    detail: Detail
    seed: int
    watch: Watch

    def streams(self, scenario: Callable[[int], Scenario]) -> Iterator[Scenario]:
        """Make the streams that measured values are means of."""
        for number in range(self.detail.streams):
            yield scenario(self.seed + number * _NEXT_STREAM)


Rows: TypeAlias = Iterator[Row]
TuningRows: TypeAlias = Iterator[TuningRow]


def rank(work: Work) -> Rows:
    """p^Y by rank."""
    population = Population.power_law(USERS, ATTRIBUTES)
    base = Row("rank", PAPER_USERS, "p_y", "model", "all", USERS, ATTRIBUTES, 1, Z, 0.0)
    for z in RANK_ZS:
        found = p_y(population, z)
        for each in work.detail.ranks:
            yield base._replace(z=z, rank=each, value=float(found[each - 1]))
    windows = work.detail.rank_windows
    streams = work.streams(lambda seed: paper_users(windows=windows + 1, seed=seed))
    yield from _means(
        base._replace(source="measured", horizon=windows, z=z, rank=each, value=_at(found, each))
        for scenario in streams
        for z, released in releases(scenario, RANK_ZS, work.watch)
        for found in [released.p_y()]
        for each in work.detail.measured_ranks
    )


def a_by_k(work: Work) -> Rows:
    """p_k by A, for several k."""
    yield from _by_attributes("a-by-k", (Z,), KS, work)


def a_by_z(work: Work) -> Rows:
    """p_2 by A, for several z."""
    yield from _by_attributes("a-by-z", ATTRIBUTE_ZS, (K,), work)


def _by_attributes(figure: str, zs: Sequence[int], ks: Sequence[int], work: Work) -> Rows:
    for count in work.detail.attributes:
        population = Population.power_law(USERS, count)
        for z in zs:
            yield from _curve(figure, PAPER_USERS, population, z, ks, HORIZON)
    streams = work.streams(lambda seed: paper_users(windows=HORIZON + 1, seed=seed))
    places = [(count, HORIZON) for count in work.detail.measured_attributes]
    yield from _points(figure, PAPER_USERS, streams, zs, ks, places, work.watch)


def z_by_k(work: Work) -> Rows:
    """p_k by z, for several k."""
    population = Population.power_law(USERS, ATTRIBUTES)
    for z in work.detail.zs:
        yield from _curve("z-by-k", PAPER_USERS, population, z, KS, HORIZON)
    streams = work.streams(lambda seed: paper_users(windows=HORIZON + 1, seed=seed))
    zs, places = work.detail.measured_zs, [(ATTRIBUTES, HORIZON)]
    yield from _points("z-by-k", PAPER_USERS, streams, zs, KS, places, work.watch)


def u_by_k(work: Work) -> Rows:
    """p_k by U, with z in proportion, for several k."""
    for users in sorted(work.detail.users):
        population = Population.power_law(users, ATTRIBUTES)
        yield from _curve("u-by-k", PAPER_USERS, population, z_for(users), KS, HORIZON)
    for users in work.detail.measured_users:
        streams = work.streams(
            lambda seed, users=users: paper_users(users=users, windows=HORIZON + 1, seed=seed)  # type: ignore[misc]
        )
        zs, places = (z_for(users),), [(ATTRIBUTES, HORIZON)]
        yield from _points("u-by-k", PAPER_USERS, streams, zs, KS, places, work.watch)


def z_for(users: int) -> int:
    """Give the z in proportion to the users, 20 for 50,000.

    >>> z_for(22_000), z_for(100_000)
    (9, 40)
    """
    return max(1, round(users * Z / USERS))


def n_by_k(work: Work) -> Rows:
    """p_k by N, for several k."""
    detail = work.detail
    yield from _by_horizon("n-by-k", (Z,), KS, detail.horizons, detail.measured_horizons, work)


def n_by_z(work: Work) -> Rows:
    """p_2 by N, for several z."""
    curve, measured = work.detail.long_horizons, work.detail.measured_long_horizons
    yield from _by_horizon("n-by-z", HORIZON_ZS, (K,), curve, measured, work)


def _by_horizon(
    figure: str,
    zs: Sequence[int],
    ks: Sequence[int],
    horizons: Sequence[int],
    measured: Sequence[int],
    work: Work,
) -> Rows:
    population = Population.power_law(USERS, ATTRIBUTES)
    for z in zs:
        for horizon in horizons:
            yield from _curve(figure, PAPER_USERS, population, z, ks, horizon)
    streams = work.streams(lambda seed: paper_users(windows=max(measured) + 1, seed=seed))
    places = [(ATTRIBUTES, horizon) for horizon in measured]
    yield from _points(figure, PAPER_USERS, streams, zs, ks, places, work.watch)


def day_rank(work: Work) -> Rows:
    """p^Y by rank on the synthetic day."""
    population = _estimated(work.seed)
    users, attributes = population.users, population.attributes
    base = Row("day-rank", DAY, "p_y", "model", "all", users, attributes, 1, Z, 0.0)
    for z in DAY_RANK_ZS:
        found = np.sort(p_y(population, z))[::-1]
        for each in work.detail.day_ranks:
            if each <= attributes:
                yield base._replace(z=z, rank=each, value=float(found[each - 1]))
    for name, day in DAYS:
        base = base._replace(source="measured", population=name, horizon=HORIZON)
        yield from _means(
            row
            for scenario in work.streams(day)
            for row in _ranked(base._replace(attributes=scenario.attributes), scenario, work)
        )


def _ranked(base: Row, scenario: Scenario, work: Work) -> Rows:
    """Measure p^Y by the rank that sites have in the stream itself, as the curves do."""
    order = np.arange(0)
    for z, released in releases(scenario, DAY_RANK_ZS, work.watch):
        found = np.zeros(scenario.attributes + 1)
        share = released.p_y()
        found[: len(share)] = share
        if z == 1:
            order = np.argsort(-found, kind="stable")
        for each in work.detail.measured_ranks:
            yield base._replace(z=z, rank=each, value=float(found[order[each - 1]]))


def day_z(work: Work) -> Rows:
    """p_k by z on the synthetic day, for several k."""
    population = _estimated(work.seed)
    for z in sorted(work.detail.day_zs):
        yield from _curve("day-z", DAY, population, z, KS, HORIZON)
    for name, day in DAYS:
        streams, zs = work.streams(day), work.detail.measured_day_zs
        places = [(_preset().attributes, HORIZON)]
        yield from _points("day-z", name, streams, zs, KS, places, work.watch)


@cache
def _preset() -> Scenario:
    return isp_day()


def _day(seed: int, **changes: Any) -> Scenario:
    """Give the preset's day, and an hour more: hours 1 to 24 are a day, behind one to warm up."""
    return isp_day(windows=HORIZON + 1, seed=seed - 1 + _preset().seed, **changes)


def _flat_day(seed: int) -> Scenario:
    return _day(seed, diurnal=0.0)


DAYS: tuple[tuple[str, Callable[[int], Scenario]], ...] = ((DAY, _day), (FLAT_DAY, _flat_day))


@cache
def _estimated(seed: int) -> Population:
    """Estimate p^X from the first 24 hours, as the paper did from its day."""
    day = _day(seed)
    events = Events.joined(list(day.columns()))
    end = day.start * 1000 + HORIZON * day.window_ms
    first = events.at(slice(0, int(np.searchsorted(events.time_ms, end))))
    return from_columns(first.time_ms, first.user, first.rank, window=day.window, time_unit="ms")


def _at(found: np.ndarray[tuple[int], np.dtype[np.float64]], place: int) -> float:
    return float(found[place]) if place < len(found) else 0.0


def _curve(
    figure: str, who: str, population: Population, z: int, ks: Sequence[int], horizon: int
) -> Rows:
    """Give both estimates, the averaged one also among visible users."""
    users, attributes = population.users, population.attributes
    base = Row(figure, who, "p_k", "paper", "all", users, attributes, horizon, z, 0.0)
    for k in ks:
        yield base._replace(k=k, value=paper(population, z, k, horizon))
        found = averaged(population, z, k, horizon, error=_ERROR)
        yield base._replace(k=k, source="averaged", value=found.everyone)
        yield base._replace(k=k, source="averaged", among="visible", value=found.visible)


def _points(
    figure: str,
    who: str,
    streams: Iterable[Scenario],
    zs: Sequence[int],
    ks: Sequence[int],
    places: Sequence[tuple[int, int]],
    watch: Watch,
) -> Rows:
    """Measure p_k behind the gate, at places (attributes, horizon)."""
    return _means(
        Row(figure, who, "p_k", "measured", among, scenario.users, attributes, horizon, z, part, k)
        for scenario in streams
        for z, released in releases(scenario, zs, watch)
        for attributes, horizon in places
        for k, found in released.p_k(horizon, attributes, ks).items()
        for among, part in found.items()
    )


def _means(single: Iterable[Row]) -> Rows:
    """Put what several streams showed for the same thing into one row."""

    def place(row: Row) -> tuple[object, ...]:
        return (row.z, row.attributes, row.horizon, row.k or 0, row.rank or 0, row.among)

    for _, group in groupby(sorted(single, key=place), key=place):
        rows = list(group)
        values = [row.value for row in rows]
        yield rows[0]._replace(
            value=float(np.mean(values)),
            low=float(min(values)),
            high=float(max(values)),
            streams=len(values),
        )


def hold_share(work: Work) -> TuningRows:
    """Hold a level on several streams, period by period."""
    yield from _held("hold-share", work)


def hold_z(work: Work) -> TuningRows:
    """Show the z that it took."""
    yield from _held("hold-z", work)


def hold_unequal(work: Work) -> TuningRows:
    """Two classes of users: the model by z, and beside the meter over a period."""
    yield from unequal(work.seed, work.detail.tuning, work.watch)
    rows = compared("two classes", work.seed, work.detail.tuning, work.watch)
    yield from (row for row in rows if row.figure == "hold-unequal")


def _held(figure: str, work: Work) -> TuningRows:
    for name in STREAMS:
        rows = compared(name, work.seed, work.detail.tuning, work.watch)
        yield from (row for row in rows if row.figure == figure)


CONTENTS: dict[str, Callable[[Work], Rows | TuningRows]] = {
    "rank": rank,
    "a-by-k": a_by_k,
    "a-by-z": a_by_z,
    "z-by-k": z_by_k,
    "u-by-k": u_by_k,
    "n-by-k": n_by_k,
    "n-by-z": n_by_z,
    "day-rank": day_rank,
    "day-z": day_z,
    "hold-share": hold_share,
    "hold-z": hold_z,
    "hold-unequal": hold_unequal,
}
