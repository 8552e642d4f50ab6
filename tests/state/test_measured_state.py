"""A meter and a level that is held, through kills: as if nothing had been, or not measured."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import Ended, needs_faults, run
from program import PATIENCE_S, PROGRAM, zveil

FIELDS = ("--time", "ts", "--user", "user", "--attribute", "site")
WINDOW = ("--window", "2h", "--rotate", "24h", "--keep-keys")
HOLD = (*WINDOW, "--hold", "k=2 p=0.8")
METER = (*WINDOW, "-z", "30", "--meter")


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two days and a half of users of two classes."""
    folder = tmp_path_factory.mktemp("stream")
    (folder / "key").write_text("07" * 32 + "\n")
    (folder / "key").chmod(0o600)
    size = ("--users", "4000", "--attributes", "200", "--rate", "0.1")
    shape = ("--window", "2h", "--windows", "30", "--class", "0.9:0.5", "--class", "0.1:5")
    done = zveil("simulate", *size, *shape, "-q", "-o", folder / "stream.csv")
    assert done.returncode == 0, done.stderr
    return folder / "stream.csv"


@pytest.fixture(scope="module")
def parquet(stream: Path) -> Path:
    path = stream.with_name("stream.parquet")
    everything = ("-z", "1", "--window", "2h", "--raw-users", "-q")
    assert zveil("run", stream, *FIELDS, *everything, "-o", path).returncode == 0
    return path


def account(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stderr.decode().splitlines()[-1])
    return found


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends, "it does not come"
        time.sleep(0.005)


def stepping(*arguments: str | Path, state: Path, scratch: Path, **told: Any) -> Ended:
    """Run it with a state that is saved all the time."""
    saved = ("--state", state, "--state-every", "0s", "-q")
    scratch.mkdir(parents=True, exist_ok=True)
    return run(state, scratch, [*map(str, arguments), *map(str, saved)], **told)


def killed_twice(*arguments: str | Path, out: Path, state: Path, scratch: Path) -> None:
    """Kill a run when its second snapshot is put into its place, and the next within its first."""
    for _ in range(20):
        trial = scratch / "trial"
        steps = stepping(*arguments, "-o", trial / out.name, state=trial / "state", scratch=trial)
        saves = [n for n, step in enumerate(steps.steps, 1)
                 if (step.kind, step.path) == ("rename", "/state")]  # fmt: skip
        shutil.rmtree(trial)
        told = (*arguments, "-o", out)
        first = stepping(*told, state=state, scratch=scratch, at=saves[1], do="kill")
        # Saves are made beside the program, and are not as many steps in every run.
        if first.is_killed and (state / "state").exists():
            second = stepping(*told, state=state, scratch=scratch, at=8, do="kill")
            assert second.is_killed, second.said
            return
        out.unlink(missing_ok=True)
        shutil.rmtree(state)
    raise AssertionError("it was never killed behind its first snapshot")


def killed_in_the_end(*arguments: str | Path, state: Path, key: Path, feed: bytes) -> None:
    """Kill a run that reads a pipe when all that came is in its state, before it can say so."""
    command = [PROGRAM, "run", *map(str, arguments), "--state", str(state), "--state-every", "0s"]

    def is_saved() -> bool:
        done = zveil("state", "show", state, "--json", "--key-file", key)
        return done.returncode == 0 and json.loads(done.stdout)["events"] == feed.count(b"\n") - 1

    with subprocess.Popen([*command, "-q"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(feed)
        process.stdin.flush()
        until(is_saved)
        process.kill()
        assert process.wait(PATIENCE_S) == -9


@needs_faults
@pytest.mark.parametrize("rule", [HOLD, METER], ids=["hold", "meter"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_kill_changes_nothing(
    rule: tuple[str, ...], form: str, stream: Path, parquet: Path, tmp_path: Path
) -> None:
    source = stream if form == "csv" else parquet
    told = (source, *FIELDS, *rule, "--key-file", stream.with_name("key"))
    wanted = account(zveil("run", *told, "--json", "-o", tmp_path / f"wanted.{form}"))
    out, state = tmp_path / f"out.{form}", tmp_path / "state"
    killed_twice(*told, out=out, state=state, scratch=tmp_path / "scratch")
    found = account(zveil("run", *told, "--json", "-o", out, "--state", state))
    assert found["state"]["resumed"]
    if form == "csv":
        assert out.read_bytes() == (tmp_path / "wanted.csv").read_bytes()
    else:
        import pyarrow.parquet as pq

        assert pq.read_table(out).equals(pq.read_table(tmp_path / "wanted.parquet"))
    assert found["meter"]["periods"] == wanted["meter"]["periods"]
    assert len(found["meter"]["periods"]) == 3
    assert found.get("hold") == wanted.get("hold")
    assert (found["released"], found["observed"]) == (wanted["released"], wanted["observed"])


def days(stream: Path) -> tuple[bytes, bytes, bytes]:
    """Cut a stream: to the middle of its second day, to its end, and the third day."""
    head, *lines = stream.read_bytes().splitlines(keepends=True)
    start = float(lines[0].partition(b",")[0]) // 86_400 * 86_400
    parts: list[list[bytes]] = [[], [], []]
    for line in lines:
        day = (float(line.partition(b",")[0]) - start) / 86_400
        parts[0 if day < 1.5 else 1 if day < 2 else 2].append(line)
    first, second, third = (head + b"".join(part) for part in parts)
    return first, second, third


@pytest.mark.parametrize("rule", [HOLD, METER], ids=["hold", "meter"])
def test_what_left_unseen_is_not_taken_for_measured(
    rule: tuple[str, ...], stream: Path, tmp_path: Path
) -> None:
    first, second, third = days(stream)
    told = (*FIELDS, *rule, "--key-file", stream.with_name("key"), "--format", "csv",
            "-o", tmp_path / "out.csv")  # fmt: skip
    state = tmp_path / "state"
    killed_in_the_end(*told, state=state, key=stream.with_name("key"), feed=first)
    done = zveil("run", *told, "--json", "--state", state, stdin=second)
    found = account(done)
    assert b"not known to the meter" in done.stderr
    present = found["meter"]["periods"][-1]
    assert present["is_stopped"]
    assert present["users"] == 0
    if rule is HOLD:
        assert found["hold"]["z"] is None
        assert found["hold"]["share"] is None
    # When pseudonyms change, it begins anew; a run that came to its end is gone on with as it was.
    done = zveil("run", *told, "--json", "--state", state, stdin=third)
    found = account(done)
    assert b"not known to the meter" not in done.stderr
    last = found["meter"]["periods"][-1]
    assert not last["is_stopped"]
    assert last["users"] > 0
    if rule is HOLD:
        assert found["hold"]["z"] is not None


def test_a_meter_that_comes_later_says_so(stream: Path, tmp_path: Path) -> None:
    first, second, _ = days(stream)
    plain = tuple(word for word in METER if word != "--meter")
    told = (*FIELDS, "--key-file", stream.with_name("key"), "--format", "csv",
            "--state", tmp_path / "state", "-o", tmp_path / "out.csv")  # fmt: skip
    assert zveil("run", *told, *plain, "-q", stdin=first).returncode == 0
    done = zveil("run", *told, *METER, "--json", stdin=second)
    assert b"not known to the meter" in done.stderr
    assert account(done)["meter"]["periods"][-1]["is_stopped"]


def test_who_is_erased_is_in_no_meter(stream: Path, tmp_path: Path) -> None:
    first, second, _ = days(stream)
    told = (*FIELDS, *METER, "--key-file", stream.with_name("key"), "--format", "csv",
            "--state", tmp_path / "state", "-o", tmp_path / "out.csv")  # fmt: skip
    before = account(zveil("run", *told, "--json", stdin=first))
    assert not before["meter"]["periods"][-1]["is_stopped"]
    users = tmp_path / "users"
    users.write_bytes(first.splitlines()[1].split(b",")[1] + b"\n")
    key = ("--key-file", stream.with_name("key"))
    assert zveil("state", "forget", tmp_path / "state", "--user-file", users, *key).returncode == 0
    after = account(zveil("run", *told, "--json", stdin=second))
    assert after["meter"]["periods"][-1]["is_stopped"]
    assert after["meter"]["periods"][0] == before["meter"]["periods"][0]
    assert os.path.getsize(tmp_path / "out.csv") > 0


def test_a_level_that_changes_begins_anew(stream: Path, tmp_path: Path) -> None:
    first, second, _ = days(stream)
    told = (*FIELDS, "--key-file", stream.with_name("key"), "--format", "csv",
            "--state", tmp_path / "state", "-o", tmp_path / "out.csv")  # fmt: skip
    assert account(zveil("run", *told, *HOLD, "--json", stdin=first))["hold"]["z"] is not None
    other = (*HOLD[:-1], "k=2 p=0.9")
    found = account(zveil("run", *told, *other, "--json", stdin=second))
    # Nothing leaves before a window was seen under it; the meter goes on.
    assert found["hold"]["changes"][0]["kind"] == "opened"
    assert found["hold"]["changes"][0]["wanted"] == 0.9
    assert not found["meter"]["periods"][-1]["is_stopped"]
