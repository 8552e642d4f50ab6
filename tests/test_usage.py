"""A wrong call is told what is wrong and what to do, and ends with 2."""

import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from program import run, zveil

ROW = {"ts": 1_700_000_000, "uid": "planted", "host": "planted.example", "page": {"path": "x"}}


def written(folder: Path, form: str) -> Path:
    path = folder / f"in.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist([ROW]), path)
    elif form == "csv":
        path.write_text("ts,uid,host,page\n1700000000,planted,planted.example,x\n")
    else:
        path.write_bytes(
            b'{"ts":1700000000,"uid":"planted","host":"planted.example","page":{"path":1}}\n'
        )
    return path


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize(
    ("option", "typed", "meant"), [("--time", "tss", "ts"), ("--attribute", "hots", "host")]
)
def test_a_misspelt_field_is_answered_with_the_fields_there_are(
    tmp_path: Path, form: str, option: str, typed: str, meant: str
) -> None:
    given = {"--time": "ts", "--user": "uid", "--attribute": "host", option: typed}
    words = [word for pair in given.items() for word in pair]
    done = zveil("run", *words, "-z", "2", "--window", "1h", written(tmp_path, form))
    told = done.stderr.decode()
    assert done.returncode == 2
    assert f"there is no field '{typed}'. Did you mean '{meant}'?" in told
    path = "page.path" if form == "ndjson" else "page"
    assert f"The fields there are: ts, uid, host, {path}" in told
    assert "planted" not in told
    assert not done.stdout


def test_a_misspelt_field_is_told_beside_lines_that_are_bad_otherwise(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    lacking = b'{"ts":1700000000,"uid":"planted","hots":"planted.example"}\n'
    source.write_bytes(3 * lacking + b"no json\n" + lacking[:20])
    done = run(source)
    assert done.returncode == 2
    assert b"there is no field 'host'. Did you mean 'hots'?" in done.stderr
    # Where most lines are no records at all, that is what is wrong.
    source.write_bytes(lacking + 5 * b"no json\n")
    done = run(source)
    assert done.returncode == 3
    assert b"all 6 lines are bad" in done.stderr
    assert b"planted" not in done.stderr


def test_of_many_fields_some_are_listed(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    many = ",".join(f'"field{number}":1' for number in range(500))
    source.write_text(f'{{{many},"ts":1700000000,"uid":1}}\n')
    told = run("-q", source).stderr.decode()
    assert "there is no field 'host'" in told
    assert "field39, and 462 more" in told


def test_a_file_with_no_line_in_it_is_no_mistake(tmp_path: Path) -> None:
    for name in ("in.ndjson", "in.csv"):
        (tmp_path / name).touch()
        done = run(tmp_path / name)
        assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--key-file", "nowhere.key"], "make one with: zveil key nowhere.key"),
        (["--attribute", "uid"], "--attribute: 'uid' is the user already"),
        (["--user", "ts"], "--user: 'ts' is the time already"),
        (["--attribute", "page.host", "--keep", "page"], "--keep: 'page' holds 'page.host'"),
        (["--window", "an hour"], "--window: expected a duration such as"),
        (["--lateness", "x"], "lateness: expected a duration"),
        (["--memory", "x"], "--memory: expected bytes, or a size"),
        (["--max-line", "x"], "--max-line: expected bytes, or a size"),
        (["--max-bad", "x"], "expected a share such as 5% or 0.05"),
        (["--max-bad", "101%"], "expected a share"),
        (["-z", "0"], "'-z'"),
        (["--veiled", "hide"], "'drop', 'blank'"),
        (["--to", "xml"], "'ndjson'"),
        (["nowhere.ndjson"], "nowhere.ndjson: no such file"),
        (["no-*.csv"], "no file matches"),
        (["-", "-"], "only once"),
    ],
)
def test_what_is_wrong_is_named(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.decode().replace("│", " ").split())
    assert b"Traceback" not in done.stderr
    assert not done.stdout


def test_z_may_be_left_out_for_a_trial_only(tmp_path: Path) -> None:
    source = written(tmp_path, "ndjson")
    fields = ["--time", "ts", "--user", "uid", "--attribute", "host", "--window", "1h", source]
    done = zveil("run", *fields)
    assert done.returncode == 2
    assert b"--dry-run" in done.stderr
    assert zveil("run", *fields, "--dry-run").returncode == 0


def test_an_unknown_format_asks_for_it(tmp_path: Path) -> None:
    source = tmp_path / "events.log"
    source.write_bytes(b"ts,uid,host\n")
    for arguments in ([source], []):
        done = run(*arguments, stdin=source.read_bytes())
        assert done.returncode in (1, 2)
        assert b"--format" in done.stderr
        assert b"csv" in done.stderr
    assert run("--format", "csv", source).returncode == 0


def test_a_star_cannot_become_columns(tmp_path: Path) -> None:
    done = run("--keep", "*", "--to", "csv", written(tmp_path, "ndjson"))
    assert done.returncode == 2
    assert b"--keep" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script(shell: str) -> None:
    done = zveil("completion", shell)
    assert done.returncode == 0
    assert b"_ZVEIL_COMPLETE" in done.stdout
    if shell == "bash":
        checked = subprocess.run(["/bin/bash", "-n"], input=done.stdout, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, b"")


def test_completion_knows_the_options() -> None:
    asked = {"_ZVEIL_COMPLETE": "bash_complete", "COMP_WORDS": "zveil run --on", "COMP_CWORD": "2"}
    done = zveil(env=asked)
    assert b"--on-error" in done.stdout
