"""The account of a run: every event is in it, as a table, as JSON, while it runs and before."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from events import csv_lines, ndjson, objects, story
from hypothesis import given
from hypothesis import strategies as st
from program import FIELDS, PROGRAM, RULE, line, ran, run
from test_run import T, policy

from zveil.cli.progress import account, trial
from zveil.io import Format
from zveil.reference import Reference

LINES = [
    *[line(T + n, f"planted-{n % 5}", "ab"[n % 2]) for n in range(20)],
    line(T - 10**6, "late", "a"),
    line(T + 10**9, "future", "a"),
    line(T + 20, None, "a"),
    line(T + 20, "u", None),
    b"bad\n",
    b"\n",
]


@given(st.integers(0, 2**32).map(Random), st.integers(1, 60), st.booleans())
def test_every_event_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, random: Random, length: int, is_json: bool
) -> None:
    told = story(random, length, values=["a", "b", "c", None])
    folder = tmp_path_factory.getbasetemp()
    source, output = folder / "in", folder / "out"
    lines = ndjson(random, told) if is_json else csv_lines(random, told)
    blank = [b"\n" for _ in range(random.randrange(3))]
    bad = [b"?\n" for _ in range(random.randrange(3))]
    rest = [*lines[1:], *bad, *blank]
    random.shuffle(rest)
    source.write_bytes(b"".join([lines[0], *rest]))
    rule = told.policy(time_format="s")
    summary, reports = ran(rule, [source], output, stated=Format.NDJSON if is_json else Format.CSV)
    assert summary.lines == len(lines) + len(bad) + len(blank)
    assert summary.records == length
    assert summary.bad_lines == len(bad) == len(reports)
    for outcome in summary.outcomes:
        veiled = outcome.few_users + outcome.late + outcome.future + outcome.empty
        assert outcome.observed == outcome.released + veiled == length
        assert min(vars(outcome)[name] for name in ("few_users", "late", "empty")) >= 0
    left = output.read_bytes().count(b"\n") - (not is_json)
    assert summary.left == left


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("summary") / "in.ndjson"
    path.write_bytes(b"".join(LINES))
    return path


def test_json_has_the_numbers_of_the_table(source: Path) -> None:
    found = json.loads(run("--json", source).stderr.splitlines()[-1])
    shown = run(source).stderr.decode()
    [outcome] = found["outcomes"]
    gate = Reference(2, 3600)
    released = sum(gate.observe(T + n, n % 5, n % 2) for n in range(20))
    assert outcome == {
        "attribute": "host", "z": 2, "window_ns": 3600 * 10**9, "observed": 24,
        "released": released, "few_users": 20 - released, "late": 1, "future": 1, "empty": 2,
        "filtered": 0, "refused": 0,
    }  # fmt: skip
    assert found["observed"] == found["records"] == 24
    assert (found["lines"], found["bad_lines"], found["bad"]) == (26, 1, {"syntax": 1})
    assert found["policy"] == policy().fingerprint
    assert f"\npolicy {found['policy']}\n" in shown
    assert found["time_format"] == "s"
    assert found["ended"] == "end of input"
    rows = dict(re.findall(r"^  (\S.*?)  +([\d,]+)", shown, re.MULTILINE))
    assert rows == {
        "events": "24",
        "released": str(outcome["released"]),
        "veiled: fewer than 2 users": str(outcome["few_users"]),
        "veiled: too late": "1",
        "veiled: from the future": "1",
        "veiled: no value, user or time": "2",
        "not valid in its format": "1",
    }


def test_quiet_says_nothing(source: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.ndjson"
    good.write_bytes(b"".join(LINES[:20]))
    done = run("-q", good)
    assert done.stdout
    assert not done.stderr
    assert run("-q", source).stderr.count(b"\n") == 1, "the bad line, and nothing else"


def test_several_attributes_have_a_table_each(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    lines = [b'{"ts":1700000000,"uid":%d,"host":"a","ref":"%d"}\n' % (n, n) for n in range(4)]
    source.write_bytes(b"".join(lines))
    both = policy(attributes=("host", "ref", "misspelt"))
    summary, _ = ran(both, [source], tmp_path / "out.ndjson")
    assert (summary.observed, summary.released, summary.left) == (12, 3, 3)
    shown = account(summary)
    assert [words for words in ("host", "ref") if f"\n{words}\n" in shown] == ["host", "ref"]
    assert "warning: no record had a value for 'misspelt'" in shown


@pytest.mark.parametrize("veiled", ["drop", "blank"])
def test_a_trial_says_what_real_runs_do(tmp_path: Path, veiled: Any) -> None:
    random = Random(3)
    told = story(random, 400, values=[*"aaaabbc"])
    source, output = tmp_path / "in.ndjson", tmp_path / "out.ndjson"
    source.write_bytes(b"".join(ndjson(random, told)))
    zs = [2, 3, 5, 7]
    rule = {"attributes": told.attributes, "window": 9, "empty": veiled}
    summary, _ = ran(policy(z=3, **rule), [source], output, trial=zs)
    assert not output.exists()
    assert [rung.z for rung in summary.rungs] == zs
    for rung in summary.rungs:
        real, _ = ran(policy(z=rung.z, **rule), [source], output)
        assert rung.released == real.released
        if veiled == "drop":
            assert rung.records == real.left
            assert len(objects(output.read_bytes())) == real.left
        if rung.z == 3:  # what was asked for is the trial's own account
            assert summary.outcomes == real.outcomes
            assert summary.left == real.left
    assert len({rung.released for rung in summary.rungs}) > 1
    assert trial(summary).count("\n") == len(zs)


def test_a_dry_run_writes_no_data(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.ndjson"
    done = zdry("-z", "3", "-o", str(output), str(source))
    assert done.returncode == 0
    assert not output.exists()
    assert b"planted" not in done.stdout + done.stderr
    zs = [int(words.split()[0].replace(b",", b"")) for words in done.stdout.splitlines()[1:]]
    assert zs == [2, 3, 5, 10, 20, 50, 100, 200, 500, 1000]
    found = json.loads(zdry("-z", "3", "--json", str(source)).stdout)
    assert [rung["z"] for rung in found["rungs"]] == zs
    assert found["outcomes"][0]["z"] == 3
    [released] = [rung["released"] for rung in found["rungs"] if rung["z"] == 3]
    assert found["released"] == released


def zdry(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [str(PROGRAM), "run", *FIELDS, "--window", "1h", "--dry-run", *arguments]
    return subprocess.run(command, capture_output=True, timeout=120)


def on_a_terminal(*arguments: str) -> bytes:
    """What a person sees on standard error."""
    ours, theirs = pty.openpty()
    command = [str(PROGRAM), "run", *FIELDS, *RULE, *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as going:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # how a terminal says that its other end was closed
            pass
        finally:
            os.close(ours)
        assert going.wait(60) == 0
    return shown


def test_progress_is_shown_on_a_terminal_only(source: Path) -> None:
    shown = on_a_terminal(str(source))
    assert b"\r\x1b[2K" in shown
    assert b"/s" in shown.partition(b"\x1b[2K")[2]
    assert b"veiled: too late" in shown
    assert b"\x1b[" not in run(source).stderr
    assert b"\x1b[2K" not in on_a_terminal("-q", str(source))
