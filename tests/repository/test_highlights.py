"""The figures of the README are those of the kept runs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_that_of_the_kept_runs() -> None:
    program = ROOT / "benchmarks" / "highlights.py"
    told = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, text=True, check=True)
    assert len(told.stdout.splitlines()) > 2
    assert told.stdout in (ROOT / "README.md").read_text(encoding="utf-8")
