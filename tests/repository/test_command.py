"""The installed program, as a person would call it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import zveil

PROGRAM = Path(sys.executable).parent / "zveil"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, encoding="utf-8", timeout=120
    )


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert not done.stderr
    assert "Zero-delay anonymization" in done.stdout
    assert re.search(r"^  demo +\S", done.stdout, re.MULTILINE)


def test_help_of_a_command() -> None:
    done = run("demo", "--help")
    assert done.returncode == 0
    assert "--events" in done.stdout
    assert "default" in done.stdout


def test_version() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.split()[-1] == zveil.__version__


def count(name: str, shown: str) -> int:
    match = re.search(rf"^ *{name} +([\d,]+)", shown, re.MULTILINE)
    assert match, f"{name} is not shown"
    return int(match[1].replace(",", ""))


def test_demo_shows_events_counts_rate_and_the_next_command() -> None:
    done = run("demo", "--events", "20000")
    assert done.returncode == 0
    assert not done.stderr
    assert "\x1b[" not in done.stdout, "colours in a pipe"
    events = re.findall(r"^ +\d\d:\d\d:\d\d +user-\d+ +site-\S+ +(.+)$", done.stdout, re.MULTILINE)
    assert len(events) == 8
    assert any(outcome == "released" for outcome in events)
    assert any("veiled" in outcome for outcome in events)
    released, veiled = count("released", done.stdout), count("veiled", done.stdout)
    assert released > 0
    assert veiled > 0
    assert released + veiled == 20_000
    assert count("rate", done.stdout) > 0
    assert "events/s" in done.stdout
    assert "Next" in done.stdout


def next_commands(folder: Path, path: str) -> tuple[str, subprocess.CompletedProcess[str]]:
    """Give what the demo says to try next, and what comes of it when it is copied."""
    environment = os.environ | {"PATH": path}
    shown = subprocess.run(
        [PROGRAM, "demo", "--events", "20000"], capture_output=True, text=True, env=environment
    ).stdout
    lines = shown.partition("\nNext")[2].splitlines()[1:]
    copied = "\n".join(line.strip() for line in lines)
    done = subprocess.run(
        ["bash", "-euc", copied],  # noqa: S607  # whichever bash there is
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return copied, done


def test_the_commands_that_the_demo_names_work_when_they_are_copied(tmp_path: Path) -> None:
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    copied, done = next_commands(tmp_path, path)
    assert "zveil run" in copied
    assert done.returncode == 0, done.stderr
    left = (tmp_path / "released.csv").read_text(encoding="utf-8").splitlines()
    assert left[0] == "time,user,site"
    assert 1_000 < len(left) < 200_000
    assert not any("user-" in line for line in left[1:])


def test_they_work_too_where_the_shell_does_not_find_the_program(tmp_path: Path) -> None:
    others = [
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not (Path(folder) / "zveil").exists()
    ]
    copied, done = next_commands(tmp_path, os.pathsep.join(others))
    assert copied.startswith(str(PROGRAM))
    assert done.returncode == 0, done.stderr


def test_the_demo_saves_its_stream(tmp_path: Path) -> None:
    for name, first in (("a.csv", "time,user,site"), ("a.ndjson", '{"time":"2026-01-01T00:')):
        done = run("demo", "--events", "1000", "--save", str(tmp_path / name))
        assert done.returncode == 0
        assert name in done.stdout
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text.startswith(first)
        assert len(text.splitlines()) == 1_000 + (name == "a.csv")
    done = run("demo", "--save", str(tmp_path / "nowhere" / "a.csv"))
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "--help"],
        ["demo", "--events", "1000"],
        ["demo", "--events", "1000", "--save", "-"],
        ["completion", "bash"],
        ["run", "events.csv", "--dry-run", "-q"],
        ["run", "events.csv", "--dry-run", "--json"],
        ["run", "events.csv", "-z", "1", "-q"],
    ],
    ids=" ".join,
)
def test_a_reader_that_has_seen_enough_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("time,user,site\n2026-01-01,ada,a\n", encoding="utf-8")
    if arguments[:2] == ["run", "events.csv"]:
        arguments += ["--time", "time", "--user", "user", "--attribute", "site", "--window", "1h"]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [PROGRAM, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
    finally:
        os.close(writer)
    assert done.returncode == 0
    assert not done.stderr or arguments[-1] == "-"


def test_a_run_goes_on_where_nobody_listens_to_its_errors(tmp_path: Path) -> None:
    events = [f'{{"ts": {1767258000 + n}, "uid": {n}, "host": "a"}}' for n in range(5)]
    (tmp_path / "events.ndjson").write_text("\n".join(["no JSON", *events]), encoding="utf-8")
    options = "--time ts --user uid --attribute host -z 2 --window 1h"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [PROGRAM, "run", "events.ndjson", *options.split()],
            stdout=subprocess.PIPE,
            stderr=writer,
            text=True,
            cwd=tmp_path,
        )
    finally:
        os.close(writer)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 4


@pytest.mark.parametrize(
    ("arguments", "help_with"),
    [
        (["nonsense"], "nonsense"),
        (["--nonsense"], "--nonsense"),
        (["demo", "--events", "ten"], "--events"),
        (["demo", "--events", "1"], "--events"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(arguments: list[str], help_with: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert not done.stdout
    assert help_with in done.stderr
    assert "--help" in done.stderr or "-h" in done.stderr
    assert "Traceback" not in done.stderr
