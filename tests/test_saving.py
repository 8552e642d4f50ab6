"""Saving a state beside a stream: of one moment, whole or not at all, and told if it failed."""

import fcntl
import os
import resource
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from zveil import Gate, SnapshotError
from zveil._native import EventIds, load_state, open_snapshot, read_note, save_state
from zveil._native import Gate as NativeGate

KEY = bytes(range(32))


def filled(attributes: int = 5_000, **options: object) -> Gate:
    gate = Gate(3, "1h", max_future=None, **options)  # type: ignore[arg-type]
    users = [f"alice-{n % 30}" for n in range(3_000)]
    pages = [f"secret-page-{n % 700}" for n in range(3_000)]
    gate.observe_many(np.arange(3_000) / 4, users, pages)
    gate.observe_many(np.full(attributes, 750.0), np.arange(attributes), np.arange(attributes))
    return gate


def some_ids() -> EventIds:
    ids = EventIds(key=bytes(32), window_ns=10**12, most=1_000)
    import pyarrow as pa

    ids.fresh(pa.array([1, 2, 3]), pa.array(["event-a", "event-b", "event-a"]), 1)
    return ids


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.mark.parametrize("wait", [True, False])
def test_what_is_saved_is_loaded(path: Path, wait: bool) -> None:
    gate, other, ids = filled(), filled(z_max=9, noise=2, threads=2), some_ids()
    saving = save_state(path, KEY, b"a note", [gate, ids, other], wait=wait)
    saving.wait()
    assert saving.is_over()
    assert saving.is_beside is not wait
    assert saving.pause_ns > 0
    assert read_note(path, KEY) == b"a note"
    note, parts = load_state(path, KEY)
    assert note == b"a note"
    first, known, second = parts
    assert isinstance(first, NativeGate)
    assert isinstance(second, NativeGate)
    assert isinstance(known, EventIds)
    assert first._counts(True) == gate._counts(True)
    assert first.key == gate.key
    assert (len(known), known.repeated, known.forgotten) == (2, 1, 0)
    # On another number of threads it holds the same.
    counts = second._counts(True), other._counts(True)
    assert [[one[name] for name in ("observed", "released", "attributes")] for one in counts] == [
        [counts[0][name] for name in ("observed", "released", "attributes")]
    ] * 2
    assert second._settings() == other._settings() | {"threads": 1}


def test_a_gate_takes_the_place_of_another(path: Path) -> None:
    gate = filled()
    save_state(path, KEY, b"", [gate], wait=True)
    held = Gate(3, "1h", max_future=None)
    _, (loaded,) = load_state(path, KEY)
    assert isinstance(loaded, NativeGate)
    held._exchange(loaded)
    assert held.stats() == gate.stats()
    assert loaded._counts(True)["observed"] == 0
    times, users = np.arange(760, 900), np.arange(140) % 7
    pages = [f"secret-page-{n % 70}" for n in range(140)]
    expected = gate.observe_many(times, users, pages)
    assert np.array_equal(held.observe_many(times, users, pages), expected)
    held._exchange(held)


def test_the_file_is_the_owners_and_holds_no_word_of_the_data(path: Path) -> None:
    gate = filled()
    save_state(path, KEY, b"note of the run", [gate, some_ids()]).wait()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = path.read_bytes()
    for word in (b"alice", b"secret", b"event", b"note", KEY, gate.key):
        assert word not in content
    assert os.listdir(path.parent) == ["state"]


def test_a_person_can_be_erased(path: Path) -> None:
    save_state(path, KEY, b"", [filled()], wait=True)
    _, (loaded,) = load_state(path, KEY)
    assert isinstance(loaded, NativeGate)
    assert loaded.forget("alice-7") > 0
    save_state(path, KEY, b"", [loaded], wait=True)
    _, (again,) = load_state(path, KEY)
    assert isinstance(again, NativeGate)
    assert again.forget("alice-7") == 0


def test_others_are_refused(path: Path) -> None:
    save_state(path, KEY, b"note", [filled()], wait=True)
    content = path.read_bytes()

    def words(content: bytes, key: bytes = KEY) -> str:
        path.write_bytes(content)
        with pytest.raises(SnapshotError) as told:
            load_state(path, key)
        return str(told.value)

    assert "with another key" in words(content, bytes(32))
    assert "not a zveil snapshot" in words(b"something else")
    assert "has format 9" in words(content[:8] + b"\x09" + content[9:])
    for altered in (content[:-1], content + b"\0", content[:70_000], content[:40]):
        assert "cut off or was altered" in words(altered)
    for place in range(10, len(content), len(content) // 60):
        flipped = bytearray(content)
        flipped[place] ^= 4
        assert "altered" in words(bytes(flipped)) or place < 18
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match="not a zveil snapshot"):
        open_snapshot(path, KEY, 1)
    with pytest.raises(OSError, match="No such file"):
        load_state(path.with_name("none"), KEY)
    with pytest.raises(OSError, match="No such file"):
        read_note(path.with_name("none"), KEY)


def test_parts_are_checked(path: Path) -> None:
    gate = filled()
    with pytest.raises(ValueError, match="each of them once"):
        save_state(path, KEY, b"", [gate, gate])
    with pytest.raises(TypeError, match="parts: expected gates, event ids and meters, got str"):
        save_state(path, KEY, b"", ["gate"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="note: expected at most"):
        save_state(path, KEY, bytes((16 << 20) + 1), [gate])


def test_a_failure_is_told_once_and_the_old_state_stays(path: Path) -> None:
    save_state(path, KEY, b"old", [], wait=True)
    nowhere = path.parent / "none" / "state"
    with pytest.raises(OSError, match="could not create the file: No such file") as told:
        save_state(nowhere, KEY, b"", [filled()], wait=True)
    saving = save_state(nowhere, KEY, b"", [filled()])
    with pytest.raises(OSError, match="could not create the file: No such file") as later:
        saving.wait()
    assert told.value.errno == later.value.errno == 2
    assert saving.is_over()
    with pytest.raises(OSError, match="sync what belongs to the file: Bad file descriptor"):
        save_state(path, KEY, b"new", [], sync=[987], wait=True)
    assert load_state(path, KEY) == (b"old", [])


@pytest.fixture
def small_disk() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.usefixtures("small_disk")
def test_a_file_that_cannot_be_written_whole_is_none(path: Path, wait: bool) -> None:
    save_state(path, KEY, b"old", [], wait=True)
    with pytest.raises(OSError, match="could not write the file: File too large"):
        save_state(path, KEY, b"new", [filled()], wait=wait).wait()
    assert load_state(path, KEY) == (b"old", [])
    assert os.listdir(path.parent) == ["state"]


def children() -> list[int]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += [int(number) for number in (task / "children").read_text().split()]
    return found


def test_a_process_that_is_killed_is_told_of(path: Path) -> None:
    save_state(path, KEY, b"old", [], wait=True)
    gate = filled(400_000)
    before = children()
    saving = save_state(path, KEY, b"new", [gate])
    for number in set(children()) - set(before):
        os.kill(number, signal.SIGKILL)
    with pytest.raises(OSError, match="process that wrote it was ended by signal 9"):
        saving.wait()
    assert load_state(path, KEY) == (b"old", [])
    assert os.listdir(path.parent) == ["state"]
    # What one that was killed with its parent has left goes with the next.
    (path.parent / ".state.new").write_bytes(b"rest")
    save_state(path, KEY, b"newer", [gate]).wait()
    assert read_note(path, KEY) == b"newer"
    assert os.listdir(path.parent) == ["state"]


def test_no_process_stays_behind(path: Path) -> None:
    before = children()
    for number in range(5):
        # Nobody asks how it went.
        save_state(path.with_name(f"state-{number}"), KEY, b"", [filled()])
    save_state(path, KEY, b"", []).wait()
    for number in set(children()) - set(before):
        os.waitpid(number, 0)
    save_state(path, KEY, b"", []).wait()
    assert children() == before


def test_descriptors_are_closed_but_for_a_lock(path: Path) -> None:
    lock = os.open(path.with_name("lock"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    out, into = os.pipe()
    output = os.open(path.with_name("output"), os.O_RDWR | os.O_CREAT)
    saving = save_state(path, KEY, b"", [filled(400_000)], sync=[output, into], keep=[lock])
    os.close(into)
    os.close(lock)
    is_over = saving.is_over()
    other = os.open(path.with_name("lock"), os.O_RDWR)
    if not is_over:
        # The lock holds while it works, the pipe is at its end.
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert os.read(out, 1) == b""
    saving.wait()
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for descriptor in (out, other, output):
        os.close(descriptor)


def test_gates_that_are_at_work_are_saved(path: Path) -> None:
    gates = [filled(threads=2), filled(), filled()]
    stop = threading.Event()

    def work(order: list[Gate], first: int) -> None:
        number = first
        while not stop.is_set():
            for gate in order:
                numbers = np.arange(number, number + 20_000) % 50_000
                gate.observe_many(np.full(20_000, 800.0), numbers % 11, numbers)
            number += 20_000

    threads = [
        threading.Thread(target=work, args=(order, n))
        for n, order in enumerate([gates, gates[::-1], gates[1:]])
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(12):
            save_state(path, KEY, b"", gates).wait()
            _, parts = load_state(path, KEY)
            assert len(parts) == 3
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_it_is_of_one_moment(path: Path) -> None:
    gate = filled(200_000)
    before = gate._counts(True)
    saving = save_state(path, KEY, b"", [gate])
    numbers = np.arange(100_000)
    gate.observe_many(np.full(100_000, 800.0), numbers, numbers)
    saving.wait()
    _, (loaded,) = load_state(path, KEY)
    assert isinstance(loaded, NativeGate)
    assert loaded._counts(True) == before
