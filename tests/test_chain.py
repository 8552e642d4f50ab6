"""A chain of keys goes forward only: over restarts, kills, old data and second runs."""

import json
import os
from pathlib import Path

from program import Started, line, run

from zveil.keys import write_key

HOUR = 3_600
START = 1_700_000_000 // HOUR * HOUR
ROTATE = ("--rotate", "1h", "--lateness", "10m")


def pair(t: int) -> bytes:
    """Two users of one value, the second of which is released."""
    return line(t, "other", "a") + line(t, "ada", "a")


def chain(folder: Path, name: str = "chain") -> Path:
    file = folder / name
    write_key(file, chain=True)
    return file


def known(file: Path) -> dict[str, str]:
    title, *lines = file.read_text().splitlines()
    assert title == "zveil chain"
    return dict(each.split(" ", 1) for each in lines)


def name(out: bytes) -> str:
    return str(json.loads(out)["uid"])


def test_a_killed_run_leaves_no_old_key_and_the_next_goes_on(tmp_path: Path) -> None:
    file = chain(tmp_path)
    first_key = known(file)["key"]
    with Started(*ROTATE, "--key-file", file) as started:
        started.send(pair(START))
        first = name(started.line())
        # Ten minutes back, the hour before is not over yet: its key is there.
        assert known(file) == {
            "period": str(HOUR * 10**9),
            "number": str(START // HOUR - 1),
            "key": first_key,
        }
        started.send(pair(START + HOUR + 1_800))
        second = name(started.line())
        after = known(file)
        started.process.kill()
        started.process.wait()
    assert after == known(file)
    assert after["number"] == str(START // HOUR + 1)
    assert after["key"] != first_key
    assert first_key not in file.read_text()
    assert sorted(os.listdir(tmp_path)) == ["chain"], "something was left beside it"
    assert file.stat().st_mode & 0o777 == 0o600

    again = run("-q", *ROTATE, "--key-file", file, stdin=pair(START + HOUR + 1_900))
    assert name(again.stdout) == second != first, again.stderr


def test_events_from_before_the_chain_are_refused(tmp_path: Path) -> None:
    file = chain(tmp_path)
    later = START + 5 * HOUR + 1_800
    kept = run("-q", *ROTATE, "--key-file", file, stdin=pair(later))
    before = file.read_bytes()
    done = run(*ROTATE, "--key-file", file, stdin=pair(START) + pair(START + HOUR))
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"has moved on to 2023-11-15T03:00:00Z" in done.stderr
    assert b"zveil key --chain" in done.stderr
    assert known(file) == dict(each.split(" ", 1) for each in before.decode().splitlines()[1:])
    # A straggler at the beginning is no reason to stop; it has no name if it leaves at all.
    done = run("-q", *ROTATE, "--key-file", file, stdin=line(START, "ada", "b") + pair(later))
    assert done.stdout == kept.stdout, done.stderr


def test_one_run_at_a_time(tmp_path: Path) -> None:
    file = chain(tmp_path)
    with Started(*ROTATE, "--key-file", file) as started:
        started.send(pair(START))
        first = name(started.line())
        second = run(*ROTATE, "--key-file", file, stdin=pair(START))
        assert (second.returncode, second.stdout) == (2, b"")
        assert b"another run is using this chain" in second.stderr
        # Also once the file is another one.
        started.send(pair(START + 9 * HOUR))
        started.line()
        assert run(*ROTATE, "--key-file", file, stdin=pair(START)).returncode == 2
        started.rest()
    assert first
    assert run(*ROTATE, "--key-file", file, stdin=pair(START + 9 * HOUR)).returncode == 0


def test_another_length_is_another_chain(tmp_path: Path) -> None:
    file = chain(tmp_path)
    assert run(*ROTATE, "--key-file", file, stdin=pair(START)).returncode == 0
    done = run("--rotate", "2h", "--key-file", file, stdin=pair(START))
    assert done.returncode == 2
    assert b"periods of 3600 s, not of 7200 s" in done.stderr
    # The window is an hour.
    by_windows = ("--rotate", "1 window", "--lateness", "10m")
    assert run(*by_windows, "--key-file", file, stdin=pair(START)).returncode == 0


def test_no_key_serves_two_periods(tmp_path: Path) -> None:
    """However runs are ended and begun, a period has one key, and no two have the same."""
    file = chain(tmp_path)
    names: dict[int, str] = {}
    for hour in (0, 0, 1, 3, 3, 40, 41):
        with Started(*ROTATE, "--key-file", file) as started:
            started.send(pair(START + hour * HOUR + 1_800))
            shown = name(started.line())
            started.process.kill()
            started.process.wait()
        assert names.setdefault(hour, shown) == shown
    assert len(set(names.values())) == len(names)


def test_late_events_leave_under_their_own_periods_key(tmp_path: Path) -> None:
    """Around a boundary, with lateness to spare and without."""
    before, after = START + HOUR - 1, START + HOUR
    data = pair(before) + pair(after) + pair(before) + pair(after)
    out = run("-q", *ROTATE, "--key-file", chain(tmp_path), stdin=data).stdout
    # From the second pair on all are released: two users showed the value within the window.
    by_time: dict[int, set[str]] = {}
    for record in map(json.loads, out.splitlines()):
        by_time.setdefault(record["ts"], set()).add(record["uid"])
    assert len(by_time[before]) == 2
    assert len(by_time[after]) == 2
    assert not by_time[before] & by_time[after]

    late = pair(before) + pair(after + 600) + pair(before)
    gone = run("-q", *ROTATE, "--key-file", chain(tmp_path, "other"), stdin=late)
    times = [json.loads(each)["ts"] for each in gone.stdout.splitlines()]
    assert times == [before, after + 600, after + 600]


def test_what_leaves_without_a_key_leaves_without_a_user() -> None:
    """A blank record may be later than the lateness: its key is gone."""
    data = pair(START) + pair(START + 3 * HOUR) + line(START, "ada", "a")
    out = run("-q", *ROTATE, "--veiled", "blank", stdin=data).stdout
    users = [json.loads(each)["uid"] for each in out.splitlines()]
    assert users[-1] is None
    assert None not in users[:-1]
    assert len(set(users[:-1])) == 4


def test_a_jump_costs_little_or_is_refused() -> None:
    century = 100 * 365 * 24 * HOUR
    done = run("--rotate", "1d", "-q", stdin=pair(START - 20 * HOUR * 24 * 365) + pair(START))
    assert done.returncode == 0
    data = pair(START) + pair(START + century)
    done = run("--rotate", "1m", "--max-future", "any", stdin=data)
    assert done.returncode == 2
    assert b"--rotate: the time of the events jumps ahead by more than 1000000" in done.stderr
    # What is further ahead than allowed moves nothing.
    data = pair(START) + pair(START + century) + line(START, "ada", "a")
    out = run("--rotate", "1m", "-q", stdin=data).stdout.splitlines()
    assert len(out) == 2
    assert name(out[0]) == name(out[1])


def test_kept_keys_can_be_made_again(tmp_path: Path) -> None:
    file = tmp_path / "key"
    write_key(file)
    before = file.read_bytes()
    options = ("-q", "--rotate", "1h", "--keep-keys", "--key-file", file)
    first = run(*options, stdin=pair(START) + pair(START + 5 * HOUR)).stdout.splitlines()
    again = run(*options, stdin=pair(START)).stdout
    assert name(again) == name(first[0]) != name(first[-1])
    assert file.read_bytes() == before


def test_a_run_without_a_key_of_its_own_writes_none(tmp_path: Path) -> None:
    out = run("-q", *ROTATE, stdin=pair(START) + pair(START + 5 * HOUR), cwd=tmp_path).stdout
    assert len({name(each) for each in out.splitlines()}) == 2
    assert os.listdir(tmp_path) == []
