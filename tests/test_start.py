"""What is loaded when the program starts: each command what it needs, and no more."""

import subprocess
import sys
from pathlib import Path

from program import FIELDS, line, zveil

_LOADED = """
import sys
from zveil.cli import main
try:
    main(sys.argv[1:])
except SystemExit as ending:
    assert not ending.code
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
"""

_PARTS = ("audit", "events", "figures", "model", "simulate")


def loaded(*arguments: str | Path) -> set[str]:
    """Give the modules that are there once the program has done this."""
    command = [sys.executable, "-c", _LOADED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines())


def test_to_know_all_commands_nothing_large_is_loaded() -> None:
    found = loaded("--help")
    assert {"zveil.cli.audit", "zveil.cli.flink", "zveil.cli.run"} <= found
    assert not {"numpy", "scipy", "matplotlib", "pyarrow"} & found
    assert not {f"zveil.{part}" for part in _PARTS} & found


def test_a_run_loads_no_other_command_and_no_library_that_it_has_no_use_for(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    source.write_bytes(line(1_700_000_000, "ada", "example.org"))
    found = loaded("run", *FIELDS, "-z", "1", "--window", "1h", "-q", source)
    assert "zveil.cli.run" in found
    assert not {"zveil.cli.audit", "zveil.cli.kafka", "zveil.cli.serve"} & found
    assert not {"numpy", "pyarrow", "zstandard", "fractions"} & found


def test_a_misspelt_command_is_answered_with_the_one_that_was_meant() -> None:
    done = zveil("rnu")
    assert done.returncode == 2
    assert b"'run'" in done.stderr
