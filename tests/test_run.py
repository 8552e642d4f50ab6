"""`zveil run`: what leaves, under which name, and when."""

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from events import csv_lines, ndjson, objects, story, table, wanted
from program import Started, line, ran, run, zveil

from zveil.keys import read_key, write_key
from zveil.policy import Policy
from zveil.reference import user_text

T = 1_700_000_000


def policy(**options: Any) -> Policy:
    given = {"time": "ts", "user": "uid", "attributes": ("host",), "z": 2, "window": "1h"}
    return Policy.of(**given | options)


def through(tmp_path: Path, data: bytes, name: str = "in.ndjson", **options: Any) -> list[Any]:
    """What leaves of some lines."""
    (tmp_path / name).write_bytes(data)
    output = tmp_path / "out.ndjson"
    ran(policy(**options), [tmp_path / name], output)
    return objects(output.read_bytes())


@pytest.mark.parametrize("arguments", [[], ["--to", "csv"], ["--to", "ndjson"]])
def test_the_first_line_is_out_before_the_second_is_in(arguments: list[str]) -> None:
    with Started("-z", "1", *arguments) as going:
        if arguments == ["--to", "csv"]:
            going.send(line(T, "u0", "a"))
            assert going.line() == b"ts,uid,host\n"
        for number in range(1, 4):
            going.send(line(T, f"u{number}", f"value-{number}"))
            if arguments == ["--to", "csv"] and number == 1:
                assert going.line().endswith(b",a\n")
            assert b"value-%d" % number in going.line()
        going.send(line(T, "u", "last").rstrip())
        out, err = going.rest()
        assert b"last" in out
        assert going.process.returncode == 0
        assert b"released" in err


def test_a_line_that_comes_in_pieces_is_out_with_its_end() -> None:
    with Started("-z", "1", "--format", "csv") as going:
        going.send(b"ts,uid,")
        going.send(b"host\n")
        assert going.line() == b"ts,uid,host\n"
        going.send(b'1700000000,u,"a\n')
        going.send(b'b"\n1700000000,')
        assert (going.line() + going.line()).endswith(b',"a\nb"\n')
        going.send(b"v,c\n")
        assert going.line().endswith(b",c\n")


@pytest.mark.parametrize("seed", range(3))
def test_the_program_decides_as_the_definition_says(seed: int) -> None:
    random = Random(seed)
    told = story(random, 300)
    rule = ["-z", str(told.z), "--window", f"{told.window}s", "--raw-users", "--time-format", "s"]
    rule += ["--threads", str(seed + 1)]
    if told.lateness is not None:
        rule += ["--lateness", f"{told.lateness}s"]
    for name in told.attributes[1:]:
        rule += ["--attribute", name]
    if seed == 0:
        told = type(told)(told.z, told.window, told.lateness, told.attributes, [
            type(e)(e.t, e.user, tuple(str(v) if v else None for v in e.values))
            for e in told.events
        ])  # fmt: skip
        done = run(*rule, "--format", "csv", stdin=b"".join(csv_lines(random, told)))
        assert [(row["ts"], row["uid"], *(row[name] for name in told.attributes))
                for row in table(done.stdout)] == [
            (str(event.t), user_text(event.user) or "", *(value or "" for value in shown.values()))
            for event, shown in wanted(told)
        ]  # fmt: skip
    else:
        done = run(*rule, stdin=b"".join(ndjson(random, told)))
        assert objects(done.stdout) == [
            {"ts": event.t, "uid": event.user, **shown} for event, shown in wanted(told)
        ]
    assert done.returncode == 0


TWO = b"".join(
    json.dumps({"ts": T, "uid": user, "host": host, "ref": ref, "note": user}).encode() + b"\n"
    for user, host, ref in [("u", "a", "a"), ("v", "a", "b"), ("w", "b", "a"), ("x", "c", "d")]
)


def test_attributes_are_decided_each_by_itself(tmp_path: Path) -> None:
    left = through(tmp_path, TWO, attributes=("host", "ref"), raw_users=True)
    # The word a of host does not count for ref.
    assert left == [
        {"ts": T, "uid": "v", "host": "a", "ref": None},
        {"ts": T, "uid": "w", "host": None, "ref": "a"},
    ]


def test_blank_lets_every_record_out(tmp_path: Path) -> None:
    left = through(tmp_path, TWO, attributes=("host", "ref"), raw_users=True, empty="blank")
    assert [record["uid"] for record in left] == ["u", "v", "w", "x"]
    assert [(record["host"], record["ref"]) for record in left] == [
        (None, None), ("a", None), (None, "a"), (None, None)
    ]  # fmt: skip


def test_only_what_is_named_leaves(tmp_path: Path) -> None:
    assert [list(record) for record in through(tmp_path, TWO)] == [["ts", "uid", "host"]]
    kept = through(tmp_path, TWO, keep=("ref",))
    assert [list(record) for record in kept] == [["ts", "uid", "host", "ref"]]
    everything = through(tmp_path, TWO, keep=("*",))
    assert [list(record) for record in everything] == [["ts", "uid", "host", "ref", "note"]]


NESTED = (
    b'{"ts":1700000000,"user":{"id":"%s","mail":"planted"},"other":{"user":1},'
    b'"page":{"host":"a","path":"/p","in":{"host":"kept"}},"a.b":"dot","a":{"b":"deep"}}\n'
)
ESCAPED = NESTED.replace(b'"page"', b'"p\\u0061ge"').replace(b'"user":{"id"', b'"us\\u0065r":{"id"')


@pytest.mark.parametrize("line", [NESTED, ESCAPED])
def test_a_parent_of_what_is_decided_is_never_kept(tmp_path: Path, line: bytes) -> None:
    data = line % b"planted-u" + line % b"planted-v"
    options = {"user": "user.id", "attributes": ("page.host",)}
    [left] = through(tmp_path, data, keep=("*",), **options)
    assert set(left) == {"ts", "user", "page", "other", "a.b", "a"}
    assert set(left["user"]) == {"id"}
    assert left["page"] == {"host": "a"}
    assert "planted" not in json.dumps(left)
    [left] = through(tmp_path, data, keep=("page.path", "page.in", "a\\.b"), **options)
    assert left["page"] == {"host": "a", "path": "/p", "in": {"host": "kept"}}
    assert left["a.b"] == "dot"
    assert "a" not in left
    bare = data.replace(b'"host":"a"', b'"h":1')  # a parent without what is looked for in it
    bare += data.replace(b'{"host":"a"', b'"planted","x":{"y":1')  # and one that is no object
    assert through(tmp_path, bare + data, keep=("*",), **options) == [
        left | {"page": {"host": "a"}, "other": {"user": 1}, "a": {"b": "deep"}}
    ]


def test_a_veiled_value_does_not_leave_by_another_way(tmp_path: Path) -> None:
    data = b"".join(
        b'{"ts":1700000000,"uid":"u%d","host":"%s","x":{"host":"in"}}\n' % (number, host)
        for number, host in enumerate([b"planted", b"a", b"a"])
    )
    for veiled in ("drop", "blank"):
        left = through(tmp_path, data, keep=("*",), empty=veiled)
        assert "planted" not in json.dumps(left)
        assert left[-1]["x"] == {"host": "in"}


def test_users_leave_as_pseudonyms(tmp_path: Path) -> None:
    spellings = [b"7", b'"7"', b'"\\u0037"', b"7.0", b"70e-1"]
    data = b"".join(b'{"ts":1700000000,"uid":%s,"host":"a"}\n' % user for user in spellings)
    names = {record["uid"] for record in through(tmp_path, data, empty="blank")}
    assert len(names) == 1
    assert not through(tmp_path, data), "one person counted as two"
    [name] = names
    assert len(name) == 20
    other = through(tmp_path, data.replace(b"7", b"8"), empty="blank")
    assert other[0]["uid"] != name


def test_another_run_another_pseudonym_unless_it_has_the_key(tmp_path: Path) -> None:
    key, other = tmp_path / "key", tmp_path / "other"
    write_key(key)
    write_key(other)
    data = line(T, "planted-u", "a") + line(T, "planted-v", "a")
    outs = [run("--veiled", "blank", stdin=data).stdout for _ in range(2)]
    keyed = [run("--key-file", key, stdin=data).stdout for _ in range(2)]
    assert outs[0] != outs[1]
    assert keyed[0] == keyed[1] != run("--key-file", other, stdin=data).stdout
    assert not any(b"planted" in out for out in outs + keyed)
    assert b"planted-v" in run("--raw-users", stdin=data).stdout
    assert len(read_key(key)) == 32


def test_a_key_may_be_bytes_and_must_be_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(bytes(32))
    os.chmod(path, 0o600)
    assert read_key(path) == bytes(32)
    os.chmod(path, 0o640)
    with pytest.raises(ValueError, match="others can read"):
        read_key(path)
    path.write_text("short")
    os.chmod(path, 0o600)
    with pytest.raises(ValueError, match="zveil key"):
        read_key(path)


def test_zveil_key_makes_a_key_and_never_overwrites_one(tmp_path: Path) -> None:
    path = tmp_path / "key"
    assert zveil("key", path).returncode == 0
    held = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    again = zveil("key", path)
    assert again.returncode == 2
    assert b"never overwritten" in again.stderr
    assert path.read_bytes() == held
    assert held.strip().hex() not in again.stderr.decode()
    assert zveil("key", tmp_path / "no" / "key").returncode == 2
