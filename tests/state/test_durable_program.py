"""The program itself with a state: killed, told to end, started again; pipes, ids and limits."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from events import objects
from program import FIELDS, PATIENCE_S, PROGRAM, RULE, Started, line, run, zveil

from zveil.keys import write_key
from zveil.state.error import StateError
from zveil.state.folder import Lock

T = 1_700_000_000


def events(count: int, first: int = 0) -> bytes:
    return b"".join(
        json.dumps({"ts": T + n, "uid": f"planted-{n % 5}", "host": "ab"[n % 2], "n": n}).encode()
        + b"\n"
        for n in range(first, first + count)
    )


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    write_key(path)
    return path


def shown(state: Path, *more: str | Path) -> dict[str, Any]:
    done = zveil("state", "show", state, "--json", *more)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends, "it does not come"
        time.sleep(0.02)


def is_saved(state: Path, count: int) -> bool:
    return (state / "state").exists() and shown(state)["events"] == count


def test_a_file_is_gone_on_with_after_a_kill(tmp_path: Path, key: Path) -> None:
    source, output, state = (tmp_path / name for name in ("in.ndjson", "out.ndjson", "state"))
    source.write_bytes(events(150_000))
    told = (source, "--key-file", key, "-q", "--keep", "n")
    wanted = run(*told).stdout
    for _ in range(3):
        with Started(*told, "-o", output, "--state", state, "--state-every", "0s") as going:
            before = (state / "state").stat().st_mtime_ns if (state / "state").exists() else 0
            until(
                lambda before=before: (
                    going.process.poll() is not None
                    or (
                        (state / "state").exists() and (state / "state").stat().st_mtime_ns > before
                    )
                )
            )
            going.process.kill()
            going.process.wait()
    done = run(*told, "-o", output, "--state", state)
    assert (done.returncode, done.stderr) == (0, b"")
    assert output.read_bytes() == wanted
    assert stat_mode(state) == 0o700


def stat_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_gap_of_a_pipe_is_stated(tmp_path: Path) -> None:
    output, state = tmp_path / "out.ndjson", tmp_path / "state"
    told = ("-o", output, "--state", state, "--state-every", "10ms", "--keep", "n")
    with Started(*told) as going:
        going.send(events(20))
        until(lambda: is_saved(state, 20))
        going.process.kill()
        going.process.wait()
    assert stat_mode(state / "key") == 0o600
    # What left before the kill stays, also a line that no state knows; half a line does not.
    whole = output.read_bytes()
    with output.open("ab") as file:
        file.write(b'{"ts":1,"uid":"x","host":"a","n":-1}\n{"ts":1')
    done = run(*told, "--json", stdin=events(20, first=80))
    assert done.returncode == 0
    *said, last = done.stderr.decode().splitlines()
    assert "a pipe cannot be rewound" in said[0]
    assert said[1] == "the first event is 1 min 1 s past the newest one before"
    summary = json.loads(last)
    assert summary["records"] == 40
    kept = summary["state"]
    assert kept["resumed"]
    assert kept["gap_event_seconds"] == 61
    assert kept["gap_seconds"] > 0
    found = [record["n"] for record in objects(output.read_bytes())]
    assert output.read_bytes().startswith(whole)
    # Who was there before counts: all of these leave at once.
    assert found == [*(record["n"] for record in objects(whole)), -1, *range(80, 100)]
    # Pseudonyms stay, under the state's own key.
    names = {record["n"] % 5: record["uid"] for record in objects(whole)}
    assert all(
        names[record["n"] % 5] == record["uid"] for record in objects(output.read_bytes())[-20:]
    )


def test_what_is_sent_again_is_decided_once(tmp_path: Path) -> None:
    output, state = tmp_path / "out.ndjson", tmp_path / "state"
    told = ("-o", output, "--state", state, "--state-every", "10ms", "--keep", "n", "--id", "n")
    with Started(*told) as going:
        going.send(events(20))
        until(lambda: is_saved(state, 20))
        going.process.kill()
        going.process.wait()
    done = run(*told, "--json", stdin=events(60))
    summary = json.loads(done.stderr.splitlines()[-1])
    assert (summary["records"], summary["repeated"]) == (60, 20)
    assert [record["n"] for record in objects(output.read_bytes())] == list(range(2, 60))


def test_a_signal_saves(tmp_path: Path) -> None:
    output, state = tmp_path / "out.ndjson", tmp_path / "state"
    told = ("-o", output, "--state", state, "--keep", "n")
    with Started(*told) as going:
        going.send(events(20))
        until(lambda: output.exists() and output.read_bytes().count(b"\n") == 18)
        going.process.send_signal(signal.SIGTERM)
        assert going.process.wait(PATIENCE_S) == 143
    assert shown(state)["events"] == 20
    done = run(*told, "-q", stdin=events(1, first=20))
    assert done.returncode == 0
    assert objects(output.read_bytes())[-1]["n"] == 20


def test_bad_input_that_ends_it_saves(tmp_path: Path) -> None:
    source, output, state = (tmp_path / name for name in ("in.ndjson", "out.ndjson", "state"))
    source.write_bytes(events(20) + b"bad\n" + events(20, first=20))
    told = (source, "-o", output, "--state", state, "--keep", "n", "-q")
    assert run(*told, "--on-error", "stop").returncode == 3
    assert shown(state)["events"] == 20
    assert run(*told, "--on-error", "skip").returncode == 0
    assert [record["n"] for record in objects(output.read_bytes())] == list(range(2, 40))


def test_into_a_pipe_it_is_at_least_once(tmp_path: Path, key: Path) -> None:
    source, state = tmp_path / "in.ndjson", tmp_path / "state"
    source.write_bytes(events(60_000))
    told = (source, "--key-file", key, "--state", state, "--state-every", "0s")
    wanted = run(source, "--key-file", key, "-q").stdout.splitlines()
    command = [PROGRAM, "run", *FIELDS, *RULE, *told, "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as going:
        assert going.stdout is not None
        first = [going.stdout.readline() for _ in range(5_000)]
        going.stdout.close()
        assert going.wait(PATIENCE_S) == 0
    done = run(*told)
    assert done.returncode == 0
    assert b"leaves again; only a file (-o) can be gone on with exactly" in done.stderr
    came = {*(each.rstrip() for each in first), *done.stdout.splitlines()}
    # What the reader did not take from the pipe is gone: of that only the pipe knows.
    assert came <= set(wanted)
    assert done.stdout.splitlines() == wanted[-len(done.stdout.splitlines()) :]


def test_a_header_comes_again_for_a_new_reader(tmp_path: Path) -> None:
    state = tmp_path / "state"
    told = ("--to", "csv", "--state", state, "-q")
    first = run(*told, stdin=events(6)).stdout
    second = run(*told, stdin=events(6, first=6)).stdout
    assert first.startswith(b"ts,uid,host\n")
    assert second.startswith(b"ts,uid,host\n")
    assert second.count(b"\n") == 7


def test_a_state_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    first = Lock(tmp_path)
    with pytest.raises(StateError, match=f"is in use by process {os.getpid()}; end that first"):
        Lock(tmp_path, patience_s=0.1)
    first.close()
    Lock(tmp_path, patience_s=0.0).close()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--state-reset",), "--state-reset: say which state"),
        (("--state", "s", "--dry-run"), "--state: a dry run leaves nothing behind"),
        (("--state", "s", "--state-every", "often"), "--state-every: expected a duration"),
        (("--state", "in.ndjson"), "is a file"),
    ],
)
def test_options_that_do_not_go_together(
    tmp_path: Path, more: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.ndjson").write_bytes(events(4))
    done = run("in.ndjson", *more)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert done.stdout == b""


def test_begun_anew_on_purpose_only(tmp_path: Path) -> None:
    source, output, state = (tmp_path / name for name in ("in.ndjson", "out.ndjson", "state"))
    source.write_bytes(events(10))
    told = (source, "-o", output, "--state", state)
    assert run(*told, "-q").returncode == 0
    held = (state / "state").read_bytes()
    (state / "state").write_bytes(held[: len(held) // 2])
    done = run(*told)
    assert done.returncode == 2
    assert b"cut off or was altered, or --state-reset starts anew" in done.stderr
    before = output.read_bytes()
    done = run(*told, "--state-reset")
    assert done.returncode == 2
    assert b"out.ndjson was written before, and would be overwritten" in done.stderr
    assert output.read_bytes() == before
    output.unlink()
    done = run(*told, "--state-reset")
    assert done.returncode == 0
    assert b"starting anew: a value is veiled until enough users have shown it" in done.stderr
    assert output.read_bytes() == before


@pytest.mark.parametrize("more", [(), ("--state-reset",)])
def test_a_folder_in_the_way(tmp_path: Path, more: tuple[str, ...]) -> None:
    source, state = tmp_path / "in.ndjson", tmp_path / "state"
    source.write_bytes(events(10))
    (state / "state").mkdir(parents=True)
    write_key(state / "key")
    done = run(source, "--state", state, "-q", *more)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(f"Error: {state / 'state'}: ".encode())


def test_a_last_save_that_fails_is_exit_code_1(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Started("--state", state, "-q") as going:
        going.send(events(10))
        assert going.line()
        # Nobody can rename a file onto a folder.
        (state / "state").mkdir()
        _, err = going.rest()
        assert going.process.returncode == 1
    assert b"warning: the state could not be saved to" in err
    assert b"Error: the state could not be saved at the end" in err


def test_most_values() -> None:
    data = b"".join(line(T + n, f"u{n % 3}", f"host-{n // 9}") for n in range(90))
    done = run("--max-attributes", "4", "--json", stdin=data)
    assert json.loads(done.stderr)["outcomes"][0]["refused"] == 54
    assert {record["host"] for record in objects(done.stdout)} == {f"host-{n}" for n in range(4)}
    shown = run("--max-attributes", "4", stdin=data).stderr.decode()
    assert "(met the limit of memory or values)" in shown


def test_users_are_forgotten_and_nothing_raw_is_shown(tmp_path: Path) -> None:
    source, output, state = (tmp_path / name for name in ("in.ndjson", "out.ndjson", "state"))
    source.write_bytes(events(10))
    told = (source, "-o", output, "--state", state, "--keep", "n", "-q")
    assert run(*told).returncode == 0
    found = shown(state)
    assert (found["events"], found["attributes"], found["input_done"]) == (10, 2, len(events(10)))
    assert found["output_bytes"] == output.stat().st_size
    text = zveil("state", "show", state).stdout.decode()
    for held in (text, json.dumps(found)):
        assert "planted" not in held
    assert f"policy    {found['policy']}" in text
    users = tmp_path / "users.txt"
    users.write_text("planted-0\nplanted-1\nplanted-2\nplanted-3\nnobody\n")
    done = zveil("state", "forget", state, "--user-file", users)
    assert done.returncode == 0
    erased = re.fullmatch(rb"5 users erased, ([0-9]+) entries in all\n", done.stdout)
    assert erased
    assert int(erased[1]) >= 3
    assert b"planted" not in done.stdout + done.stderr
    again = zveil("state", "forget", state, "--user-file", users)
    assert again.stdout == b"5 users erased, 0 entries in all\n"
    # Of the last two who showed a nobody is left, of those who showed b one is.
    source.write_bytes(events(12))
    assert run(*told).returncode == 0
    assert [record["n"] for record in objects(output.read_bytes())] == [*range(2, 10), 11]


@pytest.mark.parametrize("command", [("show",), ("forget", "--user-file", "/dev/null")])
def test_a_folder_without_a_state(tmp_path: Path, command: tuple[str, ...]) -> None:
    name, *more = command
    done = zveil("state", name, tmp_path, *more)
    assert done.returncode == 2
    assert b"there is no state in it" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_state_under_a_key_file_needs_it(tmp_path: Path, key: Path) -> None:
    source, state = tmp_path / "in.ndjson", tmp_path / "state"
    source.write_bytes(events(10))
    assert run(source, "--state", state, "--key-file", key, "-q").returncode == 0
    assert not (state / "key").exists()
    assert shown(state, "--key-file", key)["events"] == 10
    done = zveil("state", "show", state)
    assert done.returncode == 2
    assert b"key" in done.stderr
    done = run(source, "--state", state)
    assert done.returncode == 2
    assert b"give the --key-file that was used" in done.stderr


def test_a_chain_of_keys_goes_on(tmp_path: Path) -> None:
    output, state = tmp_path / "out.ndjson", tmp_path / "state"
    told = ("-o", output, "--state", state, "--rotate", "1h", "--keep", "n", "-q")
    assert run(*told, stdin=events(20)).returncode == 0
    assert (state / "chain").read_text().startswith("zveil chain")
    assert run(*told, stdin=events(20, first=20)).returncode == 0
    records = objects(output.read_bytes())
    names = {record["n"] % 5: record["uid"] for record in records[:10]}
    assert all(names[record["n"] % 5] == record["uid"] for record in records)
