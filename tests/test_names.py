"""Lists of names: what is not in one, or is in another, does not count and never leaves."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from events import NANO, START, Story, fed, ndjson, story, wanted
from hypothesis import given, settings
from hypothesis import strategies as st
from program import line, zveil

from zveil._native import NameFilter, NameList
from zveil.act import TextAct
from zveil.act.columns import ColumnsAct
from zveil.hierarchy import parse
from zveil.io import Format
from zveil.names import Names
from zveil.policy import Attribute, Policy, PolicyError, Time, User

LABELS = st.sampled_from(["a", "b", "www", "example", "org", "com"])
HOSTS = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
lists = st.none() | st.lists(HOSTS, min_size=1, max_size=5)


def holds(names: list[str], value: Any) -> bool:
    """Say plainly whether a value is one of the names or below one."""
    if not isinstance(value, str):
        return False
    host = value.removesuffix(".").lower()
    return any(host == name or host.endswith(f".{name}") for name in names)


def passes(value: Any, only: list[str] | None, except_: list[str] | None) -> bool:
    if value is None:
        return True
    return (only is None or holds(only, value)) and not (except_ and holds(except_, value))


def names(listed: list[str] | None) -> Names | None:
    if listed is None:
        return None
    return Names("list", "0", NameList("\n".join(listed).encode()))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), values=st.lists(HOSTS, min_size=1, max_size=6), only=lists,
       except_=lists, threads=st.sampled_from([1, 2]))  # fmt: skip
def test_what_a_list_leaves_out_counts_for_nobody(
    seed: int, values: list[str], only: list[str] | None, except_: list[str] | None, threads: int
) -> None:
    """The same comes out as if the value had not been there."""
    random = Random(seed)
    told = story(random, 40, values=[*values, *(f"{v.upper()}." for v in values), 7, None])
    policy = Policy(
        time=Time("ts"), user=User("uid", pseudonym="raw"),
        attributes=tuple(
            Attribute(name, z=told.z, window=told.window, only=names(only), except_=names(except_))
            for name in told.attributes
        ),
        limits=told.policy().limits,
    )  # fmt: skip
    blind = Story(told.z, told.window, told.lateness, told.attributes, [
        replace(event, values=tuple(v if passes(v, only, except_) else None for v in event.values))
        for event in told.events
    ])  # fmt: skip
    out, act = fed(policy, ndjson(random, told), Format.NDJSON, Format.NDJSON, threads=threads)
    records = [json.loads(each) for each in out.splitlines()]
    expected = [values for _, values in wanted(blind)]
    assert [{name: record[name] for name in told.attributes} for record in records] == expected
    if only or except_:
        for number in range(len(told.attributes)):
            left_out = sum(not passes(event.values[number], only, except_) for event in told.events)
            assert act.way.tally()["filtered"][number] == left_out


def test_columns_are_filtered_alike() -> None:
    values = [
        "www.example.org",
        "example.com",
        None,
        "EXAMPLE.org.",
        "ads.example.org",
        "example.org",
    ]
    policy = Policy(
        time=Time("t", format="s"), user=User("u"),
        attributes=(Attribute("host", z=1, window="1h", only=names(["example.org"]),
                              except_=names(["ads.example.org"])),),
    )  # fmt: skip
    for kind in pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()):
        batch = pa.record_batch({
            "t": pa.array([START] * 6), "u": pa.array(list("abcdef")),
            "host": pa.array(values).cast(kind),
        })  # fmt: skip
        act = ColumnsAct(policy, policy.gates(), batch.schema, keyring=None)
        left = act.act(batch).column("host").to_pylist()
        assert left == ["www.example.org", "EXAMPLE.org.", "example.org"]
        assert act.filtered == [2]


def test_the_summary_counts_what_lists_left_out(tmp_path: Path) -> None:
    (tmp_path / "top.csv").write_text("rank,domain\n1,example.org\n")
    (tmp_path / "cdn.txt").write_bytes(gzip.compress(b"# not sites\n*.cdn.example.org\n"))
    hosts = ["www.example.org", "a.cdn.example.org", "secret.example", None]
    stdin = b"".join(line(START + t, u, host) for t, host in enumerate(hosts) for u in "ab")
    done = zveil(
        "run", "--time", "ts", "--user", "uid", "--attribute", "host", "-z", "2", "--window", "1h",
        "--only", tmp_path / "top.csv", "--except", tmp_path / "cdn.txt", "--json", stdin=stdin,
    )  # fmt: skip
    assert done.returncode == 0
    (left,) = done.stdout.splitlines()
    assert json.loads(left)["host"] == "www.example.org"
    (outcome,) = json.loads(done.stderr)["outcomes"]
    counts = [outcome[name] for name in ("observed", "released", "few_users", "filtered", "empty")]
    assert counts == [8, 1, 1, 4, 2]


def test_late_and_future_values_that_do_not_count_are_counted_once() -> None:
    policy = Policy(
        time=Time("ts", format="s"), user=User("uid"),
        attributes=(Attribute("host", z=1, window=10, only=names(["a"])),),
    )  # fmt: skip
    events = [line(START + 100, "u", "a"), line(START, "u", "b"), line(START * 3, "u", "b")]
    gates = policy.gates()
    act = TextAct(policy, gates, Format.NDJSON, Format.NDJSON, keyring=None, max_line=1000,
                  stop_at_problem=False)  # fmt: skip
    act.lines(b"".join(events), last=True)
    stats = gates[0].stats()
    assert (stats.released, stats.invalid, stats.late, stats.future) == (1, 2, 0, 0)
    assert act.way.tally()["filtered"] == [2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a\nb c\n", "line 2: expected a name"),
        (b"a\nname,rank\n", "line 2: expected a name"),
        (b"\n# none\n", "holds no name"),
    ],
)
def test_a_list_that_is_none_is_refused_with_its_line(
    text: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "list").write_bytes(text)
    with pytest.raises(ValueError, match=words):
        Names.read(tmp_path / "list")
    (tmp_path / "zveil.toml").write_text(
        '[time]\nfield = "ts"\n[user]\nfield = "uid"\n'
        '[[attribute]]\nfield = "host"\nz = 2\nwindow = "1h"\nexcept = "list"\n'
    )
    done = zveil("run", "--policy", tmp_path / "zveil.toml")
    assert done.returncode == 2
    assert b"zveil.toml:9:10: attribute.except: " in done.stderr
    assert words.encode() in done.stderr


def test_a_long_list_takes_little_more_than_its_text() -> None:
    text = b"".join(b"%d,site-%d.example\n" % (n, n) for n in range(200_000))
    listed = NameList(text)
    assert len(listed) == 200_000
    assert listed.bytes < 2 * len(text)
    mask, count = NameFilter(listed, None).mask(pa.array(["www.site-7.example", "site.example"]))
    assert (mask[0] & 3, count) == (1, 1)


def test_lists_with_the_same_names_mean_the_same(tmp_path: Path) -> None:
    def fingerprint(text: str) -> str:
        (tmp_path / "list").write_text(text)
        only = Names.read(tmp_path / "list")
        return Policy.of(
            time="t", user="u", attributes=["a"], z=2, window=NANO, only=only
        ).fingerprint

    assert fingerprint("a\n") == fingerprint("a\n") != fingerprint("b\n")


def test_what_a_list_leaves_out_does_not_leave_as_a_coarser_label() -> None:
    levels = parse([{"segments": ".", "levels": 1}])
    host = Attribute(
        "host", z=1, window="1h", hierarchy=levels, rule="fixed", level=1, except_=names(["b.c"])
    )
    policy = Policy(
        time=Time("ts", format="s"), user=User("uid", pseudonym="raw"), attributes=(host,)
    )
    hosts = ["a.b", "a.b.c", None]
    out, act = fed(policy, [line(START, "u", each) for each in hosts])
    assert [json.loads(each)["host"] for each in out.splitlines()] == ["a"]
    assert act.way.tally()["filtered"] == [1]
    batch = pa.record_batch({
        "ts": pa.array([START] * 3), "uid": pa.array(list("uuu")), "host": pa.array(hosts),
    })  # fmt: skip
    columns = ColumnsAct(policy, policy.gates(), batch.schema, keyring=None)
    assert columns.act(batch).column("host").to_pylist() == ["a"]
    assert columns.filtered == [1]


def test_a_position_is_in_no_list() -> None:
    cells = parse([{"cells": [7]}])
    with pytest.raises(PolicyError, match="no list"):
        Attribute("cell", z=2, window=1, hierarchy=cells, fields=("a", "b"), only=names(["a"]))
