"""What a veiled value becomes: null, or a text of one's own, whatever the formats."""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from events import TEXTS, csv_lines, fed, ndjson, objects, story, table, wanted
from hypothesis import given
from hypothesis import strategies as st
from program import ran

from zveil.io import Format
from zveil.policy import Attribute, Policy, Record, Time, User

randoms = st.integers(0, 2**32).map(Random)
MARKS = ["*", "", "(veiled)", 'a "quoted", one\n', "x" * 40, "é€😀", "\\"]


@given(randoms, st.integers(1, 40), st.sampled_from(MARKS), st.booleans(), st.booleans())
def test_text_leaves_with_the_mark(
    random: Random, length: int, mark: str, is_json: bool, blank: bool
) -> None:
    told = story(random, length, values=[value or None for value in TEXTS])
    form = Format.NDJSON if is_json else Format.CSV
    lines = ndjson(random, told) if is_json else csv_lines(random, told)
    marks = {name: random.choice([mark, None]) for name in told.attributes}
    base = told.policy(raw_users=True, empty="blank" if blank else "drop")
    attributes = tuple(
        Attribute(name, z=told.z, window=told.window, veiled=marks[name])
        for name in told.attributes
    )
    rule = Policy(time=base.time, user=base.user, attributes=attributes, record=base.record,
                  limits=base.limits)  # fmt: skip
    out, _ = fed(rule, lines, form)
    found = [{name: record[name] for name in marks} for record in
             (objects(out) if is_json else table(out))]  # type: ignore[operator]  # fmt: skip
    none = None if is_json else ""
    assert found == [
        {name: marks[name] if value is None and marks[name] is not None else value or none
         for name, value in shown.items()}
        for _, shown in wanted(told, blank=blank)
    ]  # fmt: skip


def rule(mark: str | None) -> Policy:
    return Policy(
        time=Time("ts"),
        user=User("uid"),
        attributes=(Attribute("host", z=2, window="1h", veiled=mark),),
        record=Record(empty="blank"),
    )


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_columns_leave_with_the_mark(tmp_path: Path, kind: pa.DataType) -> None:
    source = tmp_path / "in.arrow"
    plain = pa.array(["a", "a", "b", None])
    hosts = plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain.cast(kind)
    data = pa.table({"ts": [1_700_000_000] * 4, "uid": ["u", "v", "u", "v"], "host": hosts})
    with pa.OSFile(str(source), "wb") as out, pa.ipc.new_file(out, data.schema) as writer:
        writer.write_table(data)
    for form in ("arrow", "csv"):
        output = tmp_path / f"out.{form}"
        ran(rule("*"), [source], output)
        found: list[Any]
        if form == "arrow":
            found = pa.ipc.open_file(str(output)).read_all()["host"].to_pylist()
        else:
            found = [row["host"] for row in table(output.read_bytes())]
        assert found == ["*", "a", "*", "*"]


def test_a_column_that_holds_no_text_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"ts": [1_700_000_000], "uid": ["u"], "host": [1]}), source)
    with pytest.raises(ValueError, match=r"attribute\.veiled: the column 'host' .* int64"):
        ran(rule("*"), [source], tmp_path / "out.parquet")
    ran(rule(None), [source], tmp_path / "out.parquet")
