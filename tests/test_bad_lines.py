"""Bad lines: counted by kind, told by place, never let out, and no loss to the good beside them."""

import json
from pathlib import Path
from typing import Any

import pytest
from events import objects, table
from program import line, ran, run
from test_run import T, policy
from test_text_way import BAD_CSV, BAD_JSON

from zveil._native import problem_sentence
from zveil.fields import FieldError
from zveil.run import BadInputError

GOOD = [line(T, f"u{number}", "a") for number in range(5)]
OUT = GOOD[1:]


def through(tmp_path: Path, lines: list[bytes], **options: Any) -> tuple[bytes, Any, list[str]]:
    source, output = tmp_path / "in.ndjson", tmp_path / "out.ndjson"
    source.write_bytes(b"".join(lines))
    given = {"max_line": 2000} | options
    summary, reports = ran(policy(raw_users=True, time_format="s"), [source], output, **given)
    return output.read_bytes(), summary, [words.removeprefix(str(source)) for words in reports]


@pytest.mark.parametrize("bad", BAD_JSON, ids=range(len(BAD_JSON)))
def test_each_is_told_by_place_and_kind_and_none_leaves(tmp_path: Path, bad: bytes) -> None:
    lines = [*GOOD[:2], bad + b"\n", *GOOD[2:]]
    out, summary, reports = through(tmp_path, lines)
    assert objects(out) == objects(b"".join(OUT))
    assert summary.bad == {BAD_JSON[bad]: 1}
    assert (summary.lines, summary.records) == (6, 5)
    [words] = reports
    place, _, sentence = words.partition(": ")
    assert place.startswith(":3:")
    assert 1 <= int(place.split(":")[2]) <= len(bad) + 1
    assert sentence == problem_sentence(BAD_JSON[bad])
    assert "planted" not in words


def test_the_column_is_that_of_what_is_wrong(tmp_path: Path) -> None:
    bad = b'{"ts":1700000000,"uid":"u","host":[]}'
    _, _, [words] = through(tmp_path, [*GOOD, bad + b"\n"])
    assert words.startswith(f":6:{bad.index(b'[') + 1}: ")


def test_lines_are_counted_file_by_file(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.ndjson" for number in (1, 2)]
    paths[0].write_bytes(b"\n".join([b"{}", b""]))
    paths[1].write_bytes(b"".join([*GOOD[:2], b"?\n"]))
    summary, reports = ran(policy(), paths, tmp_path / "out.ndjson")
    assert [words.partition(": ")[0] for words in reports] == [f"{paths[0]}:1:1", f"{paths[1]}:3:1"]
    assert summary.bad == {"missing-field": 1, "syntax": 1}


def test_many_are_told_by_the_first_ten(tmp_path: Path) -> None:
    _, summary, reports = through(tmp_path, [*GOOD, *[b"no\n"] * 20])
    assert len(reports) == 11
    assert "only counted" in reports[-1]
    assert summary.bad_lines == 20


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_input_that_ends_in_the_middle_of_a_line(tmp_path: Path, ending: bytes) -> None:
    out, summary, _ = through(tmp_path, [*GOOD, GOOD[0][:20] + ending])
    assert len(objects(out)) == 4
    assert summary.bad == {"cut-off": 1}


def test_line_breaks_marks_and_blank_lines_are_no_fault(tmp_path: Path) -> None:
    lines = [b"\xef\xbb\xbf" + GOOD[0], GOOD[1].replace(b"\n", b"\r\n"), b"\n", b"  \r\n"]
    out, summary, reports = through(tmp_path, [*lines, *GOOD[2:4], GOOD[4].rstrip()])
    assert objects(out) == objects(b"".join(OUT))
    assert not reports
    assert (summary.lines, summary.records, summary.bad_lines) == (7, 5, 0)


def test_ten_megabytes_without_a_line_break_are_one_bad_line() -> None:
    long = b'{"ts":1700000000,"uid":"planted","host":"' + b"a" * 10_000_000 + b'"}\n'
    done = run("--raw-users", "--json", stdin=b"".join([*GOOD[:2], long, *GOOD[2:], long[:-1]]))
    assert objects(done.stdout) == objects(b"".join(OUT))
    assert b"planted" not in done.stderr
    assert b"<stdin>:3:1048577: " in done.stderr
    assert json.loads(done.stderr.splitlines()[-1])["bad"] == {"too-long": 2}


@pytest.mark.parametrize("t", [T + 10**9, "2999-01-01T00:00:00Z", 10**30, -(10**30), 1e300])
def test_a_time_far_off_is_never_released_and_harms_nobody(tmp_path: Path, t: Any) -> None:
    far = [line(t, "planted", "a"), line(t, "planted-too", "a")]
    options = {"raw_users": True, "time_format": "iso" if isinstance(t, str) else None}
    source, output = tmp_path / "in.ndjson", tmp_path / "out.ndjson"
    good = GOOD if not isinstance(t, str) else [
        line("2023-11-14T22:13:20Z", f"u{number}", "a") for number in range(5)
    ]  # fmt: skip
    source.write_bytes(b"".join([*good[:2], *far, *good[2:]]))
    summary, _ = ran(policy(**options), [source], output)
    assert objects(output.read_bytes()) == objects(b"".join(good[1:]))
    assert summary.outcomes[0].future + summary.bad.get("time", 0) == 2


@pytest.mark.parametrize("bad", BAD_CSV, ids=range(len(BAD_CSV)))
def test_bad_csv(tmp_path: Path, bad: bytes) -> None:
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    good = [b"%d,u%d,a" % (T, number) for number in range(5)]
    source.write_bytes(b"\r\n".join([b"ts,uid,host", *good[:2], bad, *good[2:], b""]))
    options = {"raw_users": True, "time_format": "s"}
    summary, [words] = ran(policy(**options), [source], output, max_line=2000)
    assert [row["uid"] for row in table(output.read_bytes())] == ["u1", "u2", "u3", "u4"]
    assert summary.bad == {BAD_CSV[bad]: 1}
    assert words.startswith(f"{source}:4:")
    assert words.endswith(problem_sentence(BAD_CSV[bad]) or "?")
    assert (summary.lines, summary.records) == (7, 5)


def test_a_header_that_is_too_long_ends_it(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes(b"a," * 2000 + b"ts,uid,host\n1700000000,planted,a\n")
    with pytest.raises(FieldError, match=r"in.csv: the header.*longer than") as caught:
        ran(policy(), [source], tmp_path / "out.csv", max_line=2000)
    assert "planted" not in str(caught.value)


def test_empty_lines_before_a_header_are_only_counted(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes(b"\n" * 500_000 + b"ts,uid,host\n1700000000,u,a\nbad\n")
    summary, _ = ran(policy(z=1), [source], tmp_path / "out.csv")
    assert (summary.lines, summary.records, summary.bad_lines) == (500_003, 1, 1)


def test_lines_that_are_nested_too_deeply_stop_nothing(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    deep = b'{"ts":1700000000,"uid":"u","host":' + b"[" * 60_000 + b"\n"
    source.write_bytes(deep + b'{"ts":1700000000,"uid":"u","host":"a"}\n')
    summary, _ = ran(policy(z=1), [source], tmp_path / "out.ndjson")
    assert (summary.records, summary.bad) == (1, {"too-deep": 1})


def test_a_missing_header_is_not_shown(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes(b"1700000000,planted-u,planted-host\n" * 3)
    with pytest.raises(FieldError, match="looks like data") as caught:
        ran(policy(), [source], tmp_path / "out.csv")
    assert "planted" not in str(caught.value)


def test_stop_ends_at_the_first_and_writes_what_was_before(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    source.write_bytes(b"".join([*GOOD[:3], b"planted\n", *GOOD[3:]]))
    done = run("--raw-users", "--on-error", "stop", source)
    assert done.returncode == 3
    assert objects(done.stdout) == objects(b"".join(GOOD[1:3]))
    assert f"{source}:4:1: ".encode() in done.stderr
    assert b"ended early: bad input" in done.stderr
    assert b"planted" not in done.stderr


def test_stop_tells_the_place_of_a_missing_field_too(tmp_path: Path) -> None:
    reports: list[str] = []
    source = tmp_path / "in.ndjson"
    source.write_bytes(b'{"uid":1,"host":"a"}\n')
    with pytest.raises(BadInputError):
        ran(policy(), [source], None, stop_at_problem=True, report=reports.append)
    assert [words.partition(": ")[0] for words in reports] == [f"{source}:1:1"]


@pytest.mark.parametrize(("most", "code"), [("10%", 3), ("0.5", 0), ("0", 3), ("100%", 0)])
def test_too_large_a_share_of_bad_lines_ends_it(tmp_path: Path, most: str, code: int) -> None:
    source = tmp_path / "in.ndjson"
    source.write_bytes(b"".join(GOOD * 200) + b"no\n" * 200)
    done = run("--raw-users", "--max-bad", most, "-q", source)
    assert done.returncode == code
    assert len(objects(done.stdout)) == 999
    assert (b"--max-bad" in done.stderr) == (code == 3)


def test_a_few_bad_lines_are_no_share(tmp_path: Path) -> None:
    _, summary, _ = through(tmp_path, [*GOOD, *[b"no\n"] * 900])
    assert summary.bad_lines == 900


def test_no_message_holds_a_user_or_a_value(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    lines = [bad.replace(b'"a"', b'"planted-host"') for bad in BAD_JSON]
    good = [line(T, f"planted-{number}", "planted-host" if number < 1 else "a")
            for number in range(4)]  # fmt: skip
    source.write_bytes(b"\n".join([*lines, *good]))
    for arguments in ([], ["--json"], ["--empty", "blank"], ["--on-error", "stop"], ["--dry-run"]):
        done = run("--time-format", "s", *arguments, source)
        assert b"planted" not in done.stdout + done.stderr
        assert done.returncode == (3 if "stop" in arguments else 0)
