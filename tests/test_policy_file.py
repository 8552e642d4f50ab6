"""The policy file: what it says, and every mistake in it with its line and key."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from program import line, zveil
from test_run import T

from zveil.cli.rule import OPTIONS
from zveil.cli.run import run as run_command
from zveil.hierarchy import parse
from zveil.policy import Policy, PolicyError, read_policy
from zveil.policy.file import PolicyFileError, parse_policy
from zveil.policy.schema import SCHEMA

WHOLE = """
# a comment
[input]
format = "csv"
id = "event.id"
[time]
field = "ts"
format = "ms"
round = "day"
year = 2024
[user]
field = "uid"
pseudonym = "hex"
rotate = "24h"
keep_keys = true
[[attribute]]
field = "page.host"
z = 20
window = "1h"
z_max = 100
veiled = { text = "*" }
noise = 5
noise_period = "30d"
swap = 0.05
hierarchy = [{ segments = "." }]
rule = "fixed"
level = 1
only = "top.csv"
except = "cdn.txt"
[[attribute]]
field = "agent"
z = 2
window = 90
veiled = "null"
[[attribute]]
fields = ["lat", "lon"]
name = "cell"
z = 3
window = 60
hierarchy = [{ cells = [7] }]
[record]
keep = ["method", "a\\\\.b"]
empty = "blank"
[limits]
lateness = 1.5
max_future = "any"
memory = "2GB"
attributes = 1000
[hold]
p = 0.9
k = 3
z_min = 2
z_max = 95
"""

PLAIN = """
[time]
field = "ts"
[user]
field = "uid"
[[attribute]]
field = "host"
z = 2
window = "1h"
"""


def with_lists(folder: Path) -> Path:
    (folder / "top.csv").write_text("1,example.org\n")
    (folder / "cdn.txt").write_text("cdn.example\n")
    return folder


def test_every_key_is_read(tmp_path: Path) -> None:
    found = parse_policy(WHOLE, folder=with_lists(tmp_path))
    assert dataclasses.astuple(found.input) == ("csv", "event.id")
    assert dataclasses.astuple(found.time) == ("ts", "ms", "day", 2024)
    assert dataclasses.astuple(found.user) == ("uid", "hex", "24h", True)
    segments, cells = parse([{"segments": "."}]), parse([{"cells": [7]}])
    first = found.attributes[0]
    assert [_values(each) for each in found.attributes] == [
        (
            "page.host",
            20,
            "1h",
            100,
            "*",
            5,
            "30d",
            0.05,
            segments,
            "fixed",
            1,
            (),
            first.only,
            first.except_,
        ),
        # Room for the largest z that may be chosen.
        ("agent", 2, 90, 95, None, 0, None, 0.0, None, "fall-through", None, (), None, None),
        (
            "cell",
            3,
            60,
            95,
            None,
            0,
            None,
            0.0,
            cells,
            "fall-through",
            None,
            ("lat", "lon"),
            None,
            None,
        ),
    ]
    lists = [each and Path(each.file).name for each in (first.only, first.except_)]
    assert lists == ["top.csv", "cdn.txt"]
    assert dataclasses.astuple(found.record) == (("method", "a\\.b"), "blank")
    assert dataclasses.astuple(found.limits) == (1.5, None, "2GB", 1000)
    assert found.hold is not None
    assert dataclasses.astuple(found.hold) == (0.9, 3, 2, 95)
    used = set(re.findall(r"^(\w+) =", WHOLE, re.MULTILINE))
    assert used == {key for section in SCHEMA.values() for key in section.keys}


def _values(part: Any) -> tuple[Any, ...]:
    return tuple(getattr(part, field.name) for field in dataclasses.fields(part))


def test_the_keys_are_those_of_the_parts() -> None:
    for section in SCHEMA.values():
        fields = [field.name for field in dataclasses.fields(section.part)]
        names = [name.removesuffix("_") for name in fields]
        assert list(section.keys) == [*names, *section.instead]
        assert set(section.instead.values()) <= set(fields)


def test_order_and_comments_mean_nothing() -> None:
    turned = """
    attribute = [{ window = 3600, z = 2, field = "host" }] # here
    user.field = "uid"
    [time]
    round = "none"
    field = "ts"
    """
    assert parse_policy(turned).fingerprint == parse_policy(PLAIN).fingerprint


def mistakes(text: str) -> list[str]:
    with pytest.raises(PolicyFileError) as caught:
        parse_policy(text, name="p.toml")
    found = [f"p.toml:{problem}" for problem in caught.value.problems]
    assert str(caught.value) == "\n".join(found)
    return found


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("z = 2", "z = 2.0", "8:5: attribute.z: expected a whole number, got 2.0"),
        ("z = 2", "z = 0", "8:5: attribute.z: expected a whole number from 1, got 0"),
        ("z = 2", "z = true", "8:5: attribute.z: expected a whole number, got true"),
        ("z = 2", "z = 99999999999999999999", "8:5: attribute.z: expected a whole number"),
        ("z = 2", "z = 999999999", "8:5: attribute.z"),
        ("z = 2", "", "6:1: attribute: expected the key 'z'"),
        ("z = 2", "z = 2\nz_max = 1", "9:9: attribute.z_max: expected at least z, which is 2"),
        ("z = 2", "z = 2\nnoise = -1", "9:9: attribute.noise: expected a whole number from 0"),
        ("z = 2", "z = 2\nnoise = 3\nz_max = 4", "10:9: attribute.z_max: expected room for z and"),
        ("z = 2", "z = 2\nnoise_period = 1", "9:16: attribute.noise_period: expected with noise"),
        ("z = 2", "z = 2\nnoise = 1\nnoise_period = 0", "10:16: attribute.noise_period: expected"),
        ("z = 2", "z = 2\nnoise = 99999999999", "attribute"),
        ("z = 2", "zz = 2", "8:1: attribute: there is no key 'zz'. Did you mean 'z'?"),
        ('"1h"', '"soon"', "9:10: attribute.window: expected a duration such as '1h'"),
        ('"1h"', "1979-05-27", "9:10: attribute.window: expected a duration"),
        ('"1h"', '"1h"\nveiled = "*"', '10:10: attribute.veiled: expected "null", or a text'),
        ('"1h"', '"1h"\nveiled = { text = 1 }', "10:10: attribute.veiled: expected"),
        ("[[attribute]]", "[attribute]", "6:2: attribute: expected [[attribute]] with two"),
        ('"host"', '"uid"', "7:9: attribute.field: 'uid' is the user already"),
        ('"host"', '["host"]', "7:9: attribute.field: expected a text in quotes, got a list"),
        ("[time]", "[times]", "2:2: there is no section 'times'. Did you mean 'time'?"),
        ("[time]", "[time]\nround = 1", "3:9: time.round: expected 'none', 'minute'"),
        ("[user]", "[user]\nfield = 'x'", "duplicate key"),
        ("[user]", "[user", "unclosed"),
        ("[user]", "[record]\nkeep = 'a'\n[user]", "5:8: record.keep: expected a list"),
        ("[user]", "[record]\nkeep = [1]\n[user]", "5:8: record.keep: expected a text"),
        ("[user]", "[record]\nkeep = ['ts.a']\n[user]", "5:8: record.keep: 'ts.a' is inside"),
        ("[user]", "[limits]\nmemory = 1000\n[user]", "5:10: limits.memory: expected at least"),
        ("[user]", "[limits]\nlateness = []\n[user]", "5:12: limits.lateness: expected a dur"),
        ("[user]", "[input]\nformat = 'xml'\n[user]", "5:10: input.format: expected 'ndjson'"),
        ("[time]", "time = 1\n[x]", "2:1: time: expected a section with keys, got 1"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_key(old: str, new: str, wanted: str) -> None:
    found = mistakes(PLAIN.replace(old, new, 1))
    assert [each for each in found if wanted in each], found


def test_all_mistakes_are_told_in_their_order() -> None:
    text = PLAIN.replace("ts", "").replace("z = 2", "z = -1").replace("[user]", "[usr]")
    found = mistakes(text + "\n[limits]\nmemory = true\n")
    assert [each.split(":")[1] for each in found] == ["1", "4", "8", "12"]


def test_all_mistakes_of_one_section_are_told() -> None:
    wrong = PLAIN.replace("z = 2", "z = 0\nnoise = -1\nnoise_period = 'x'").replace("1h", "soon")
    assert [each.split(":")[1] for each in mistakes(wrong)] == ["8", "9", "10", "11"]
    limits = "[limits]\nlateness = 'x'\nmax_future = -1\nmemory = '1 GX'\n"
    assert [each.split(":")[1] for each in mistakes(PLAIN + limits)] == ["11", "12", "13"]


def test_a_file_without_anything_is_told_what_it_needs() -> None:
    assert mistakes("") == [
        "p.toml:1:1: attribute: expected a section [[attribute]] with 'field' and 'z' and 'window'",
        "p.toml:1:1: time: expected a section [time] with 'field'",
        "p.toml:1:1: user: expected a section [user] with 'field'",
    ]
    without = "attribute = []\n" + PLAIN.partition("[[")[0]
    assert mistakes(without) == ["p.toml:1:1: attribute: expected at least one field"]


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b"[time]\nfield = '\xff'\n")
    with pytest.raises(PolicyError, match=r"p\.toml:2:1: not valid UTF-8"):
        read_policy(path)
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(PolicyError, match="larger than 1 MiB"):
        read_policy(path)


DATA = b"".join(line(T + n, f"u{n % 4}", f"planted-{n % 3}") for n in range(40))


def written(folder: Path, text: str = PLAIN) -> Path:
    path = folder / "p.toml"
    path.write_text(text)
    return path


def test_a_run_by_file_is_a_run_by_options(tmp_path: Path) -> None:
    text = PLAIN.replace('"ts"', '"ts"\nround = "hour"').replace('"uid"', '"uid"\npseudonym="raw"')
    options = ["--time", "ts", "--user", "uid", "--attribute", "host", "-z", "2", "--window", "1h",
               "--round", "hour", "--raw-users"]  # fmt: skip
    by_file = zveil("run", "--json", "--policy", written(tmp_path, text), stdin=DATA)
    by_options = zveil("run", "--json", *options, stdin=DATA)
    assert by_file.stdout == by_options.stdout
    assert by_file.stdout.count(b"\n") > 20
    found = [json.loads(done.stderr) for done in (by_file, by_options)]
    for each in found:
        del each["seconds"]
    assert found[0] == found[1]


SAMPLES = {"--attribute": "a", "-z": "3", "--noise": "3", "--window": "2h", "--keep": "x",
           "--veiled": "blank", "--format": "csv", "--round": "day", "--year": "2024",
           "--time-format": "s", "--pseudonym": "hex", "--swap": "0.1", "--hold": "p=0.8",
           "--z-min": "3", "--z-max": "30", "--max-attributes": "9"}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_beside_a_file_is_refused(name: str, tmp_path: Path) -> None:
    option = OPTIONS[name].option
    text = PLAIN + ('[input]\nformat = "ndjson"\n' if name == "format" else "")
    given = [option] if name in ("raw_users", "keep_keys") else [option, SAMPLES.get(option, "1d")]
    done = zveil("run", "--policy", written(tmp_path, text), *given, stdin=DATA)
    assert done.returncode == 2
    words = done.stderr.decode()
    assert f"Error: {option} and --policy: " in words
    assert f"as {OPTIONS[name]}; change it there" in words
    assert not done.stdout


def test_options_that_are_no_policy_go_with_a_file(tmp_path: Path) -> None:
    done = zveil(
        "run", "--policy", written(tmp_path), "--format", "ndjson", "--to", "csv", "-q",
        "--threads", "2", "--on-error", "stop", "--max-bad", "1%", stdin=DATA,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.startswith(b"ts,uid,host\n")


def test_the_options_with_a_star_are_the_short_form() -> None:
    starred = {param.opts[-1] for param in run_command.params
               if "*]" in (getattr(param, "help", None) or "")}  # fmt: skip
    assert starred == {said.option for said in OPTIONS.values()}
    assert {(said.section, said.key) for said in OPTIONS.values()} <= {
        (name, key) for name, section in SCHEMA.items() for key in section.keys
    }


def test_a_file_that_is_not_there_or_wrong_ends_with_2(tmp_path: Path) -> None:
    done = zveil("run", "--policy", tmp_path / "none.toml", stdin=DATA)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"none.toml: no such file" in done.stderr
    wrong = written(tmp_path, PLAIN.replace("z = 2", "z = 'two'"))
    done = zveil("run", "--policy", wrong, stdin=DATA)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"p.toml:8:5: attribute.z: expected a whole number, got 'two'" in done.stderr


def test_attributes_are_tried_with_their_own_z_and_with_one(tmp_path: Path) -> None:
    both = PLAIN + '[[attribute]]\nfield = "ref"\nz = 3\nwindow = "1h"\n'
    data = DATA.replace(b'"host"', b'"ref": "x", "host"')
    done = zveil("run", "--json", "--dry-run", "--policy", written(tmp_path, both), stdin=data)
    found: dict[str, Any] = json.loads(done.stdout)
    own, *others = found["rungs"]
    assert own["z"] is None
    assert own["released"] == found["released"] == sum(o["released"] for o in found["outcomes"])
    assert [rung["z"] for rung in others] == [2, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert others[0]["released"] > own["released"]
    shown = zveil("run", "--dry-run", "--policy", written(tmp_path, both), stdin=data).stdout
    assert shown.splitlines()[1].split()[0] == b"policy"


def test_policies_are_equal_if_they_say_the_same() -> None:
    assert parse_policy(PLAIN) == Policy.of(
        time="ts", user="uid", attributes=["host"], z=2, window="1h"
    )
