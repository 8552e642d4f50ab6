"""Documents about engines: their commands are run, on the broker."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from broker import Address
from test_documents import ON_A_BROKER, blocks, check_setup, is_setup, scripts, settled

ADDRESS = "localhost:9092"
PATIENCE_S = 240


def printed_by(script: str, folder: Path) -> str:
    """Run commands as a person would type them into one window, where workers may go on."""
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    output = folder / "printed"
    with output.open("wb") as file:
        started = subprocess.Popen(
            ["bash", "-euc", script],  # noqa: S607  # whichever bash there is
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        started.wait(PATIENCE_S)
    finally:
        # What it left running in the background, too.
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    printed = output.read_text(encoding="utf-8")
    assert started.returncode == 0, printed
    return printed


@pytest.mark.parametrize("document", ON_A_BROKER, ids=lambda document: document.name)
def test_blocks_run_and_print_what_is_said(document: Path, broker: Address, tmp_path: Path) -> None:
    assert not [block for block in blocks(document) if block.kind == "python"]
    typed, wanted = [], {}
    for block, output in scripts(document):
        if is_setup(block):
            for command in block.text.splitlines():
                check_setup(command)
            continue
        typed.append(f"echo 'line {block.line}:'\n{block.text}\n")
        if output is not None:
            wanted[block.line] = output.text
    printed = printed_by("".join(typed).replace(ADDRESS, broker.bootstrap), tmp_path)
    parts = re.split(r"^line (\d+):\n", printed, flags=re.MULTILINE)[1:]
    found = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    assert len(found) == len(typed)
    for line, text in wanted.items():
        assert settled(found[line]).strip() == settled(text).strip(), f"line {line}"
