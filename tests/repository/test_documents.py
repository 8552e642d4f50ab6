"""The documents: every Python block and command in them is run, every link leads somewhere."""

import doctest
import re
import shlex
import subprocess
import sys
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
    ROOT / "tests/conformance/README.md",
]

# A block of any other kind would be neither run nor known to be for reading only.
RUN = {"python", "sh", "console"}
READ = {"text", "json"}

MACHINES = re.compile(
    r"""(?<![\w.])/(?:home|root|Users|work|tmp|var|mnt|opt|srv)(?:/|\b)  # a folder of one machine
    | \b[A-Za-z]:\\\w                                                    # a drive
    | file://
    | \b(?:localhost|\d{1,3}(?:\.\d{1,3}){3})\b                          # an address
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


@pytest.mark.parametrize("document", MANUAL, ids=by_name)
def test_python_blocks_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(document):
        if block.kind == "python":
            run_python(block, document, namespace)


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


def check_command(command: str) -> None:
    """Run a command if it is zveil's own; otherwise see that what it asks for is there."""
    words = shlex.split(command, comments=True)
    match words:
        case ["make", *rest]:
            targets = [word for word in rest if "=" not in word]
            assert targets, command
            assert set(targets) <= make_targets(), command
        case ["zveil", *arguments]:
            program = Path(sys.executable).parent / "zveil"
            done = subprocess.run([program, *arguments], capture_output=True, timeout=120)
            assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
            assert done.stdout, command
        case ["pip", "install", "."]:
            assert (ROOT / "pyproject.toml").is_file()
        case _:
            pytest.fail(f"no check is known for {command!r}: add one")


def commands(block: Block) -> list[str]:
    """Give the commands of a block; in a console block only what follows a prompt is one."""
    lines = block.text.splitlines()
    if block.kind == "console":
        assert any(line.startswith("$ ") for line in lines), f"line {block.line}: no prompt"
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in lines if line.strip()]


COMMANDS = [
    pytest.param(command, id=f"{by_name(document)}:{block.line}: {command}")
    for document in DOCUMENTS
    for block in blocks(document)
    if block.kind in {"sh", "console"}
    for command in commands(block)
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_work(command: str) -> None:
    check_command(command)


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


def first_screen() -> list[list[str]]:
    """Give the rows of the README's first table, which is within its first 40 lines."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    start = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    rows = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_the_events_of_the_first_screen_are_what_the_gate_answers() -> None:
    rows = first_screen()
    assert len(rows) == 4
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (z,) = re.findall(r"with z = (\d+) and a window of one hour:", text)
    gate = Gate(z=int(z), window="1h")
    seen: dict[str, set[str]] = {}
    for time, user, value, outcome, why in rows:
        moment = datetime.strptime(f"2026-01-01 {time}+0000", "%Y-%m-%d %H:%M%z")
        released = gate.observe(moment, user, value)
        assert outcome == ("released" if released else "veiled"), (time, user, value)
        seen.setdefault(value, set()).add(user)
        assert int(why.split()[0]) == len(seen[value]), (time, user, value)
    assert {row[3] for row in rows} == {"released", "veiled"}


def test_the_first_screen_has_the_first_command_and_the_first_lines() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    assert "make demo" in lines
    assert "from zveil import Gate" in lines
