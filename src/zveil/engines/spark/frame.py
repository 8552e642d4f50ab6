"""A data frame of Spark in, what z-anonymity releases of it out."""

from __future__ import annotations

import inspect
import os
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zveil.durations import Duration
from zveil.engines.spark.account import Account
from zveil.engines.spark.fitness import check, check_frame, is_text
from zveil.engines.spark.layout import SORTED, Layout, laid_out
from zveil.engines.spark.stage import Keying, Secret, Stage
from zveil.fields import FieldError, wrong_columns
from zveil.keys import LENGTH, key_of
from zveil.policy import Policy, read_policy

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def anonymize(
    df: DataFrame,
    policy: Policy | str | os.PathLike[str] | None = None,
    *,
    time: str | None = None,
    user: str | None = None,
    attribute: str | Sequence[str] | None = None,
    z: int | None = None,
    window: Duration | None = None,
    ties: Sequence[str] = (),
    key: bytes | None = None,
    key_file: str | os.PathLike[str] | None = None,
    shards: int | None = None,
    account: Account | None = None,
    **options: Any,
) -> DataFrame:
    """Give what z-anonymity releases of a data frame: a frame to be evaluated as any other.

    Rows are decided in the order of their times, rows of one time in that of `ties` and then of
    their users. The result is what one gate tells that sees all rows in this order.

    Parameters
    ----------
    df
        The rows; not a streaming frame.
    policy
        What is decided and what leaves, as for ``zveil run``: a `Policy`, or the name of a policy
        file. Or instead:
    time, user, attribute, z, window, **options
        As for `Policy.of`; one attribute, or several.
    ties
        Columns that tell the order of rows of one time, such as a sequence number.
    key, key_file
        32 secret bytes, or the file that has them: what pseudonyms are made from. By default a new
        key that nobody keeps.
    shards
        How many tasks decide. By default ``spark.sql.shuffle.partitions``, and as Spark adapts it.
    account
        Counts what becomes of the rows.

    Raises
    ------
    PolicyError
        If the policy asks for what does not partition, or columns are not what it takes.
    FieldError
        If a column is not there.
    ValueError
        If the frame is streaming, or there is no such key.
    ImportError
        If PySpark is not installed.
    """
    check_frame(df)
    stated = _policy(policy, time, user, attribute, z, window, options)
    check(stated)
    secret = Secret(_key(key, key_file))
    schema = _arrow_schema(df.schema)
    try:
        layout = laid_out(stated, schema, ties)
    except LookupError as error:
        raise FieldError(f"df: {wrong_columns(error, is_text=False)}") from None
    if account is not None:
        account.of(stated)
    tally = None if account is None else account.counts
    # By place: a name may hold anything, and two may differ by their case alone.
    numbered = df.toDF(*(f"c{number}" for number in range(len(df.columns))))
    frame = numbered.select(
        *(numbered[f"c{number}"].alias(name) for name, number in layout.read.items())
    )
    frame = _keyed(frame, layout)
    count = len(stated.attributes)
    for place in range(count):
        stage = Stage(layout, place, secret, tally)
        frame = _decided(frame, layout, stage, shards, is_last=place == count - 1)
    return frame.toDF(*layout.leaving)


def _policy(
    policy: Policy | str | os.PathLike[str] | None,
    time: str | None,
    user: str | None,
    attribute: str | Sequence[str] | None,
    z: int | None,
    window: Duration | None,
    options: dict[str, Any],
) -> Policy:
    said = {"time": time, "user": user, "attribute": attribute, "z": z, "window": window}
    if policy is not None:
        if given := [name for name, value in (said | options).items() if value is not None]:
            raise ValueError(f"{given[0]}: expected either a policy or this")
        return policy if isinstance(policy, Policy) else read_policy(policy)
    if time is None or user is None or attribute is None or z is None or window is None:
        missing = next(name for name, value in said.items() if value is None)
        raise ValueError(f"{missing}: expected, or a policy instead")
    attributes = [attribute] if isinstance(attribute, str) else list(attribute)
    return Policy.of(time=time, user=user, attributes=attributes, z=z, window=window, **options)


def _key(key: bytes | None, file: str | os.PathLike[str] | None) -> bytes:
    if key is not None and file is not None:
        raise ValueError("key: key_file is given too; give the key in one of these places")
    if key is None:
        return secrets.token_bytes(LENGTH) if file is None else key_of(file)
    if not isinstance(key, bytes) or len(key) != LENGTH:
        raise ValueError(f"key: expected {LENGTH} bytes; what was given is not shown here")
    return key


def _keyed(frame: DataFrame, layout: Layout) -> DataFrame:
    """Add what rows are sorted and sharded by, where Spark cannot tell it by itself."""
    from pyspark.sql import functions as F  # noqa: N812  # what everyone calls it
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    kinds = _arrow_schema(frame.schema)
    attributes = enumerate(layout.policy.attributes)
    labelled = tuple(place for place, each in attributes if each.hierarchy is not None)
    keying = Keying(layout, is_text(kinds.field("t").type), labelled)
    if not keying.is_needed:
        return frame
    added = [
        StructField(name, LongType() if name == SORTED else StringType()) for name, _ in keying.made
    ]
    keyed = frame.mapInArrow(keying.key, StructType([*frame.schema.fields, *added]))
    # A hash takes less room on the way than the label.
    hashes = {f"h{place}" for place in labelled}
    return keyed.select(
        *(
            F.when(F.col(name).isNotNull(), F.xxhash64(name)).alias(name)
            if name in hashes
            else F.col(name)
            for name in keyed.columns
        )
    )


def _decided(
    frame: DataFrame, layout: Layout, stage: Stage, shards: int | None, *, is_last: bool
) -> DataFrame:
    """Bring all rows of a value to one task, sort them there, and decide them."""
    home = _home(frame, stage.place)
    spread = frame.repartition(home) if shards is None else frame.repartition(shards, home)
    time = SORTED if SORTED in frame.columns else "t"
    ordered = spread.sortWithinPartitions(time, *layout.ties)
    done = {f"h{stage.place}"}
    if is_last:
        done |= {name for name in frame.columns if name[0] in "hos"}
    ordered = ordered.select(*(name for name in ordered.columns if name not in done))
    came = _arrow_schema(ordered.schema)
    leaves = stage.schema(came)
    return ordered.mapInArrow(stage.decide, _spark_schema(leaves, came, ordered.schema))


def _home(frame: DataFrame, place: int) -> Column:
    """Give what rows are sharded by: a hash of the value, or of its coarsest label.

    A row without a value is decided by itself: it goes anywhere, and not all of them to one place.
    """
    from pyspark.sql import functions as F  # noqa: N812  # what everyone calls it
    from pyspark.sql.types import DoubleType, FloatType

    anywhere = F.xxhash64("u", "t")
    if f"h{place}" in frame.columns:
        return F.coalesce(F.col(f"h{place}"), anywhere)
    name = f"a{place}"
    value = F.col(name)
    if isinstance(frame.schema[name].dataType, FloatType | DoubleType):
        value = value + F.lit(0.0)  # there are two zeros
    return F.when(F.col(name).isNull(), anywhere).otherwise(F.xxhash64(value))


def _arrow_schema(schema: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    # Later versions ask for the zone that timestamps are shown in. Which makes no difference here.
    asks = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, **({"timezone": "UTC"} if asks else {}))


def _spark_schema(leaves: pa.Schema, came: pa.Schema, schema: Any) -> Any:
    """Give the columns that leave as Spark has them: those that stay what they were, as they were.

    All may be null: a veiled value is.
    """
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in leaves:
        is_same = field.name in came.names and came.field(field.name).type == field.type
        kind = schema[field.name].dataType if is_same else from_arrow_type(field.type, True)
        fields.append(StructField(field.name, kind, True))
    return StructType(fields)
