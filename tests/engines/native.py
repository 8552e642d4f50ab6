"""`zveil run` as an engine: the first that the suite is put to."""

import subprocess
import sys
from pathlib import Path

from cases import Case, Told
from suite import TABLE, TREE_CSV

PROGRAM = Path(sys.executable).parent / "zveil"
PATIENCE_S = 60


def policy_file(case: Case, folder: Path) -> Path:
    """Write the policy of a case, and the table that it may ask for."""
    (folder / TABLE).write_text(TREE_CSV, encoding="utf-8")
    file = folder / "zveil.toml"
    file.write_text(case.policy(), encoding="utf-8")
    return file


def told(case: Case, folder: Path, *options: str) -> Told:
    """Run the installed program over the records."""
    events = folder / "events.ndjson"
    events.write_bytes(b"".join(line + b"\n" for line in case.lines()))
    done = subprocess.run(
        [PROGRAM, "run", events, "--policy", policy_file(case, folder), "-q", *options],
        capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return case.read(done.stdout.splitlines())
