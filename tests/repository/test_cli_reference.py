"""The reference of the command line is what the commands say; the guide to `run` is complete."""

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from zveil.cli import main
from zveil.cli.run import run
from zveil.meter import Meter
from zveil.summary import Keeping, Measured, Outcome, Rung, Summary

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/cli.md"
GUIDE = ROOT / "docs/run.md"

HEAD = """\
# Commands

What each command says of itself with `--help`. This page is made from the commands. The
[guide to `zveil run`](run.md) has examples.
"""


def help_of(*command: str) -> str:
    program = Path(sys.executable).parent / "zveil"
    done = subprocess.run(
        [program, *command, "--help"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    return done.stdout


def commands(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Give the words of every command, a group before those in it."""
    for name, command in group.commands.items():
        yield (*above, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*above, name))


def reference() -> str:
    sections = [HEAD]
    for command in ((), *commands(main)):
        name = " ".join(("zveil", *command))
        sections.append(f"## `{name}`\n\n```text\n{help_of(*command)}```\n")
    return "\n".join(sections)


def test_the_reference_is_what_the_commands_say() -> None:
    """Renew it with ZVEIL_RENEW=1 in the environment."""
    said = reference()
    if os.environ.get("ZVEIL_RENEW"):
        REFERENCE.write_text(said, encoding="utf-8")
    assert REFERENCE.read_text(encoding="utf-8") == said, "renew it: see CONTRIBUTING.md"


def options(command: click.Command) -> set[str]:
    """Give the names of a command's options, those with two dashes where they have one."""
    if isinstance(command, click.Group):
        below = set().union(*map(options, command.commands.values()))
    else:
        below = set()
    every = [param.opts for param in command.params if isinstance(param, click.Option)]
    return below | {max(names, key=len) for names in every}


def test_the_guide_lists_every_option_and_no_other() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    section = text.partition("## Options")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(?:-\w`, `)?(--?[a-z-]+)[^`]*`(?: \*)? \|", section, re.MULTILINE)
    assert sorted(listed) == sorted(options(run))


def test_short_names_are_listed_too() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    short = {name for param in run.params for name in param.opts if re.fullmatch(r"-\w", name)}
    assert not {name for name in short if f"`{name}" not in text}


def test_the_guide_and_the_readme_name_no_option_that_is_not_there() -> None:
    every = set().union(*(options(command) for command in main.commands.values()))
    every |= {"--help", "--version"}
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = document.read_text(encoding="utf-8")
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
        assert named <= every, document.name


def test_every_kind_of_bad_line_is_explained() -> None:
    problem = (ROOT / "rust/core/src/text/problem.rs").read_text(encoding="utf-8")
    kinds = re.findall(r'Problem::\w+ => "([a-z0-9-]+)",', problem)
    sentences = re.findall(r'Problem::\w+ => "([^"]* [^"]*)",', problem)
    assert len(kinds) == len(sentences) == 12
    text = GUIDE.read_text(encoding="utf-8")
    for kind, sentence in zip(kinds, sentences, strict=True):
        assert f"| `{kind}` | {sentence} |" in text


def test_every_key_of_the_summary_is_explained() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    table = text.partition("| key | meaning |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    named = [name for cell, _ in cells for name in re.findall(r"`(\w+)`", cell)]
    measured = Measured.of(Meter())
    whole = Summary(policy="0", repeated=0, state=Keeping(), meter=measured, hold={})
    assert sorted(named) == sorted(whole.as_dict())
    meanings = {cell.strip(" `"): meaning for cell, meaning in cells}
    for key, part in (("outcomes", Outcome), ("rungs", Rung), ("state", Keeping)):
        fields = [field.name for field in dataclasses.fields(part)]
        assert re.findall(r"`(\w+)`", meanings[key]) == fields


@pytest.mark.parametrize("name", ["README.md", "docs/api.md"])
def test_the_reference_can_be_found(name: str) -> None:
    assert "cli.md)" in (ROOT / name).read_text(encoding="utf-8")
