"""A whole table in one call."""

import warnings
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zveil.durations import Duration
from zveil.gate import Gate, Stats

Table = TypeVar("Table")


def anonymize(
    table: Table,
    *,
    time: str,
    user: str,
    attribute: str,
    z: int,
    window: Duration,
    **options: Any,
) -> Table:
    """Keep the rows of a table that z-anonymity releases.

    Rows are observations in their order, as if they arrived one by one; sort them by time first.
    The columns stay as they are, user ids too.

    Parameters
    ----------
    table
        A pandas or Polars data frame, an Arrow table, record batch or reader, or anything else with
        the Arrow stream interface (which comes back as an Arrow table).
    time, user, attribute
        Names of columns.
    z, window, **options
        As for `Gate`.

    Returns
    -------
    The same kind of table, released rows only.

    Warns
    -----
    UserWarning
        If rows were veiled for being late, from the future, or incomplete.

    Examples
    --------
    >>> visits = pa.table({"t": [0, 1], "who": ["ada", "bob"], "site": ["a", "a"]})
    >>> anonymize(visits, time="t", user="who", attribute="site", z=2, window="1h").to_pylist()
    [{'t': 1, 'who': 'bob', 'site': 'a'}]
    """
    gate = Gate(z, window, **options)
    names = {"time": time, "user": user, "attribute": attribute}
    if isinstance(table, pa.RecordBatchReader):
        return cast(Table, _reader(table, gate, names))
    source: Any = table
    if hasattr(source, "collect_schema") and not hasattr(source, "__arrow_c_stream__"):
        raise TypeError("table: expected a table with rows, got a lazy one; call collect() first")
    kind = type(source).__module__.partition(".")[0]
    if kind not in {"pandas", "polars"} and not isinstance(source, pa.Table | pa.RecordBatch):
        if not hasattr(source, "__arrow_c_stream__"):
            raise TypeError(
                "table: expected a pandas or Polars data frame, an Arrow table or anything with "
                f"the Arrow stream interface, got {type(source).__name__}"
            )
        source = pa.table(source)
    mask = _decide(source, gate, names)
    _warn(gate.stats())
    if kind == "pandas":
        return cast(Table, source[mask])
    return cast(Table, source.filter(mask if kind == "polars" else pa.array(mask)))


def _reader(
    reader: pa.RecordBatchReader, gate: Gate, names: dict[str, str]
) -> pa.RecordBatchReader:
    """Decide batch by batch, as they are read."""

    def released() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch.filter(pa.array(_decide(batch, gate, names)))
        _warn(gate.stats())

    return pa.RecordBatchReader.from_batches(reader.schema, released())


def _decide(source: Any, gate: Gate, names: dict[str, str]) -> NDArray[np.bool_]:
    is_arrow = isinstance(source, pa.Table | pa.RecordBatch)
    present = list(source.schema.names if is_arrow else source.columns)
    for role, name in names.items():
        if name not in present:
            there = ", ".join(map(repr, present))
            raise ValueError(f"{role}: no column {name!r} in the table; there are {there}")
    time, user, attribute = (source[name] for name in names.values())
    return gate.observe_many(time, user, attribute)


def _warn(stats: Stats) -> None:
    advice = {
        "late": "older than the lateness allows: sort the table by time",
        "future": "more than max_future past the wall clock: check time_unit",
        "invalid": "without a time, user or attribute",
        "refused": "beyond the memory limit: raise memory_limit",
    }
    for reason, meaning in advice.items():
        if count := getattr(stats, reason):
            warnings.warn(f"{count} of {stats.observed} rows veiled: {meaning}", stacklevel=3)
