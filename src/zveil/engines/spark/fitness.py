"""Which policies can be kept over a data frame that is spread over machines."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from zveil.policy import Policy, PolicyError

MISSING = "Spark needs packages that are not installed; add them with: pip install 'zveil[spark]'"

STREAMING = (
    "df: a streaming data frame has no end to sort up to, and anonymize() decides rows in the "
    "order of their times. Write it to files or a table and anonymize these; for decisions at the "
    "moment of arrival take `zveil kafka`"
)


def check(policy: Policy) -> None:
    """Refuse what needs all rows in one place, or what rows without an arrival do not have.

    Raises
    ------
    PolicyError
        If the policy says such a thing.
    """
    if getattr(policy, "hold", None) is not None:
        raise PolicyError(
            ("hold",),
            "what looks across attributes does not partition: to tune z, one place would have to "
            "see everything that leaves. Leave it out here, and state a z",
        )
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
    if policy.user.rotate is not None and not policy.user.keep_keys:
        raise PolicyError(
            ("user", "rotate"),
            "a one-way chain of keys belongs to one process, and tasks must make the same "
            "pseudonyms; say keep_keys too, which makes the key of each period from the one key",
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


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def check_frame(df: Any) -> None:
    """Refuse what is no data frame of Spark, or one without an end."""
    try:
        from pyspark.sql import DataFrame
    except ImportError:
        raise ImportError(MISSING) from None
    if not isinstance(df, DataFrame):
        raise TypeError(f"df: expected a data frame of Spark, got {type(df).__name__}")
    if df.isStreaming:
        raise ValueError(STREAMING)
