"""Native ladders against plain Python, and what `zveil.hierarchy` says about wrong ones."""

import ipaddress
import random
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import ladders
import pyarrow as pa
import pytest

from zveil.act.levels import Levels
from zveil.hierarchy import Step, parse

WORDS = ["www", "mail", "a", "b", "example", "x-1", "_srv", "ck", "kawasaki", "city", "bücher",
         "xn--bcher-kva", "公司"]  # fmt: skip
ENDS = ["org", "com", "co.uk", "ck", "kawasaki.jp", "github.io", "公司.cn", "unknown", "bd",
        "compute.amazonaws.com"]  # fmt: skip


def climbed(spec: list[Step], values: list[object], folder: Path | str = ".") -> list[list[object]]:
    """Give the labels of each value, finest first."""
    made = Levels(parse(spec, folder)).of([pa.array(values)])
    columns = [column.dictionary_decode().to_pylist() for column in reversed(made)]
    return [list(labels) for labels in zip(*columns[1:], strict=True)]


def test_domains_are_those_of_the_list() -> None:
    random.seed(1)
    hosts = []
    for _ in range(3_000):
        labels = random.choices(WORDS, k=random.randint(0, 3))
        host = ".".join([*labels, random.choice(ENDS)])
        hosts.append(random.choice([host, host.upper(), host + "."]))
    hosts += [str(ipaddress.ip_address(random.getrandbits(32))) for _ in range(50)]

    def ascii_form(labels: ladders.Labels) -> list[object]:
        return [None if label is None else label.encode("idna").decode() for label in labels]

    found = climbed(["domain"], list(hosts))
    for host, labels in zip(hosts, found, strict=True):
        assert labels == ascii_form(ladders.domain(host)), host
    assert len({str(labels) for labels in found}) > 100


def test_the_lists_own_examples_hold() -> None:
    """The list comes with examples of hosts and what is registered of them."""
    text = files("publicsuffixlist").joinpath("test_psl.txt").read_text("utf-8")
    tried = 0
    for line in text.splitlines():
        if not line.startswith("checkPublicSuffix("):
            continue
        host, wanted = (
            None if word.strip() == "null" else word.strip().strip("'")
            for word in line[len("checkPublicSuffix(") : line.rindex(")")].split(",")
        )
        if host is None:
            continue
        tried += 1
        ascii_wanted = None if wanted is None else wanted.encode("idna").decode()
        assert climbed(["domain"], [host]) == [[ascii_wanted]], line
    assert tried > 50


def test_other_steps_are_as_in_plain_python(tmp_path: Path) -> None:
    random.seed(2)
    lines = [f"v{n},p{n % 7},g{n % 7 % 3}" for n in range(50)] + ["v50,p7", '"a,b",p1,g1']
    csv = tmp_path / "tree.csv"
    csv.write_text("\n".join(lines))
    zone = timezone(timedelta(hours=5, minutes=30))
    start = datetime(1990, 1, 1, tzinfo=zone)
    moments = [start + timedelta(minutes=random.randrange(10**7)) for _ in range(300)]
    moments += [moment.astimezone(UTC) for moment in moments[:50]]
    addresses = [random.getrandbits(32) for _ in range(200)]
    tries: list[tuple[list[Step], ladders.Climb, list[str]]] = [
        (
            [{"table": "tree.csv"}],
            ladders.table(csv),
            [*(f"v{random.randrange(60)}" for _ in range(200)), "a,b"],
        ),
        (
            [{"segments": "/", "levels": 3}],
            ladders.segments("/", 3),
            ["".join(random.choices("/ab", k=random.randint(1, 9))) for _ in range(500)],
        ),
        (
            [{"segments": "*"}],
            ladders.segments("*", 2),
            ["*".join(random.choices("abc", k=random.randint(1, 5))) for _ in range(200)],
        ),
        (
            [{"bins": [0.25, 10, 100]}],
            ladders.bins("0.25", "10", "100"),
            [str(random.randrange(-(10**6), 10**6) / 1000) for _ in range(500)],
        ),
        (
            [{"time": ["minute", "hour", "day", "month", "year"]}],
            ladders.dates("minute", "hour", "day", "month", "year"),
            [moment.isoformat() for moment in moments],
        ),
        (
            [{"prefix": [24, 9], "prefix6": [48, 31]}],
            ladders.prefixes([24, 9], [48, 31]),
            [
                *(str(ipaddress.IPv4Address(bits)) for bits in addresses),
                *(f"::ffff:{ipaddress.IPv4Address(bits)}" for bits in addresses),
                *(str(ipaddress.IPv6Address(random.getrandbits(128))) for _ in addresses),
            ],
        ),
    ]
    for spec, climb, values in tries:
        found = climbed(spec, list(values), tmp_path)
        for value, labels in zip(values, found, strict=True):
            assert labels == climb(value), (spec, value)


def test_numbers_and_dates_of_columns_have_labels() -> None:
    assert climbed([{"bins": [10]}], [7, -7, None]) == [["[0,10)"], ["[-10,0)"], [None]]
    assert climbed([{"bins": [1]}], [0.5, float("nan")]) == [["[0,1)"], [None]]
    moment = datetime(2024, 2, 29, 23, 30, tzinfo=UTC)
    assert climbed([{"time": ["day"]}], [moment]) == [["2024-02-29"]]
    assert climbed([{"time": ["year"]}], [moment.date()]) == [["2024"]]
    early = datetime(1970, 1, 2, tzinfo=UTC)
    assert climbed([{"time": ["day"], "format": "s"}], [early]) == [["1970-01-02"]]
    assert climbed([{"bins": [1]}], [Decimal("1.50")]) == [["[1,2)"]]
    assert climbed([{"time": ["day"], "format": "ms"}], [86_400_000]) == [["1970-01-02"]]
    assert climbed([{"segments": "/"}], [b"a/b/c", b"\xff"]) == [["a/b", "a"], [None, None]]


def test_cells_are_those_of_other_programs() -> None:
    """Worked out with another implementation of H3."""
    places = [
        (37.7752702151959, -122.418307270836, "8928308280fffff", "85283083fffffff"),
        (45.0, 40.0, "892d55c256bffff", "852d55c3fffffff"),
        (-33.8688, 151.2093, "89be0e35cbbffff", "85be0e37fffffff"),
        (89.99, -179.99, "89032623347ffff", "85032623fffffff"),
    ]
    north, east, fine, coarse = map(list, zip(*places, strict=True))
    hierarchy = parse([{"cells": [9, 5]}])
    assert hierarchy.takes_position
    assert hierarchy.levels == 2
    for kind in (pa.float64(), pa.string()):
        columns = [pa.array(map(str, side) if kind == pa.string() else side, kind)
                   for side in (north, east)]  # fmt: skip
        made = Levels(hierarchy).of(columns)
        assert [column.to_pylist() for column in made] == [coarse, fine]
    wrong = [pa.array([91.0, 0.0, None, float("nan")]), pa.array([0.0, 181.0, 0.0, 0.0])]
    assert [column.null_count for column in Levels(hierarchy).of(wrong)] == [4, 4]


def test_a_finer_level_of_a_fixed_rule_is_counted_from_the_coarsest() -> None:
    hierarchy = parse([{"segments": "/", "levels": 2}])
    assert [hierarchy.gate_level(level) for level in range(3)] == [2, 1, 0]
    with pytest.raises(ValueError, match="level: expected 0 to 2, where 0 is the value itself"):
        hierarchy.gate_level(3)


def test_the_meaning_of_a_table_is_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n")
    (tmp_path / "b.csv").write_text("x,y\n")
    (tmp_path / "c.csv").write_text("x,z\n")
    a, b, c = (parse([{"table": f"{name}.csv"}], tmp_path).meaning for name in "abc")
    assert a == b
    assert a != c


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ([], "expected a list of steps, finest first, such as"),
        ("domain", "expected a list of steps, finest first, such as"),
        ([7], "step 1: expected domain, table, segments, bins, time, prefix or cells"),
        ([{"bins": [1], "time": ["day"]}], "step 1: expected domain, table, segments, bins"),
        (["domain", {"tabel": "x"}], "step 2: expected domain, table, segments"),
        ([{"domain": "us"}], "step 1: domain: expected 'all' or 'icann', got 'us'"),
        ([{"table": "none.csv"}], "step 1: table: none.csv: no such file or directory"),
        ([{"table": 3}], "step 1: table: expected the name of a CSV file, got 3"),
        ([{"segments": ""}], "step 1: segments: expected a separator such as '/', got ''"),
        ([{"segments": "/", "levels": 0}], "levels: expected whole numbers from 1 to 31, got 0"),
        ([{"segments": "/", "depth": 2}], "segments: has no key 'depth'; beside it there may be"),
        ([{"bins": 10}], "bins: expected a list, finest first, got 10"),
        ([{"bins": [10, 25]}], "each a multiple of the one before; 25 is none of 10"),
        ([{"bins": [0]}], "bins: expected widths above 0"),
        ([{"bins": [True]}], "bins: expected widths above 0"),
        ([{"bins": ["x"]}], "bins: expected widths above 0"),
        ([{"time": ["week"]}], "time: expected some of minute, hour, day, month, year"),
        ([{"time": ["year", "day"]}], "time: expected parts in the order minute, hour"),
        ([{"time": ["day"], "format": "x"}], "time: format: expected one of s, ms, us, ns, iso"),
        ([{"prefix": [16, 24]}], "prefix: expected most bits first, got [16, 24]"),
        ([{"prefix": [33]}], "prefix: expected whole numbers from 0 to 32, got 33"),
        ([{"prefix": [24], "prefix6": [48, 32]}], "prefix: expected as many as of prefix6, one"),
        ([{"cells": [16]}], "cells: expected whole numbers from 0 to 15, got 16"),
        ([{"cells": [5, 9]}], "cells: expected finest first, got [5, 9]"),
        ([{"segments": "/"}, {"cells": [5]}], "step 2: cells are of a position and come first"),
        ([{"segments": "/", "levels": 31}, {"bins": [1]}], "expected 32 levels at the most"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(spec: list[Step], words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the words are compared
        parse(spec)
    assert words in str(caught.value)


def test_a_table_that_is_no_tree_names_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "tree.csv").write_text("a,x,m\nb,x,n\n")
    with pytest.raises(ValueError, match=r"table: tree.csv: line 2: a label has another parent"):
        parse([{"table": "tree.csv"}], tmp_path)


def test_without_the_list_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "publicsuffixlist", None)
    with pytest.raises(ValueError, match=r"pip install 'zveil\[domains\]'"):
        parse(["domain"])
