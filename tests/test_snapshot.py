"""Snapshots: whole or not at all, for the owner only, and refused when anything is wrong."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

import zveil
from zveil import Gate, SnapshotError

KEY = bytes(range(32))


def filled(**options: object) -> Gate:
    gate = Gate(z=3, window="1h", key=KEY, **options)  # type: ignore[arg-type]
    random = np.random.default_rng(1)
    users = [f"alice-{user}" for user in random.integers(0, 30, 20_000)]
    pages = [f"secret-page-{page}" for page in random.integers(0, 4_000, 20_000)]
    gate.observe_many(np.arange(20_000) / 4, users, pages)
    return gate


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    filled().snapshot(path)
    return path


def test_a_restored_gate_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    gate = filled(time_unit="ms", z_max=5, lateness="2h", max_future=None)
    gate.snapshot(tmp_path / "state")
    restored = Gate.restore(tmp_path / "state", KEY, threads=2)
    before, after = gate.stats(), restored.stats()
    assert before.observed == after.observed == 20_000
    assert (before.released, before.attributes) == (after.released, after.attributes)
    assert (restored.z, restored.z_max, restored.lateness_ns) == (3, 5, 2 * gate.window_ns)
    times = np.arange(5_000_000, 5_010_000)
    users, pages = [f"bob-{n % 17}" for n in times], [f"secret-page-{n % 300}" for n in times]
    assert np.array_equal(
        gate.observe_many(times, users, pages), restored.observe_many(times, users, pages)
    )


def test_the_file_is_the_owners_and_holds_no_word_of_the_data(file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = file.read_bytes()
    for word in (b"alice", b"secret", KEY):
        assert word not in content
    assert os.listdir(file.parent) == ["state"]


def test_two_snapshots_of_one_state_have_nothing_in_common(tmp_path: Path) -> None:
    gate = filled()
    gate.snapshot(tmp_path / "a")
    gate.snapshot(tmp_path / "b")
    a, b = (tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()
    assert len(a) == len(b)
    assert sum(x == y for x, y in zip(a[40:], b[40:], strict=True)) < len(a) / 100


@pytest.mark.parametrize("cut", [0, 1, 36, 37, 38, 60, 1_000, 65_589, -17, -1])
def test_a_file_that_is_cut_off_is_refused(file: Path, cut: int) -> None:
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(SnapshotError, match=r"not a zveil snapshot|cut off or was altered"):
        Gate.restore(file, KEY)


def test_a_file_with_more_behind_is_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(SnapshotError, match="cut off or was altered"):
        Gate.restore(file, KEY)


def test_any_altered_byte_is_found_out(file: Path) -> None:
    content = file.read_bytes()
    for place in [*range(60), *range(60, len(content), len(content) // 100), len(content) - 1]:
        altered = bytearray(content)
        altered[place] ^= 1
        file.write_bytes(altered)
        with pytest.raises(SnapshotError):
            Gate.restore(file, KEY)
    file.write_bytes(content)
    assert Gate.restore(file, KEY).stats().observed == 20_000


def test_pieces_that_change_places_are_found_out(file: Path) -> None:
    content = file.read_bytes()
    piece = 65_536 + 16
    header, first, second, rest = (
        content[:37], content[37 : 37 + piece], content[37 + piece : 37 + 2 * piece],
        content[37 + 2 * piece :],
    )  # fmt: skip
    assert len(second) == piece
    for changed in (header + second + first + rest, header + first + rest):
        file.write_bytes(changed)
        with pytest.raises(SnapshotError, match="altered"):
            Gate.restore(file, KEY)


def test_what_is_wrong_is_said(file: Path) -> None:
    with pytest.raises(SnapshotError, match="written with another key"):
        Gate.restore(file, bytes(32))
    content = bytearray(file.read_bytes())
    content[8] = 99
    file.write_bytes(content)
    with pytest.raises(SnapshotError, match="format 99, this version reads format 2"):
        Gate.restore(file, KEY)
    file.write_text("time,user,item\n" * 10)
    with pytest.raises(SnapshotError, match="not a zveil snapshot"):
        Gate.restore(file, KEY)
    assert issubclass(SnapshotError, ValueError)
    assert SnapshotError is zveil.SnapshotError


def test_a_file_that_is_not_there_or_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Gate.restore(tmp_path / "nothing", KEY)
    with pytest.raises(FileNotFoundError):
        filled().snapshot(tmp_path / "no folder" / "state")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    with pytest.raises(OSError, match="rename"):
        filled().snapshot(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_failed_snapshot_leaves_the_old_one(file: Path) -> None:
    before = file.read_bytes()
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here to fail on")
    with pytest.raises(OSError):  # noqa: PT011 (a device is no place to rename to; any reason will do)
        filled().snapshot(full / "state")
    assert file.read_bytes() == before
    assert Gate.restore(file, KEY).stats().observed == 20_000


@pytest.mark.parametrize("key", [None, b"", "text", bytes(31)])
def test_a_key_that_is_none_is_refused(file: Path, key: object) -> None:
    with pytest.raises(ValueError, match="key: expected"):
        Gate.restore(file, key)  # type: ignore[arg-type]
