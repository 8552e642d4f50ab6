"""What the state may take where nothing is said: half of what the process may have."""

from pathlib import Path

import pytest

from zveil import memory
from zveil.policy import Attribute, Limits, Policy, Time, User


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process in the group /a/b, none of which has a limit."""
    own = tmp_path / "own"
    own.write_text("1:name=x:/old\n0::/a/b\n")
    inside = tmp_path / "groups/a/b"
    inside.mkdir(parents=True)
    monkeypatch.setattr(memory, "_OWN", own)
    monkeypatch.setattr(memory, "_ROOT", tmp_path / "groups")
    monkeypatch.setattr(memory, "_LIMITS", ())
    return inside


def test_the_machine_is_the_most(group: Path) -> None:
    whole = memory.available()
    (group / "memory.max").write_text("max\n")
    assert memory.available() == whole
    (group / "memory.max").write_text(f"{whole * 2}\n")
    assert memory.available() == whole
    assert memory.ceiling() == whole // 2


def test_the_tightest_group_around_counts(group: Path) -> None:
    (group / "memory.max").write_text(f"{2 << 30}\n")
    (group.parent / "memory.max").write_text(f"{1 << 30}\n")
    assert memory.available() == 1 << 30


def test_gates_share_it(group: Path) -> None:
    del group
    attributes = tuple(Attribute(name, z=2, window=60) for name in "ab")
    policy = Policy(time=Time("t"), user=User("u"), attributes=attributes)
    limits = [gate._settings()["memory_limit"] for gate in policy.gates(memory=64 << 20)]
    assert limits == [32 << 20, 32 << 20]
    # A machine that has next to nothing still gets gates that work.
    assert [gate._settings()["memory_limit"] for gate in policy.gates(memory=1)] == [4 << 20] * 2
    stated = Policy(
        time=Time("t"), user=User("u"), attributes=attributes, limits=Limits(memory="16MiB")
    )
    limits = [gate._settings()["memory_limit"] for gate in stated.gates(memory=64 << 20)]
    assert limits == [8 << 20, 8 << 20]
