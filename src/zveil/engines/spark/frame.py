"""A data frame of Spark in, what z-anonymity releases of it out."""

from __future__ import annotations

import inspect
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zveil.durations import Duration
from zveil.engines.spark.account import Account
from zveil.engines.spark.fitness import check, check_frame
from zveil.engines.spark.keying import Keying
from zveil.engines.spark.layout import Layout, laid_out
from zveil.engines.spark.merge import Merge
from zveil.engines.spark.parcels import PARCELS, content
from zveil.engines.spark.parts import Parts
from zveil.engines.spark.stage import Secret, Stage
from zveil.engines.spark.stream import STATE, Keeping
from zveil.fields import FieldError, wrong_columns
from zveil.keys import LENGTH, key_of
from zveil.policy import Policy, read_policy

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Making = Callable[..., Stage]
Leaving = Callable[[pa.Schema], Any]

MOST_SHARDS = 100_000
HELD_BYTES = 256 << 20
"""What a task holds of rows that are not yet in order; past that they wait on the disk."""


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

    Of a streaming frame each micro-batch is decided in this order, upon what came in those before
    it: that waits for the trigger, so that it is not zero delay. What is late by then is veiled.
    Rows with several attributes leave in parts there, one for each that has a value.

    Parameters
    ----------
    df
        The rows. Of a streaming frame the output mode is append.
    policy
        What is decided and what leaves, as for ``zveil run``: a `Policy`, or the name of a policy
        file. Or instead:
    time, user, attribute, z, window, **options
        As for `Policy.of`; one attribute, or several.
    ties
        Columns that tell the order of rows of one time, such as a sequence number.
    key, key_file
        32 secret bytes, or the file that has them: what pseudonyms are made from, and what the
        state of a streaming frame is sealed under, which has to have one. By default a new key
        that nobody keeps.
    shards
        How many tasks decide. By default ``spark.sql.shuffle.partitions``, and as Spark adapts it.
        Of a streaming frame it is the number of states, and stays what it was.
    account
        Counts what becomes of the rows.

    Raises
    ------
    PolicyError
        If the policy asks for what does not partition, or columns are not what it takes.
    FieldError
        If a column is not there.
    ValueError
        If there is no such key, or none for a streaming frame.
    ImportError
        If PySpark is not installed.
    """
    check_frame(df)
    stated = _policy(policy, time, user, attribute, z, window, options)
    check(stated)
    secret = Secret(_key(key, key_file, is_kept=df.isStreaming))
    try:
        layout = laid_out(stated, _arrow_schema(df.schema), ties)
    except LookupError as error:
        raise FieldError(f"df: {wrong_columns(error, is_text=False)}") from None
    count = _shards(df, shards)
    if account is not None:
        account.of(stated)
    # By place: a name may hold anything, and two may differ by their case alone.
    numbered = df.toDF(*(f"c{number}" for number in range(len(df.columns))))
    frame = numbered.select(
        *(numbered[f"c{number}"].alias(name) for name, number in layout.read.items())
    )
    kinds = frame.schema
    frame = frame.select("*", *_hashes(frame, layout))
    keying = Keying(layout, _arrow_schema(frame.schema), count)
    making = partial(
        Stage,
        layout,
        secret=secret,
        merge=Merge(layout.ties, limit=None if _is_encrypted(df) else HELD_BYTES),
        tally=None if account is None else account.counts,
    )

    def leaving(leaves: pa.Schema) -> Any:
        # Spark goes by the places of columns. So they have their names from here on: to give them
        # others in a step of its own would copy every row.
        return _spark_schema(leaves, keying.schema, kinds, layout.leaving)

    if df.isStreaming:
        return _in_parts(frame, keying, making, leaving)
    return _in_stages(frame, keying, making, leaving, shards)


def _in_stages(
    frame: DataFrame, keying: Keying, making: Making, leaving: Leaving, shards: int | None
) -> DataFrame:
    """Decide attribute by attribute, rows going from one to the next."""
    parcels = frame.mapInArrow(keying.pack, _spark_schema(PARCELS))
    schema = content(keying.keyed, 0)
    for place in range(len(keying.layout.policy.attributes)):
        stage = making(place, schema=schema, named=keying.named)
        # Without a number Spark puts small ones together.
        spread = parcels.repartition(*([] if shards is None else [shards]), "shard")
        ordered = spread.sortWithinPartitions("first")
        if not stage.is_last:
            parcels = ordered.mapInArrow(stage.decide, _spark_schema(PARCELS))
            schema = stage.parcels
    return ordered.mapInArrow(stage.decide, leaving(stage.leaves))


def _in_parts(frame: DataFrame, keying: Keying, making: Making, leaving: Leaving) -> DataFrame:
    """Decide all attributes in the one pass with a state that a streaming query has."""
    parts = Parts(keying)
    keeping = Keeping(
        tuple(
            making(
                place,
                schema=parts.content(place),
                named=named,
                is_sorted=False,
                veiled=parts.veiled(place),
            )
            for place, named in enumerate(parts.named)
        )
    )
    parcels = frame.mapInArrow(parts.pack, _spark_schema(PARCELS))
    decided = parcels.groupBy("shard").applyInPandasWithState(
        keeping.decide, _spark_schema(PARCELS), STATE, "append", "NoTimeout"
    )
    return decided.mapInArrow(keeping.unpack, leaving(keeping.leaves))


def _shards(df: DataFrame, stated: int | None) -> int:
    if stated is None:
        return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    if isinstance(stated, bool) or not isinstance(stated, int) or not 1 <= stated <= MOST_SHARDS:
        raise ValueError(f"shards: expected from 1 to {MOST_SHARDS}, got {stated!r}")
    return stated


def _is_encrypted(df: DataFrame) -> bool:
    """Tell whether Spark encrypts what it puts on disks, which files of ours are not."""
    return bool(df.sparkSession.conf.get("spark.io.encryption.enabled", "false") == "true")


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


def _key(key: bytes | None, file: str | os.PathLike[str] | None, *, is_kept: bool) -> bytes:
    if key is not None and file is not None:
        raise ValueError("key: key_file is given too; give the key in one of these places")
    if is_kept and key is None and file is None:
        raise ValueError(
            "key: a streaming frame needs one that is kept, since a query that begins again goes "
            "on under the same; give key_file=, which `zveil key FILE` makes, or key="
        )
    if key is None:
        return secrets.token_bytes(LENGTH) if file is None else key_of(file)
    if not isinstance(key, bytes) or len(key) != LENGTH:
        raise ValueError(f"key: expected {LENGTH} bytes; what was given is not shown here")
    return key


def _hashes(frame: DataFrame, layout: Layout) -> Iterator[Column]:
    """Give hashes of the attributes that are sharded by their values; null where there is none."""
    from pyspark.sql import functions as F  # noqa: N812  # what everyone calls it
    from pyspark.sql.types import DoubleType, FloatType

    for place, each in enumerate(layout.policy.attributes):
        if each.hierarchy is not None:
            continue
        name = f"a{place}"
        value = F.col(name)
        if isinstance(frame.schema[name].dataType, FloatType | DoubleType):
            value = value + F.lit(0.0)  # there are two zeros
        hashed = F.when(F.col(name).isNotNull(), F.xxhash64(value))
        yield hashed.alias(f"h{place}")


def _arrow_schema(schema: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    # Later versions ask for the zone that timestamps are shown in. Which makes no difference here.
    asks = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, **({"timezone": "UTC"} if asks else {}))


def _spark_schema(
    leaves: pa.Schema,
    came: pa.Schema | None = None,
    kinds: Any = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Give columns as Spark has them: those that stay what they were, as they were.

    All may be null: a veiled value is. Where there are names, they are called by these.
    """
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field, name in zip(leaves, names or leaves.names, strict=True):
        is_same = (
            came is not None
            and field.name in came.names
            and came.field(field.name).type == field.type
        )
        kind = kinds[field.name].dataType if is_same else from_arrow_type(field.type, True)
        fields.append(StructField(name, kind, True))
    return StructType(fields)
