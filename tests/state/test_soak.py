"""The soak, short: it runs, kills, compares, and can tell that something is wrong."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zveil.reference import Reference

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not BENCHMARKS.exists(), reason="needs Linux and the source"
)


def soak(*told: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, BENCHMARKS / "soak.py", *told],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_a_short_soak_finds_everything_flat_and_equal() -> None:
    done = soak("--for", "5s", "--per-window", "40000", "--lives", "3", "--rows", "20",
                "--state-every", "200ms")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "decisions: " in done.stdout
    assert done.stdout.count("flat") == 2
    assert "NOT" not in done.stdout


@pytest.fixture(scope="module")
def endless() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        import endless

        yield endless


@pytest.fixture(scope="module")
def blocks(endless: Any) -> list[tuple[Any, Any, Any]]:
    """Events, their lines, and what the definition says on all of their hosts."""
    stream = endless.Stream(per_window=30_000, hosts=2_000)
    definition, made = Reference(20, 3_600_000), []
    for block in range(5):
        events = stream.events(block)
        rows = zip(
            events.times_ms.tolist(), events.users.tolist(), events.hosts.tolist(),
            events.is_new.tolist(), strict=True,
        )  # fmt: skip
        out = [definition.observe(t, user, (new, host)) for t, user, host, new in rows]
        made.append((events, stream.lines(events), np.array(out)))
    return made


@pytest.mark.parametrize("fault", ["none", "missing", "early", "new"])
def test_the_judge_tells_decisions_that_differ(
    endless: Any, blocks: list[tuple[Any, Any, Any]], fault: str
) -> None:
    """What comes out is made here, and spoiled."""
    judge = endless.Judge(z=20, memory=10**6, one_of=40, rest=17)
    for number, (events, lines, decided) in enumerate(blocks):
        judge.saw(events)
        out = decided.copy()
        sampled = (events.hosts % 40 == 17) & ~events.is_new
        if number == 3 and fault != "none":
            chosen = {"missing": out & sampled, "early": ~out & sampled, "new": events.is_new}
            place = np.flatnonzero(chosen[fault])[0]
            out[place] = not out[place]
        judge.came(lines[out])
        judge.compare()
        # A restart: what came already may come again.
        judge.came(lines[decided][::3])
        judge.compare()
    assert judge.compared > 100
    assert (judge.missing, judge.early) == (fault == "missing", fault in ("early", "new"))
