"""`zveil plan` from a trace, through the installed program: formats, figures, words, errors."""

import csv
import gzip
import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from program import FIELDS, PROGRAM
from simulated import all_of

from zveil.model import Trace, plan_trace
from zveil.simulate import Scenario, UserClass

PLANTED = "planted-who-must-not-be-shown"
KEYS = {"z", "p_k", "count", "released", "horizon", "options", "measured"}


def zveil(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "plan", *arguments], capture_output=True, text=True, encoding="utf-8",
        timeout=120, **options,
    )  # fmt: skip


def answer(*arguments: str | Path, **options: Any) -> dict[str, Any]:
    done = zveil(*arguments, "--json", **options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows_of(scenario: Scenario) -> list[dict[str, Any]]:
    events = all_of(scenario.columns())
    return [
        {"ts": int(t), "uid": f"u{u}", "host": f"site{rank}"}
        for t, u, rank in zip(*(column.tolist() for column in events), strict=True)
    ]


ALIKE = Scenario(users=2_000, attributes=100, windows=5, seed=2)
MIXED = Scenario(
    users=2_000, attributes=100, windows=7,
    classes=(UserClass(0.9, 0.5), UserClass(0.1, 8)),
)  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        if ".csv" in path.name:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plan")


@pytest.fixture(scope="module")
def alike(folder: Path) -> Path:
    return write(folder / "alike.ndjson", rows_of(ALIKE))


@pytest.fixture(scope="module")
def mixed(folder: Path) -> Path:
    return write(folder / "mixed.csv", rows_of(MIXED))


@pytest.fixture(scope="module")
def figures(alike: Path) -> dict[str, Any]:
    return answer(alike, *FIELDS, "--window", "1h", "--horizon", "4")


def test_the_keys_that_stay(figures: dict[str, Any]) -> None:
    assert set(figures) >= KEYS
    for option in figures["options"]:
        assert set(option) == {"rotate_every", "z", "p_k", "released"}
    measured = figures["measured"]
    assert measured["model_holds"] is True
    assert measured["z"] == figures["z"]
    assert measured["p_k"] == pytest.approx(figures["p_k"], abs=0.03)
    assert measured["released"] == pytest.approx(figures["released"], abs=0.02)
    assert (measured["windows"], measured["warm_up"], measured["window_s"]) == (4, 1, 3600)
    assert (measured["bad"], measured["incomplete"], measured["future"]) == (0, 0, 0)
    assert measured["observations"] == len(rows_of(ALIKE))
    assert [each["rotate_every"] for each in measured["options"]] == [
        each["rotate_every"] for each in figures["options"]
    ]


def test_the_figures_are_those_of_the_library(figures: dict[str, Any]) -> None:
    trace = Trace.of_columns(*all_of(ALIKE.columns()), window="1h", time_unit="ms")
    found = plan_trace(trace, horizon=4)
    assert figures["z"] == found.kept.z if found.kept else None
    assert [each["z"] for each in figures["options"]] == [each.z for each in found.options]
    assert [each["p_k"] for each in figures["measured"]["options"]] == [
        each.p_k for each in found.measured
    ]


@pytest.mark.parametrize("name", ["again.csv.gz", "again.parquet"])
def test_every_format_gives_the_same(name: str, tmp_path: Path, figures: dict[str, Any]) -> None:
    source = write(tmp_path / name, rows_of(ALIKE))
    assert answer(source, *FIELDS, "--horizon", "4", "--time-format", "ms") == figures


def test_standard_input_a_glob_and_a_directory(
    tmp_path: Path, alike: Path, figures: dict[str, Any]
) -> None:
    with alike.open("rb") as file:
        assert answer(*FIELDS, "--horizon", "4", stdin=file) == figures
    rows = rows_of(ALIKE)
    write(tmp_path / "1.ndjson", rows[:1_000])
    write(tmp_path / "2.ndjson", rows[1_000:])
    for files in (tmp_path, tmp_path / "*.ndjson"):
        assert answer(files, *FIELDS, "--horizon", "4") == figures


def test_a_trace_that_speaks_against_the_model(mixed: Path) -> None:
    found = answer(mixed, *FIELDS, "--horizon", "6")
    measured = found["measured"]
    assert measured["model_holds"] is False
    assert (found["z"], found["p_k"]) == (measured["z"], measured["p_k"])
    assert found["p_k"] >= 0.95
    short = [option for option in measured["model"] if option["falls_short"]]
    assert short
    for option in short:
        assert option["p_k"] >= 0.95 > option["measured"]["p_k_high"]
    shown = zveil(mixed, *FIELDS, "--horizon", "6").stdout
    assert "falls short" in shown
    assert re.search(r"the trace says: p_2 = 0\.\d+ at z = .*; the model said: 0\.95", shown)
    assert f"with ids that stay: z = {found['z']}, " in shown
    assert "independent and alike;" not in shown


def test_model_and_measurement_side_by_side(alike: Path) -> None:
    done = zveil(alike, *FIELDS, "--horizon", "8")
    assert done.returncode == 0
    assert not done.stderr
    assert re.search(r"p_2 model +measured +released model +measured$", done.stdout, re.MULTILINE)
    row = re.search(r"^ +4 windows +\d+ +0\.95\d+ +0\.9\d+ +\d+\.\d% +\d+\.\d%$", done.stdout, re.M)
    assert row
    assert "only 4 windows of 8 could be checked" in done.stdout
    assert "measured over 4 windows" in done.stdout
    assert "without the first (the gate begins empty)" in done.stdout
    assert done.stdout.count("advice:") == 1


def test_fields_are_name_spaces_of_their_own(tmp_path: Path) -> None:
    rows = [row | {"page": row["host"]} for row in rows_of(ALIKE)]
    found = answer(
        write(tmp_path / "two.ndjson", rows), *FIELDS, "--attribute", "page", "--horizon", "1"
    )["measured"]
    assert found["observations"] == 2 * len(rows)
    assert found["attributes"] == 2 * len({row["host"] for row in rows})


def test_bad_lines_are_counted_and_never_shown(tmp_path: Path) -> None:
    source = write(tmp_path / "events.ndjson", rows_of(ALIKE))
    with source.open("a", encoding="utf-8") as file:
        file.write(f'{{"ts": 1577840000000, "uid": "{PLANTED}"\n{PLANTED}\n')
        file.write(json.dumps({"ts": 1577840000000, "uid": None, "host": PLANTED}) + "\n")
        file.write(json.dumps({"ts": 4_000_000_000_000, "uid": PLANTED, "host": PLANTED}) + "\n")
    done = zveil(source, *FIELDS, "--horizon", "1")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "bad lines, left out: 2",
        "values without a time or a user, left out: 1",
        "values from more than a day ahead, left out: 1",
    ]
    assert PLANTED not in done.stdout + done.stderr
    assert not zveil(source, *FIELDS, "--horizon", "1", "-q").stderr
    found = answer(source, *FIELDS, "--horizon", "1")["measured"]
    assert (found["bad"], found["incomplete"], found["future"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--users", "5"], 2, "--users: describes users without events"),
        (["--attributes", "5"], 2, "--attributes: describes users without events"),
        (["--rate", "0.05"], 2, "--rate: describes"),
        (["--exponent", "1"], 2, "--exponent: describes"),
        (["--window", "soon"], 2, "--window: expected a duration"),
        (["--window", "0"], 2, "--window: expected a duration above 0"),
        (["--probability", "1"], 2, "--probability: expected a number above 0 and below 1"),
        (["--horizon", "0"], 2, "--horizon: expected a finite number above 0"),
        (["-k", "5000"], 2, "-k: expected at most the number of users"),
        (["-k", "900", "--probability", "0.999"], 2, "Nor does any z measure up on the trace"),
        (["--attribute", "hots"], 2, "there is no field 'hots'. Did you mean 'host'?"),
        (["--attribute", "uid"], 2, "--attribute: 'uid' is the user already"),
        (["nothing.csv"], 2, "nothing.csv: no such file"),
        (["--time-format", "iso"], 3, "no event could be read"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    mixed: Path, options: list[str], code: int, words: str
) -> None:
    done = zveil(mixed, *FIELDS, "--horizon", "2", *options)
    assert done.returncode == code
    assert not done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("missing", ["--time", "--user", "--attribute"])
def test_fields_are_asked_for(mixed: Path, missing: str) -> None:
    at = FIELDS.index(missing)
    done = zveil(mixed, *FIELDS[:at], *FIELDS[at + 2 :])
    assert done.returncode == 2
    assert f"Missing option '{missing}'" in done.stderr


def test_a_duration_needs_events() -> None:
    done = zveil("--window", "1h")
    assert done.returncode == 2
    assert "--window: expected a number of units of time, got '1h'" in done.stderr
    assert answer("--window", "2", "--users", "2000", "--attributes", "50", "--horizon", "1")["z"]


def test_nothing_to_plan_from(tmp_path: Path) -> None:
    source = write(tmp_path / "empty.csv", [{"ts": 1577840000000, "uid": PLANTED, "host": ""}])
    done = zveil(source, *FIELDS)
    assert done.returncode == 3
    assert "no event has a time, a user and a value" in done.stderr
    assert PLANTED not in done.stderr


def test_who_watches_sees_how_far_it_is(mixed: Path) -> None:
    ours, theirs = pty.openpty()
    subprocess.run(
        [PROGRAM, "plan", mixed, *FIELDS, "--horizon", "2"], stderr=theirs,
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    for words in ("reading events", "planning", "checking on the trace", "measuring on the trace"):
        assert words in shown
    assert shown.endswith("\r\x1b[2K")
