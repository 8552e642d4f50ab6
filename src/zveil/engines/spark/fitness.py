"""Which policies can be kept over a data frame that is spread over machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from zveil.engines.fitness import check_parts
from zveil.policy import Policy, PolicyError

MISSING = "Spark needs packages that are not installed; add them with: pip install 'zveil[spark]'"


def check(policy: Policy) -> None:
    """Refuse what needs all rows in one place, or what rows without an arrival do not have.

    Raises
    ------
    PolicyError
        If the policy says such a thing.
    """
    check_parts(policy)
    for number, each in enumerate(policy.attributes):
        if each.swap:
            raise PolicyError(
                ("attribute", number, "swap"),
                "a value is swapped for another that the same gate released before it, and which "
                "that is depends on how rows are spread over tasks; leave it out here",
            )
    if policy.input.id is not None:
        raise PolicyError(
            ("input", "id"),
            "repetitions of a record may be in several tasks; leave it out here, and take them "
            "out before with df.dropDuplicates([...])",
        )


def check_times(policy: Policy, kind: pa.DataType) -> None:
    """Refuse a column of times that nobody can tell the meaning of, or that cannot be sorted.

    Elsewhere the first records tell what numbers are. Here each task would find that out by
    itself, and two might differ.
    """
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_text(kind)
    if not is_plain and not pa.types.is_timestamp(kind) and not pa.types.is_date(kind):
        raise PolicyError(
            ("time", "field"),
            f"expected a column of timestamps, dates, numbers or text, got one of the type {kind}",
        )
    if is_plain and policy.time.format is None:
        raise PolicyError(
            ("time", "format"),
            f"the column {policy.time.field!r} holds {'text' if is_text(kind) else 'numbers'}; "
            "state what they are: 's', 'ms', 'us', 'ns' or 'iso' (with time_format= where there "
            "is no policy file), or make it a column of timestamps",
        )


def check_ties(schema: pa.Schema, ties: Sequence[str]) -> None:
    """Refuse columns to break ties by that have no order."""
    for name in ties:
        column = pa.RecordBatch.from_pylist([], schema=pa.schema([schema.field(name)]))
        try:
            pc.sort_indices(column, sort_keys=[(name, "ascending")])
        except (TypeError, pa.ArrowException):
            kind = schema.field(name).type
            raise TypeError(
                f"ties: {name!r} is of the type {kind}, which has no order; name columns of "
                "numbers, text or times"
            ) from None


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def check_frame(df: Any) -> None:
    """Refuse what is no data frame of Spark."""
    try:
        from pyspark.sql import DataFrame
    except ImportError:
        raise ImportError(MISSING) from None
    if not isinstance(df, DataFrame):
        raise TypeError(f"df: expected a data frame of Spark, got {type(df).__name__}")
