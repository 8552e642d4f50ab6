"""Help, output and messages, byte by byte as they were last looked at.

The files in `golden` are renewed by `ZVEIL_RENEW_GOLDEN=1 python -m pytest tests/test_golden.py`,
and by nothing else; the tests fail then, so that nobody renews them without noticing. Look at what
changed before it goes in.
"""

import os
import re
from pathlib import Path

import pytest
from events import KEY
from program import FIELDS, zveil

GOLDEN = Path(__file__).parent / "golden"
RENEW = "ZVEIL_RENEW_GOLDEN"
INPUTS = {
    "events.ndjson",
    "events.csv",
    "bad.ndjson",
    "ssl.log",
    "access.log",
    "dnsmasq.log",
    "top.csv",
}

RULE = [*FIELDS, "-z", "2", "--window", "1h"]
RUNS = {
    "drop": [*RULE, "events.ndjson"],
    "blank": [*RULE, "--veiled", "blank", "--keep", "*", "events.ndjson"],
    "two": [*RULE, "--attribute", "page.path", "--to", "csv", "events.ndjson"],
    "csv": [*RULE, "--keep", "note", "events.csv"],
    "csv-to-ndjson": [*RULE, "--keep", "*", "--to", "ndjson", "events.csv"],
    "bad": [*RULE, "bad.ndjson"],
    "stop": [*RULE, "--on-error", "stop", "bad.ndjson"],
    "trial": [*FIELDS, "--window", "1h", "--dry-run", "events.ndjson"],
    "zeek": ["-z", "2", "--window", "1h", "--format", "zeek-ssl", "--only", "top.csv", "ssl.log"],
    "combined": [
        "-z",
        "2",
        "--window",
        "1h",
        "--format",
        "combined",
        "--keep",
        "status",
        "--to",
        "csv",
        "access.log",
    ],
    "dnsmasq": [
        "-z",
        "2",
        "--window",
        "1h",
        "--format",
        "dnsmasq",
        "--year",
        "2024",
        "dnsmasq.log",
    ],
    "misspelt": [*RULE, "--attribute", "hots", "events.csv"],
}


def compare(**found: bytes) -> None:
    """Compare with the files of these names, whose last _ is the dot."""
    files = {GOLDEN / ".".join(name.rsplit("_", 1)): held for name, held in found.items()}
    if os.environ.get(RENEW) == "1":
        for path, held in files.items():
            path.write_bytes(held)
        pytest.fail(f"written anew; look at it, and run without {RENEW}")
    for path, held in files.items():
        assert path.read_bytes() == held, f"if this is meant: {RENEW}=1, see the top of the test"


@pytest.mark.parametrize("command", ["", "run"])
def test_help(command: str) -> None:
    done = zveil(*command.split(), "--help", env={"COLUMNS": "80", "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0
    compare(**{f"help{'-' + command if command else ''}_txt": done.stdout})


@pytest.mark.parametrize("name", RUNS)
def test_output_and_messages(name: str, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text(KEY.hex())
    done = zveil("run", "--key-file", key, *RUNS[name], cwd=GOLDEN)
    # How long it took is the one thing that differs from time to time.
    said = re.sub(rb"[\d.]+ s, [\d,]+ events/s", b"(time), (rate)", done.stderr)
    said += b"exit code %d\n" % done.returncode
    compare(**{f"{name}_stdout": done.stdout, f"{name}_stderr": said})


def test_no_file_is_left_over() -> None:
    made = {f"{name}.{end}" for name in RUNS for end in ("stdout", "stderr")}
    assert {path.name for path in GOLDEN.iterdir()} == made | INPUTS | {"help.txt", "help-run.txt"}


def test_golden_files_hold_no_user() -> None:
    for name in RUNS:
        for end in ("stdout", "stderr"):
            held = (GOLDEN / f"{name}.{end}").read_bytes()
            assert not re.search(rb"alice|bob|carol|dave", held), name
