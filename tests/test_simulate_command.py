"""`zveil simulate` as a person would call it."""

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from simulated import all_of

from zveil import Gate
from zveil.simulate import Scenario, isp_day

PROGRAM = Path(sys.executable).parent / "zveil"
DOCUMENT = Path(__file__).resolve().parents[1] / "docs/simulate.md"
SMALL = ["--users", "500", "--attributes", "50", "--windows", "4", "--rate", "0.3"]
SCENARIO = Scenario(users=500, attributes=50, windows=4, rate=0.3)
ENDLESS = ["--windows", "1000000"]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PROGRAM, "simulate", *arguments], capture_output=True, timeout=120)


def rows_of(scenario: Scenario) -> list[tuple[float, str, str]]:
    events = all_of(scenario.columns())
    return [
        (ms / 1000, f"user-{user:05}", f"site-{rank:05}.example")
        for ms, user, rank in zip(*(column.tolist() for column in events), strict=True)
    ]


def test_lines_are_the_events_of_the_scenario() -> None:
    done = run(*SMALL)
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    records = [json.loads(line) for line in lines]
    assert [(each["ts"], each["user"], each["site"]) for each in records] == rows_of(SCENARIO)
    assert all(
        re.match(r'\{"ts":\d{10}\.\d{3},"user":"user-\d{5}","site":"site-', x) for x in lines
    )
    assert re.match(rf"{len(lines):,} synthetic events: ", done.stderr.decode())
    assert run(*SMALL).stdout == done.stdout
    assert run(*SMALL, "--seed", "2").stdout != done.stdout


@pytest.mark.parametrize(("form", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_columns_of_text(form: str, delimiter: str) -> None:
    done = run(*SMALL, "--to", form, "--fields", 'when,the user,"site"', "--quiet")
    assert not done.stderr
    header, *rows = csv.reader(io.StringIO(done.stdout.decode()), delimiter=delimiter)
    assert header == ["when", "the user", '"site"']
    assert [(float(ts), user, site) for ts, user, site in rows] == rows_of(SCENARIO)


def test_keys_are_escaped() -> None:
    line = run(*SMALL, "--fields", 'a"b,c\\d,\u00fc').stdout.splitlines()[0]
    assert list(json.loads(line)) == ['a"b', "c\\d", "\u00fc"]


@pytest.mark.parametrize("name", ["day.parquet", "day.arrow", "day.arrows"])
def test_files_of_columns_say_that_they_are_synthetic(name: str, tmp_path: Path) -> None:
    done = run("--preset", "isp-day", "--windows", "1", "-o", tmp_path / name)
    assert done.returncode == 0
    assert not done.stdout
    assert b"synthetic stand-in" in done.stderr
    if name.endswith("parquet"):
        table = pq.read_table(tmp_path / name)
    elif name.endswith("arrows"):
        table = pa.ipc.open_stream(tmp_path / name).read_all()
    else:
        table = pa.ipc.open_file(tmp_path / name).read_all()
    assert table.schema.names == ["ts", "user", "site"]
    events = all_of(isp_day(windows=1).columns())
    assert table.num_rows == events.size
    assert np.array_equal(table["ts"].cast("int64").to_numpy(), events.time_ms * 1000)
    assert table["site"][0].as_py() == f"site-{events.rank[0]:06}.example"
    assert table.schema.metadata[b"title"].startswith(b"synthetic stand-in for the ISP day")
    assert b"no real person" in table.schema.metadata[b"synthetic"]


def test_packed_by_its_ending_and_in_a_format_by_name(tmp_path: Path) -> None:
    run(*SMALL, "-o", tmp_path / "s.csv.gz")
    plain = run(*SMALL, "--to", "csv").stdout
    assert gzip.decompress((tmp_path / "s.csv.gz").read_bytes()) == plain
    run(*SMALL, "-o", tmp_path / "s.txt", "--to", "csv")
    assert (tmp_path / "s.txt").read_bytes() == plain


def test_options_reach_the_scenario() -> None:
    text = run(
        *SMALL, "--class", "0.5:0.5", "--class", "0.5:2", "--diurnal", "--flash", "1h:10m:9:2",
        "--late", "20%:1m", "--start", "2021-03-04T05:00", "--window", "30m", "--exponent", "0.5",
        "--to", "csv",
    ).stdout.decode()  # fmt: skip
    rows = [line.split(",") for line in text.splitlines()[1:]]
    times = np.array([float(row[0]) for row in rows])
    assert times.min() >= 1_614_834_000
    assert times.max() < 1_614_834_000 + 2 * 3600
    assert (np.diff(times) < 0).any()
    assert sum(row[1] > "user-00250" for row in rows) > 3 * sum(
        row[1] <= "user-00250" for row in rows
    )
    is_flash = (times >= 1_614_837_600) & (times < 1_614_838_200)
    share = np.array([row[2] == "site-00002.example" for row in rows])
    assert share[is_flash].mean() > 4 * share[~is_flash].mean()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--users", "0"], "--users: expected a whole number from 1"),
        (["--users", "many"], "--users"),
        (["--class", "0.5:2"], "--class: expected shares that make 1, got 0.5"),
        (["--flash", "6h"], "--flash: expected AT:DURATION:FACTOR"),
        (["--late", "5%"], "--late: expected SHARE:MEAN"),
        (["--diurnal", "2"], "--diurnal: expected a depth from 0 to 1, got 2.0"),
        (["--window", "1x"], "--window: expected a duration"),
        (["--start", "soon"], "--start: expected whole Unix seconds"),
        (["--start", "1970-01-01"], "--start: expected a whole number from 1,000,000,000"),
        (["--fields", "a,b"], "--fields: expected three names"),
        (["--fields", "a,a,b"], "--fields: expected three names"),
        (["--preset", "isp-day", "--rate", "1"], "--rate: isp-day has its own"),
        (["--preset", "home"], "--preset"),
        (["--to", "xml"], "--to"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert not done.stdout
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    done = run(*SMALL, "-o", tmp_path / "nowhere" / "s.csv")
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: ")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["ndjson", "csv", "arrow", "parquet"])
def test_a_closed_pipe_is_no_error(form: str) -> None:
    command = [PROGRAM, "simulate", *ENDLESS, "--to", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(1)) == 1
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(60) == 0
    assert b"ended early: closed pipe" in told
    assert b"Traceback" not in told


@pytest.mark.parametrize(
    ("name", "number"), [("s.parquet", signal.SIGINT), ("s.csv", signal.SIGTERM)]
)
def test_a_signal_leaves_a_whole_file(name: str, number: int, tmp_path: Path) -> None:
    file = tmp_path / name
    command = [PROGRAM, "simulate", *ENDLESS, "-o", file]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 60
        while not (file.exists() and file.stat().st_size > 1_000_000):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.stderr is not None
        told = process.stderr.read().decode()
        assert process.wait(60) == 128 + number
    count = int(told.split()[0].replace(",", ""))
    assert "ended early: signal" in told
    assert "Traceback" not in told
    if name.endswith("parquet"):
        assert pq.read_metadata(file).num_rows == count
    else:
        text = file.read_bytes()
        assert text.endswith(b"\n")
        assert text.count(b"\n") == count + 1


def peak_kib(*arguments: str) -> int:
    command = [PROGRAM, "simulate", *arguments]
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(command, stdout=nothing, stderr=nothing)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in another unit elsewhere")
@pytest.mark.parametrize("form", ["ndjson", "parquet"])
def test_memory_does_not_grow_with_the_stream(form: str) -> None:
    uneven = ["--diurnal", "--late", "1%:1m", "--to", form]
    # Long enough that even Parquet has written a row group or two.
    short, long = (peak_kib("--windows", windows, *uneven) for windows in ("60", "180"))
    assert long < short * 1.1 + 8_000


def test_a_stream_goes_through_a_run() -> None:
    made = run(*SMALL, "--late", "10%:1m", "-q")
    command = [PROGRAM, "run", "--time", "ts", "--user", "user", "--attribute", "site"]
    command += ["-z", "20", "--window", "30m", "--raw-users", "--json"]
    done = subprocess.run(command, input=made.stdout, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = made.stdout.splitlines()
    records = [json.loads(line) for line in lines]
    columns = ([each[name] for each in records] for name in ("ts", "user", "site"))
    mask = Gate(20, "30m").observe_many(*columns)
    summary = json.loads(done.stderr)
    assert summary["records"] == len(lines)
    assert summary["released"] == mask.sum()
    assert 0 < mask.sum() < len(mask)
    assert done.stdout.splitlines() == [line for line, out in zip(lines, mask, strict=True) if out]


def pipelines() -> list[str]:
    """Give the commands of the document that are for a shell."""
    if not DOCUMENT.exists():  # tests without the source beside them
        return []
    found = re.findall(r"^```text\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.M | re.S)
    return [line for block in found for line in block.splitlines()]


@pytest.mark.parametrize("command", pipelines())
def test_commands_of_the_document_work(command: str, tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"}
    script = f"set -o pipefail; {command}"
    done = subprocess.run(
        ["bash", "-euc", script],  # noqa: S607  # whichever bash there is
        cwd=tmp_path, env=environment, capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = done.stdout + b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert len(made) > 100


def test_the_document_tells_every_option() -> None:
    if not DOCUMENT.exists():
        pytest.skip("no documents beside the tests")
    text = DOCUMENT.read_text("utf-8")
    options = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", run("--help").stdout.decode(), re.M))
    assert len(options) > 12
    assert not [name for name in options - {"--help", "--output"} if name not in text]
