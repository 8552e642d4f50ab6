"""The tables of docs/scaling.md are those that the kept run gives."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIZING = ROOT / "benchmarks" / "engines" / "sizing.py"


def test_the_tables_are_those_of_the_kept_run() -> None:
    told = subprocess.run([sys.executable, SIZING], stdout=subprocess.PIPE, text=True, check=True)
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    tables = told.stdout.strip().split("\n\n")
    assert len(tables) == 2
    for table in tables:
        assert table in page
