"""The native way of text decides as the definition does: any stream, spelling, cut, threads."""

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from events import (
    NANO,
    TEXTS,
    Story,
    csv_lines,
    cut,
    exact,
    fed,
    keyring_of,
    ndjson,
    objects,
    story,
    table,
    wanted,
)  # fmt: skip
from hypothesis import given
from hypothesis import strategies as st

from zveil.act import TextAct
from zveil.io import Format
from zveil.policy import Policy
from zveil.reference import user_text

# Each seed is a stream; its length is what a failure is made shorter by.
randoms = st.integers(0, 2**32).map(Random)
lengths = st.integers(1, 60)
DELIMITERS = {Format.CSV: ",", Format.TSV: "\t"}

# What no line may be, and its kind.
BAD_JSON = {
    b'{"ts":1700000000,"uid":"planted","host":"a"': "cut-off",
    b'{"ts":1700000000,"uid":"planted","host":"a",}': "syntax",
    b'{"ts":1700000000,"uid":"planted","host":"a"}}': "syntax",
    b"planted": "syntax",
    b'["planted"]': "not-an-object",
    b'{"ts":1700000000,"uid":"planted","host":"a","uid":"u"}': "duplicate-key",
    b'{"ts":1700000000,"uid":"planted","host":"a","\\u0075id":"u"}': "duplicate-key",
    b'{"ts":1700000000,"uid":"planted","host":"a","x":{"y":1,"y":2}}': "duplicate-key",
    b'{"ts":1700000000,"uid":"planted\xff","host":"a"}': "not-utf8",
    b'{"ts":1700000000,"uid":"planted\\ud800","host":"a"}': "not-utf8",
    b'{"ts":1700000000,"uid":"planted\0","host":"a"}': "nul-byte",
    b'{"ts":1700000000,"host":"a"}': "missing-field",
    b'{"uid":"planted","host":"a"}': "missing-field",
    b'{"ts":1700000000,"uid":"planted"}': "missing-field",
    b'{"ts":1700000000,"uid":["planted"],"host":"a"}': "wrong-type",
    b'{"ts":1700000000,"uid":true,"host":"a"}': "wrong-type",
    b'{"ts":1700000000,"uid":1.5,"host":"a"}': "wrong-type",
    b'{"ts":1700000000,"uid":"planted","host":{"a":1}}': "wrong-type",
    b'{"ts":{},"uid":"planted","host":"a"}': "wrong-type",
    b'{"ts":"soon","uid":"planted","host":"a"}': "time",
    b'{"ts":1e99,"uid":"planted","host":"a"}': "time",
    b'{"ts":1700000000,"uid":"planted","host":"' + b"a" * 3000 + b'"}': "too-long",
    b'{"ts":1700000000,"uid":"planted","host":"a","x":' + b"[" * 600 + b"]" * 600 + b"}":
        "too-deep",
}  # fmt: skip
BAD_CSV = {
    b"1700000000,planted": "wrong-columns",
    b"1700000000,planted,a,b": "wrong-columns",
    b'1700000000,planted,"a"b': "syntax",
    b"1700000000,planted\0,a": "nul-byte",
    b"1700000000,planted\xff,a": "not-utf8",
    b"soon,planted,a": "time",
    b"1700000000,planted," + b"a" * 3000: "too-long",
}


@given(randoms, lengths, st.booleans())
def test_json_is_decided_as_the_definition_says(random: Random, length: int, blank: bool) -> None:
    told = story(random, length)
    data = b"".join(ndjson(random, told))
    policy = told.policy(empty="blank" if blank else "drop", raw_users=True, keep=("note",))
    out, act = fed(policy, cut(random, data, random.randint(1, 9)))
    assert exact(objects(out)) == exact(
        [{"ts": event.t, "uid": event.user, **shown, "note": event.note}
         for event, shown in wanted(told, blank=blank)]
    )  # fmt: skip
    assert act.way.tally()["records"] == act.way.tally()["lines"] == length


@given(randoms, lengths, st.booleans(), st.sampled_from([Format.CSV, Format.TSV]))
def test_csv_is_decided_as_the_definition_says(
    random: Random, length: int, blank: bool, form: Format
) -> None:
    # Text that is empty is no value.
    told = story(random, length, values=[value or None for value in TEXTS])
    data = b"".join(csv_lines(random, told, DELIMITERS[form]))
    policy = told.policy(empty="blank" if blank else "drop", raw_users=True, keep=("note",))
    out, act = fed(policy, cut(random, data, random.randint(1, 9)), form)
    assert table(out, DELIMITERS[form]) == [
        {"ts": str(event.t), "uid": user_text(event.user) or "",
         **{name: value or "" for name, value in shown.items()}, "note": event.note or ""}
        for event, shown in wanted(told, blank=blank)
    ]  # fmt: skip
    assert act.way.tally()["records"] == length


@given(randoms, lengths, st.booleans(), st.sampled_from([Format.CSV, Format.TSV]))
def test_one_text_becomes_another(
    random: Random, length: int, from_json: bool, form: Format
) -> None:
    told = story(random, length, values=[value or None for value in TEXTS])
    policy = told.policy(raw_users=True)
    if from_json:
        out, _ = fed(policy, ndjson(random, told), Format.NDJSON, form)
        found = table(out, DELIMITERS[form])
        for record, (event, _) in zip(found, wanted(told), strict=True):
            if isinstance(event.user, float):  # a number leaves as it is spelled
                record["uid"] = str(int(float(record["uid"])))
        assert found == [
            {"ts": str(event.t), "uid": user_text(event.user) or "",
             **{name: value or "" for name, value in shown.items()}}
            for event, shown in wanted(told)
        ]  # fmt: skip
    else:
        out, _ = fed(policy, csv_lines(random, told, DELIMITERS[form]), form, Format.NDJSON)
        assert objects(out) == [
            {"ts": event.t, "uid": user_text(event.user), **shown}
            for event, shown in wanted(told)
        ]  # fmt: skip


@given(randoms, lengths)
def test_columns_hold_the_same(random: Random, length: int) -> None:
    told = story(random, length, values=[value or None for value in TEXTS])
    policy = told.policy()
    act = TextAct(
        policy, policy.gates(), Format.NDJSON, Format.ARROW,
        keyring=keyring_of(policy), max_line=1 << 20, stop_at_problem=False,
    )  # fmt: skip
    data = b"".join(ndjson(random, told))
    pieces = [piece for piece in cut(random, data, 3) if piece]
    batches = [batch for piece in pieces for batch in act.batches(piece, last=False)]
    batches += act.batches(b"", last=True)
    rows = pa.Table.from_batches(batches, act.schema).to_pylist()
    assert [(row["ts"].value if hasattr(row["ts"], "value") else row["ts"].timestamp() * NANO,
             *(row[name] for name in told.attributes)) for row in rows] == [
        (event.t * NANO, *shown.values()) for event, shown in wanted(told)
    ]  # fmt: skip


@given(randoms, lengths)
def test_a_person_has_one_pseudonym_and_no_other_has_it(random: Random, length: int) -> None:
    told = story(random, length)
    out, _ = fed(told.policy(empty="blank"), ndjson(random, told))
    seen: dict[str | None, set[Any]] = {}
    for event, left in zip(told.events, objects(out), strict=True):
        seen.setdefault(user_text(event.user), set()).add(left["uid"])
    assert all(len(names) == 1 for names in seen.values())
    assert len({name for names in seen.values() for name in names}) == len(seen)
    assert seen.get(None, {None}) == {None}


@given(randoms, lengths)
def test_bad_lines_are_counted_and_change_nothing(random: Random, length: int) -> None:
    told = story(random, length)
    good = ndjson(random, told)
    policy = told.policy(attributes=("host",), time_format="s")
    alone, _ = fed(policy, good, max_line=2000)
    lines, kinds = [], []
    for number, line in enumerate(good):
        while random.random() < 0.3:
            bad = random.choice(list(BAD_JSON))
            kinds.append((number + len(kinds) + 1, BAD_JSON[bad]))
            lines.append(bad + random.choice([b"\n", b"\r\n"]))
        lines.append(line)
    pieces = cut(random, b"".join(lines), random.randint(1, 9))
    out, act = fed(policy, pieces, max_line=2000)
    assert out == alone
    assert [(line, kind) for line, kind, _ in act.way.take_troubles()] == kinds
    tally = act.way.tally()
    assert tally["lines"] == len(lines) == tally["records"] + sum(tally["bad"].values())


@given(randoms, lengths, st.sampled_from([b"\n", b"\r\n"]))
def test_bad_csv_is_counted_and_changes_nothing(
    random: Random, length: int, line_break: bytes
) -> None:
    rows = [
        b"%d,%d,%c" % (1_700_000_000 + row, random.randrange(9), random.choice(b"ab"))
        for row in range(length)
    ]
    told = Story(z=2, window=5, lateness=None, attributes=("host",))
    policy = told.policy(time_format="s")
    header = b"ts,uid,host"
    alone, _ = fed(policy, [line_break.join([header, *rows, b""])], Format.CSV, max_line=2000)
    lines, kinds = [header], []
    for row in rows:
        while random.random() < 0.3:
            bad = random.choice(list(BAD_CSV))
            lines.append(bad)
            kinds.append((len(lines), BAD_CSV[bad]))
        lines.append(row)
    data = line_break.join([*lines, b""])
    out, act = fed(policy, cut(random, data, random.randint(1, 9)), Format.CSV, max_line=2000)
    assert out == alone
    assert [(line, kind) for line, kind, _ in act.way.take_troubles()] == kinds
    assert act.way.tally()["lines"] == len(lines)


@given(randoms, st.integers(2, 30), st.sampled_from([b"\n", b"\r\n"]))
def test_an_unbalanced_quote_costs_its_own_line(
    random: Random, length: int, line_break: bytes
) -> None:
    told = Story(z=1, window=5, lateness=None, attributes=("host",))
    rows = [b"%d,u%d,a" % (1_700_000_000, row) for row in range(length)]
    place = random.randrange(length)
    rows[place] = random.choice([b'1700000000,u,"a', b'"1700000000,u,a', b'1700000000,"u,a'])
    data = line_break.join([b"ts,uid,host", *rows, b""])
    policy = told.policy(time_format="s", raw_users=True)
    pieces = cut(random, data, random.randint(1, 5))
    out, act = fed(policy, pieces, Format.CSV)
    users = [f"u{row}" for row in range(length) if row != place]
    assert [row["uid"] for row in table(out)] == users
    assert act.way.take_troubles()[0][:2] == (place + 2, "cut-off")


@pytest.mark.parametrize("form", [Format.NDJSON, Format.CSV])
@pytest.mark.parametrize("line_break", [b"\n", b"\r\n"])
@pytest.mark.parametrize("longest", [98, 99, 100, 101, 102])
def test_where_a_line_is_too_long_does_not_depend_on_the_cut(
    form: Format, line_break: bytes, longest: int
) -> None:
    if form is Format.CSV:
        lines = [b"ts,uid,host", b"1700000000,u," + b"a" * 87, b"1700000000,v,b"]
    else:
        lines = [b'{"ts":1700000000,"uid":"u","host":"' + b"a" * 63 + b'"}']
        lines += [b'{"ts":1700000000,"uid":"v","host":"b"}']
    assert 100 in map(len, lines)
    data = line_break.join([*lines, b""])
    policy = Story(z=1, window=5, lateness=None, attributes=("host",)).policy()
    whole, act = fed(policy, [data], form, max_line=longest)
    troubles = act.way.take_troubles()
    is_measured_with_return = form is Format.NDJSON and line_break == b"\r\n"
    assert bool(troubles) == (longest < 100 + is_measured_with_return)
    for place in range(1, len(data)):
        pieces, cut_act = fed(policy, [data[:place], data[place:]], form, max_line=longest)
        assert pieces == whole
        assert cut_act.way.tally() == act.way.tally()
        assert cut_act.way.take_troubles() == troubles


@pytest.mark.parametrize("form", [Format.NDJSON, Format.CSV])
@pytest.mark.parametrize("keep", [(), ("*",)])
def test_threads_write_the_same_bytes(form: Format, keep: tuple[str, ...]) -> None:
    random = Random(1)
    values = [*"abc", "é", None, 'q"q' if form is Format.NDJSON else "q"]
    told = Story(2, 8, None, ("host",), story(random, 9_000, values=values).events)
    told = Story(2, 8, None, ("host",), [replace(e, values=e.values[:1]) for e in told.events])
    if form is Format.NDJSON:
        lines, bad = ndjson(random, told), list(BAD_JSON)
    else:
        # With a quote in it, a block is not cut.
        lines = [line.replace(b'"', b"") for line in csv_lines(random, told)] * 3
        bad = [line for line in BAD_CSV if b'"' not in line]
    for _ in range(50):
        lines.insert(random.randrange(1, len(lines)), random.choice(bad) + b"\n")
    data = b"".join(lines)
    assert len(data) > 2 << 18, "too small to be cut"
    policy = told.policy(keep=keep, time_format="s")
    alone, act = fed(policy, [data], form, max_line=2000)
    troubles = act.way.take_troubles()
    assert len(troubles) >= 50
    for threads in (2, 3, 5):
        for pieces in ([data], cut(random, data, 2)):
            shared, other = fed(policy, pieces, form, threads=threads, max_line=2000)
            assert shared == alone
            assert other.way.tally() == act.way.tally()
            assert other.way.take_troubles() == troubles


@pytest.mark.parametrize(
    ("spellings", "leaves"),
    [
        ([b"1.5", b"1.50", b"15e-1", b"1.5000000000000000001"], b"1.5"),
        ([b"1.0", b"1e0", b"1.00E+0"], b"1.0"),
        ([b"0", b"-0"], b"0"),
        ([b'"a/b"', b'"\\u0061/b"', b'"a\\/b"'], b'"a/b"'),
    ],
)
@pytest.mark.parametrize("to", [Format.NDJSON, Format.CSV])
def test_one_value_leaves_in_one_spelling(
    spellings: list[bytes], leaves: bytes, to: Format
) -> None:
    line = b'{"ts":1700000000,"uid":%d,"host":%s}\n'
    lines = [line % (user, value) for user, value in enumerate(spellings)]
    policy = Story(len(spellings), 5, None, ("host",)).policy(empty="blank")
    out, _ = fed(policy, lines * 2, to=to)
    left = out.splitlines()[-len(spellings) :]
    if to is Format.CSV:
        leaves = leaves.strip(b'"')
    assert {line.rstrip(b"}").rpartition(b"," if to is Format.CSV else b":")[2]
            for line in left} == {leaves}  # fmt: skip


def test_a_number_past_what_a_float_holds_is_no_value() -> None:
    policy = Story(1, 5, None, ("host",)).policy()
    out, act = fed(policy, [b'{"ts":1700000000,"uid":1,"host":1e400}\n'])
    assert not out
    assert act.way.take_troubles() == [(1, "wrong-type", 33)]


@pytest.mark.parametrize("host", ["a\r", "\ra", "a\rb", "\r"])
def test_a_return_in_csv_is_read_back(host: str) -> None:
    policy = Story(1, 5, None, ("host",)).policy(keep=("note",))
    data = f"ts,uid,note,host\n1700000000,u,{host},{host}\r\n".encode()
    out, _ = fed(policy, [data], Format.CSV)
    assert [(row["host"], row["note"]) for row in table(out)] == [(host, host)]


def test_what_was_given_out_stays_as_it_is_and_is_not_to_be_changed() -> None:
    policy = Policy.of(time="ts", user="uid", attributes=("host",), z=1, window=1)
    act = TextAct(
        policy, [], Format.NDJSON, Format.NDJSON,
        keyring=None, max_line=1 << 20, stop_at_problem=False,
    )  # fmt: skip
    line = b'{"ts":170000000%d,"uid":"u","host":"x"}\n'
    first = act.lines(line % 1, last=False)
    copy = b"".join(first)
    for number in range(2, 9):  # of which the memory is used again and again
        assert b"".join(act.lines(line % number, last=False))
    assert b"".join(first) == copy
    del act
    assert b"".join(first) == copy
    with pytest.raises(TypeError):
        first[0][0] = 0
