"""The installed program, as a person would call it."""

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


def test_the_next_command_that_the_demo_names_gives_what_it_says() -> None:
    shown = run("demo", "--events", "20000").stdout.partition("Next")[2].splitlines()[1:]
    lines = [line.strip() for line in shown]
    code = [line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")]
    assert len(code) >= 2
    code[-1] = f"print({code[-1]})"
    done = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True)
    assert done.stdout.strip() == lines[-1], done.stderr


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
