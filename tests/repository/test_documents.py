"""The documents: every Python block and command in them is run, every link leads somewhere."""

import doctest
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from zveil import Gate

ROOT = Path(__file__).resolve().parents[2]
MANUAL = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS = [
    *MANUAL,
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / "benchmarks/README.md",
    ROOT / "benchmarks/engines/README.md",
    ROOT / "tests/conformance/README.md",
]
# These are run by `make test-engines`, which has the broker that they speak to.
ON_A_BROKER = [document for document in MANUAL if document.name == "kafka.md"]
# And these by `make test-spark`, which has Spark.
IN_SPARK = [document for document in MANUAL if document.name == "spark.md"]

# A block of any other kind would be neither run nor known to be for reading only. An output block
# is what the sh block before it prints, on standard output and standard error.
RUN = {"python", "sh", "output"}
READ = {"text", "json"}

MACHINES = re.compile(
    r"""(?<![\w.])/(?:home|root|Users|work|tmp|var|mnt|opt|srv)(?:/|\b)  # a folder of one machine
    | \b[A-Za-z]:\\\w                                                    # a drive
    | file://
    | \b(?!127\.0\.0\.1\b|0\.0\.0\.0\b)\d{1,3}(?:\.\d{1,3}){3}\b          # an address but the own
    """,
    re.VERBOSE,
)


class Block(NamedTuple):
    """A fenced block: the line its text begins at, what it is, and the text."""

    line: int
    kind: str
    text: str


def blocks(document: Path) -> list[Block]:
    """Cut the fenced blocks out of a document."""
    found: list[Block] = []
    lines: list[str] | None = None
    kind, first = "", 0
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if not line.lstrip().startswith("```"):
            if lines is not None:
                lines.append(line)
            continue
        assert line.startswith("```"), f"{document.name}:{number}: a fence must not be indented"
        if lines is None:
            lines, kind, first = [], line.removeprefix("```").strip(), number + 1
        else:
            assert line == "```", f"{document.name}:{number}: a fence within a fence"
            found.append(Block(first, kind, "\n".join(lines) + "\n"))
            lines = None
    assert lines is None, f"{document.name}:{first}: a fence is not closed"
    return found


def prose(document: Path) -> str:
    """Give a document without its blocks and code."""
    text = document.read_text(encoding="utf-8")
    return re.sub(r"`[^`\n]*`", "`", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M))


def by_name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=by_name)


def run_doctest(block: Block, document: Path, namespace: dict[str, Any]) -> None:
    place = f"{by_name(document)}:{block.line}"
    test = doctest.DocTestParser().get_doctest(
        block.text, namespace, place, str(document), block.line - 1
    )
    assert test.examples, f"{place}: a prompt but no example"
    skipped = [each for each in test.examples if doctest.SKIP in each.options]
    assert not skipped, f"{place}: an example is skipped"
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
    assert not failed, "".join(report)
    namespace.update(test.globs)


def run_python(block: Block, document: Path, namespace: dict[str, Any]) -> None:
    if ">>>" in block.text:
        run_doctest(block, document, namespace)
        return
    # Empty lines before it, so that a traceback shows the document's own line.
    code = compile("\n" * (block.line - 1) + block.text, str(document), "exec")
    exec(code, namespace)  # noqa: S102  # the project's own documents


def test_the_manual_has_python_to_run() -> None:
    counts = {
        by_name(document): sum(block.kind == "python" for block in blocks(document))
        for document in MANUAL
    }
    assert counts["README.md"] >= 1
    assert counts["docs/guarantees.md"] >= 3
    assert counts["docs/api.md"] >= 10


@every_document
def test_blocks_are_of_a_known_kind(document: Path) -> None:
    kinds = {block.kind for block in blocks(document)}
    assert kinds <= RUN | READ, f"label each block as one of {sorted(RUN | READ)}"
    assert document in MANUAL or "python" not in kinds, "only README and docs are run"


def make_targets() -> set[str]:
    rules = re.findall(r"^([a-z][a-z -]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return {target for rule in rules for target in rule.split()}


def check_setup(command: str) -> None:
    """See that what a command which sets something up asks for is there."""
    match shlex.split(command, comments=True):
        case ["make", *rest]:
            targets = [word for word in rest if "=" not in word]
            assert targets, command
            assert set(targets) <= make_targets(), command
        case ["pip", "install", "."]:
            assert (ROOT / "pyproject.toml").is_file()
        case _:
            pytest.fail(f"no check is known for {command!r}: add one")


def free_port() -> str:
    """Give a port for a service that a document starts: its own may be in use here."""
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return str(opened.getsockname()[1])


def run_shell(script: str, folder: Path, *, patience_s: float = 120) -> str:
    """Run commands as a person would type them; what they print."""
    programs = Path(sys.executable).parent
    port = free_port()
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "ZVEIL_PORT": port,
    }  # fmt: skip
    started = subprocess.Popen(
        ["bash", "-euc", script.replace("8117", port)],  # noqa: S607  # whichever bash there is
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        printed = started.communicate(timeout=patience_s)[0].decode()
    finally:
        # What it left running in the background, too.
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 0, f"{script}{printed}"
    return printed


def settled(printed: str) -> str:
    """Take out what differs from run to run: rates, and whose pseudonym is which letters."""
    printed = re.sub(r"[\d.]+ s, [\d,]+ events/s", "_ s, _ events/s", printed)
    printed = re.sub(r"[\d.]+ \w?B of state", "_ of state", printed)
    printed = re.sub(r'"(seconds|state_bytes)": [\d.]+', r'"\1": _', printed)
    names: dict[str, str] = {}
    pseudonym = re.compile(r"\b[a-z2-7]{20}\b")
    return pseudonym.sub(lambda m: names.setdefault(m[0], f"user {len(names)}"), printed)


def is_setup(block: Block) -> bool:
    return block.text.startswith(("make", "pip"))


def scripts(document: Path) -> list[tuple[Block, Block | None]]:
    """Give the sh blocks of a document, each with the output that is said to follow."""
    found = blocks(document)
    pairs = []
    for number, block in enumerate(found):
        output = next((each for each in found[number + 1 :][:1] if each.kind == "output"), None)
        assert output is None or block.kind == "sh", f"line {output.line}: an output of nothing"
        if block.kind == "sh":
            pairs.append((block, output))
    return pairs


@pytest.mark.parametrize(
    "document", [each for each in DOCUMENTS if each not in ON_A_BROKER + IN_SPARK], ids=by_name
)
def test_blocks_run_and_print_what_is_said(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order and in one folder: a block may use files that one before it made."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outputs = {block.line: output for block, output in scripts(document)}
    for block in blocks(document):
        if block.kind == "python":
            run_python(block, document, namespace)
        elif block.kind == "sh" and is_setup(block):
            for command in block.text.splitlines():
                check_setup(command)
        elif block.kind == "sh":
            printed = run_shell(block.text, tmp_path)
            if output := outputs[block.line]:
                assert settled(printed) == settled(output.text), f"line {output.line}"


def test_the_manual_has_commands_to_run() -> None:
    counts = {
        by_name(document): sum(not is_setup(block) for block, _ in scripts(document))
        for document in MANUAL
    }
    assert counts["README.md"] >= 1
    assert counts["docs/run.md"] >= 10


def test_the_check_of_output_can_fail() -> None:
    first, second = "abcdefghijkmnpqrstuv", "22223333444455556666"
    assert settled(f"{first} {first}") == settled(f"{second} {second}")
    assert settled(f"{first} {first}") != settled(f"{first} {second}")
    assert settled("4 events, 0.1 s, 7 events/s") == settled("4 events, 0.2 s, 1,000 events/s")
    assert settled("4 events") != settled("5 events")


@every_document
def test_make_targets_named_in_the_text_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = {
        word
        for rest in re.findall(r"`make ([^`\n]+)`", text)
        for word in rest.split()
        if "=" not in word
    }
    assert named <= make_targets()


def anchors(document: Path) -> set[str]:
    """Give the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@every_document
def test_relative_links_lead_to_files(document: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
        if re.match(r"[a-z]+:", link):
            assert link.startswith("https://"), link
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


@every_document
def test_no_path_or_address_of_a_machine(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert MACHINES.search(text) is None, MACHINES.search(text)


def test_the_check_for_machines_can_fail() -> None:
    for path in ("see /home/ada/x", "(/tmp/x)", r"C:\data", "file:///x", "at 10.0.0.7:80"):
        assert MACHINES.search(path), path
    for fine in ("zveil 0.1.0", "https://example.org/home/x", "src/tmp/x", "and/or"):
        assert not MACHINES.search(fine), fine


def test_the_first_screen_shows_events_a_command_what_comes_out_and_how_to_install() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:45]
    (script, output), *_ = scripts(ROOT / "README.md")
    assert "zveil run" in script.text
    assert output is not None
    assert output.line + len(output.text.splitlines()) <= len(lines)
    assert "make demo" in lines
    assert "pip install ." in lines


def test_the_first_events_of_the_readme_are_what_the_gate_answers() -> None:
    """The command and the first lines of Python tell the same story."""
    (script, output), *_ = scripts(ROOT / "README.md")
    assert output is not None
    (z,) = re.findall(r"-z (\d+)", script.text)
    events = re.findall(r"^(2\S+),(\w+),(\S+)$", script.text, re.MULTILINE)
    assert len(events) == 4
    gate = Gate(z=int(z), window="1h")
    released = [
        (time, site)
        for time, user, site in events
        if gate.observe(datetime.fromisoformat(f"{time}+00:00"), user, site)
    ]
    shown = re.findall(r"^(2\S+),\w+,(\S+)$", output.text, re.MULTILINE)
    assert shown == released
    assert 0 < len(released) < len(events)
