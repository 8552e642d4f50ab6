"""The meter's own thread: nobody sees that there is one, but by the time that passes."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from zveil import Meter, _native
from zveil.meter import Definition

KEY = bytes(range(32))
Columns = tuple[Any, Any, Any, Any]


def drawn(seed: int, count: int) -> Columns:
    """Make up releases over some periods, with spells in which some are late."""
    generator = np.random.default_rng(seed)
    times = np.cumsum(generator.integers(0, 3, count))
    late = (generator.random(count) < 0.1) & (np.arange(count) // 3_000 % 2 == 1)
    times = times - late * generator.integers(0, 12_000, count)
    users, values = generator.integers(0, 500, count), generator.integers(0, 40, count)
    return times, users, values, generator.random(count) < 0.7


def meter(**options: Any) -> Meter:
    return Meter(time_unit="ns", key=KEY, **options)


def periodic() -> Meter:
    return meter(rotate="20000ns", lateness="9000ns")


def bring(to: Meter, columns: Columns, sizes: list[int]) -> None:
    start = 0
    while start < len(columns[0]):
        for size in sizes:
            part = slice(start, start + size)
            to.add(*(column[part] for column in columns))
            start += size


def test_long_batches_show_what_the_definition_says_however_they_are_cut() -> None:
    columns = drawn(1, 60_000)
    definition = Definition(length=20_000, lateness=9_000)
    for t, user, value, leaves in zip(*(column.tolist() for column in columns), strict=True):
        if leaves:
            definition.add(t, user, value)
    wanted = definition.periods()
    assert len(wanted) > 2
    assert any(period.late for period in wanted)
    for sizes in ([60_000], [30_000, 20_000, 10_000], [20_000, 1, 5_000, 70], [4_500], [999]):
        beside = periodic()
        bring(beside, columns, sizes)
        assert beside.periods() == wanted
        assert beside.report() == definition.report()


def test_a_state_saved_while_much_waits_is_whole(tmp_path: Path) -> None:
    first, second = drawn(2, 400_000), drawn(3, 50_000)
    second = (second[0] + first[0].max(), *second[1:])
    for wait in (False, True):
        kept = periodic()
        bring(kept, first, [400_000])
        saving = _native.save_state(tmp_path / "state", KEY, b"", [kept], wait=wait)
        saving.wait()
        [again] = _native.load_state(tmp_path / "state", KEY)[1]
        assert isinstance(again, _native.Meter)
        bring(kept, second, [50_000])
        restored = Meter.restore(again.save(), KEY, time_unit="ns")
        bring(restored, second, [7_000])
        assert restored.periods() == kept.periods()


def test_the_limit_stops_it_and_it_says_so() -> None:
    limited = meter(memory_limit="1MB")
    times = np.arange(200_000)
    limited.add(times, times, times)
    assert limited.report().is_stopped
    assert limited.bytes == 0


def test_every_question_waits_for_what_was_brought() -> None:
    columns = drawn(4, 300_000)
    asked: dict[str, Any] = {
        "period": lambda it: it.period,
        "counts": lambda it: it.counts(2),
        "before": lambda it: it.before(2),
        "bytes": lambda it: it.bytes,
        "save": lambda it: it.save(),
        "report": lambda it: it.report(),
        "periods": lambda it: it.periods(),
        "give_up": lambda it: (it.give_up(), it.periods()),
        "resettle": lambda it: (it._resettle(lateness_ns=5, memory_limit=None), it.save()),
    }
    for name, ask in asked.items():
        one, other = periodic(), periodic()
        bring(one, columns, [300_000])
        bring(other, columns, [300_000])
        _ = other.period
        assert ask(one) == ask(other), name


def test_one_that_is_let_go_with_much_waiting_ends() -> None:
    for _ in range(5):
        bring(periodic(), drawn(5, 200_000), [200_000])


FORK = """
    import os, sys
    import numpy as np
    from zveil import Meter

    meter, times = Meter(time_unit="ns"), np.arange(400_000)
    meter.add(times, times % 9000, times % 7)
    if sys.argv[1] == "looked":
        meter.report()
    child = os.fork()
    if child == 0:
        try:
            meter.add(times, times % 9000, times % 11)
            answer = meter.report().users == 9000
        except RuntimeError:
            answer = sys.argv[1] != "looked"
        os._exit(0 if answer else 1)
    meter.add(times, times % 9000, times % 11)
    assert meter.report().users == 9000
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize("when", ["looked", "not looked"])
def test_a_fork_is_whole_or_refuses_and_never_hangs(when: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", dedent(FORK), when]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
