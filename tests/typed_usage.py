"""How the types are meant to be used; mypy checks this file, nothing runs it."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import zveil
from zveil import Gate, Meter, SnapshotError, Stats, anonymize
from zveil.meter import Definition, Reading
from zveil.reference import Reference
from zveil.simulate import Events, Flash, Late, Scenario, UserClass

gate = Gate(20, "1h", z_max=100, lateness=timedelta(hours=2), memory_limit="2GB", threads=2)
released: bool = gate.observe(1_700_000_000, "ada", "example.org")
mask: NDArray[np.bool_] = gate.observe_many(np.arange(3), [1, 2, 3], ["a", "a", "b"])
level: int | None = gate.observe_levels(0, "ada", ["news", "example.org"])
levels: NDArray[np.int8] = gate.observe_levels_many([0], ["ada"], [["news"], ["example.org"]])
stats: Stats = gate.stats()
erased: int = gate.forget("ada")
key: bytes = gate.key
gate.z = 50
meter = Meter(rotate=timedelta(days=1), lateness="1h", memory_limit="1GB", key=key)
meter.add(np.arange(3), ["u", "v", "w"], pa.array(["a", "a", "b"]), mask, field="page")
reading: Reading = meter.report()
shares: dict[int, float | None] = reading.shares
series: list[Reading] = Meter.restore(meter.save(), meter.key).periods()
counts: tuple[int, int] | None = meter.counts(2)
plain: Reading = Definition(length=10).report()
events: list[tuple[float, str, str]] = [(0.5, "ada", "a")]
kept: Iterator[tuple[float, str, str]] = gate.filter(events)


async def stream() -> AsyncIterator[dict[str, str]]:
    yield {}


later: AsyncIterator[dict[str, str]] = gate.filter(stream(), time="t", user="u", attribute="a")
table: pa.Table = anonymize(
    pa.table({"t": [0]}), time="t", user="u", attribute="a", z=20, window=3600
)
again: Gate = Gate.restore("state", key, threads=2)
error: type[ValueError] = SnapshotError
version: str = zveil.__version__
oracle: bool = Reference(20, 3600).observe(0, "ada", "a")
scenario: Scenario = Scenario(
    users=100,
    window=timedelta(hours=1),
    classes=(UserClass(0.9, 0.5), UserClass(0.1, 5)),
    flashes=(Flash("6h", "30m", 20, rank=3),),
    late=Late(0.05, "30s"),
)
blocks: Iterator[Events] = scenario.columns(1_000)
px: NDArray[np.float64] = scenario.px()
