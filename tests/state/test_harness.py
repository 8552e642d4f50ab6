"""The harness finds out programs that sync too little, too late, or not at all."""

import sys
from pathlib import Path
from random import Random

import pytest
from faults import Ended, needs_faults, run
from power import Shadow, Tree, look

pytestmark = needs_faults

# Saves as a run with a state does: output, then a snapshot beside, then its place; and a key of
# which the old one goes once the snapshot is there.
PROGRAM = """
import os, sys
fault, folder = sys.argv[1:]

def put(name, text):
    file = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(file, text.encode())
    if fault != "no sync of snapshots":
        os.fsync(file)
    os.close(file)

def sync_folder():
    if fault == "no sync of the folder":
        return
    file = os.open(folder, os.O_RDONLY)
    os.fsync(file)
    os.close(file)

def sync_output():
    if fault != "no sync of the output":
        os.fsync(output)

output = os.open(f"{folder}/output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
sync_folder()
for number in range(1, 3):
    os.write(output, b"one line of output\\n")
    if fault != "output after the snapshot":
        sync_output()
    put(f"key{number}", "key")
    sync_folder()
    put("beside", str(number))
    if not os.fork():
        os.replace(f"{folder}/beside", f"{folder}/state")
        if fault != "no sync of the rename":
            sync_folder()
        os._exit(0)
    os.wait()
    if fault == "output after the snapshot":
        sync_output()
    if number > 1:
        os.unlink(f"{folder}/key{number - 1}")
os.write(output, b"the end\\n")
"""


def is_sound(tree: Tree) -> bool:
    """Whether it could go on from there."""
    if "state" not in tree:
        return True
    told = (tree["state"].content or b"").decode()
    output = tree["output"].content if "output" in tree else b""
    if not told or output is None or output.count(b"\n") < int(told):
        return False
    return f"key{told}" in tree and tree[f"key{told}"].content == b"key"


def lost(place: Path, fault: str, at: int) -> tuple[Ended, list[str]]:
    """Kill it at a step; which losses of power it could not go on from."""
    folder, scratch = place / f"{at}" / "folder", place / f"{at}" / "scratch"
    for each in (folder, scratch):
        each.mkdir(parents=True)
    shadow = Shadow(folder, scratch / "shadow")
    ended = run(
        folder, scratch, [fault, folder], program=[sys.executable, "-S", "-c", PROGRAM],
        shadow=shadow.place, at=at, do="kill",
    )  # fmt: skip
    assert is_sound(look(folder)), "a kill alone loses nothing that was written"
    found = [
        loss for seed in range(4) for loss, tree in shadow.losses(Random(seed))
        if not is_sound(tree)
    ]  # fmt: skip
    return ended, found


def is_found(place: Path, fault: str) -> bool:
    """Kill it at every step, the last first, until it is found out."""
    ended, _ = lost(place, fault, 0)
    assert ended.code == 0, ended.said
    for at in range(len(ended.steps), 0, -1):
        killed, unsound = lost(place, fault, at)
        assert killed.is_killed
        assert len(killed.steps) == at
        assert killed.steps[-1].is_hit
        if unsound:
            return True
    return False


def test_a_program_that_syncs_in_order_loses_nothing(tmp_path: Path) -> None:
    assert not is_found(tmp_path, "none")


@pytest.mark.parametrize(
    "fault",
    ["no sync of the output", "no sync of snapshots", "no sync of the folder",
     "no sync of the rename", "output after the snapshot"],
)  # fmt: skip
def test_a_program_that_does_not_is_found_out(tmp_path: Path, fault: str) -> None:
    assert is_found(tmp_path, fault)


@pytest.mark.parametrize(("do", "code"), [("eio", 1), ("enospc", 1), ("torn", -9), ("short", 0)])
def test_a_step_fails_as_it_is_told(tmp_path: Path, do: str, code: int) -> None:
    folder, scratch = tmp_path / "folder", tmp_path / "scratch"
    for each in (folder, scratch):
        each.mkdir()
    program = [sys.executable, "-S", "-c", PROGRAM]
    steps = run(folder, scratch, ["none", folder], program=program).steps
    first = next(n for n, step in enumerate(steps, 1) if step.kind == "write")
    (folder / "output").unlink()
    ended = run(folder, scratch, ["none", folder], program=program, at=first, do=do)
    assert ended.code == code, ended.said
    assert ended.fired
    errors = {"eio": "Input/output error", "enospc": "No space left on device"}
    assert errors.get(do, "") in ended.said
    # Half of the nineteen bytes.
    written = (folder / "output").read_bytes()
    assert len(written) == {"torn": 9, "short": 9 + 19 + 8}.get(do, 0)
