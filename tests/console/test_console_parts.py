"""The parts of the console by themselves: sessions, figures, curves, files, and what is heard."""

import asyncio
import json
import os
from pathlib import Path

import numpy as np
import pytest

from zveil.console.choice import HORIZONS, ROTATIONS, WINDOWS, Z_VALUES, Choice
from zveil.console.course import course, pace
from zveil.console.curves import curves, linked, measured, of_trace, point
from zveil.console.files import Inbox, Shelf
from zveil.console.hearing import Hearing
from zveil.console.proposal import Names, proposal
from zveil.console.sessions import Attempts, Sessions
from zveil.console.worker import Worker, WorkError
from zveil.model import Population, Trace, measure
from zveil.policy import Policy
from zveil.policy.file import parse_policy
from zveil.serve.monitor import Figures

GIVEN = Choice().given()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_session_ends_by_time_by_hand_and_with_its_token() -> None:
    clock = Clock()
    sessions = Sessions(length_s=60, clock=clock)
    is_known = [True]
    one, two, three = sessions.begin(), sessions.begin(), sessions.begin(lambda: is_known[0])
    assert len({one, two, three}) == 3
    sessions.end(one)
    assert [sessions.find(name) is not None for name in (one, two, three)] == [False, True, True]
    is_known[0] = False
    assert sessions.find(three) is None
    clock.now += 60
    assert sessions.find(two) is None
    assert sessions.find(None) is None
    # What is over is not kept.
    sessions.begin()
    assert len(sessions) == 1


def test_sessions_are_bounded_and_the_oldest_goes() -> None:
    sessions = Sessions()
    names = [sessions.begin() for _ in range(1_001)]
    assert len(sessions) == 1_000
    assert sessions.find(names[0]) is None
    assert sessions.find(names[-1]) is not None


def test_wrong_tokens_from_many_addresses_are_bounded_together() -> None:
    clock = Clock()
    attempts = Attempts(most=3, most_of_all=10, span_s=60, clock=clock)
    for n in range(10):
        assert attempts.wait_s(f"192.0.2.{n}") == 0
        attempts.failed(f"192.0.2.{n}")
    assert attempts.wait_s("198.51.100.1") == 60
    clock.now += 61
    assert attempts.wait_s("198.51.100.1") == 0
    for _ in range(3):
        attempts.failed("192.0.2.1")
    assert attempts.wait_s("192.0.2.1") > 0
    attempts.succeeded("192.0.2.1")
    assert attempts.wait_s("192.0.2.1") == 0


def figures(at: float, observed: int, released: int) -> Figures:
    return Figures(
        at=at, policy="", observed=observed, released=released, latency_ms={0.5: 1.0, 0.99: 2.0}
    )


def test_the_past_as_lines() -> None:
    history = [figures(5.0 * n, 100 * n, 40 * n) for n in range(200)]
    drawn = course(history, "10 minutes")
    # Ten minutes in steps of five seconds; a rate needs two moments.
    assert len(drawn.observed) == 120
    assert {value for _, value in drawn.observed} == {20.0}
    assert {value for _, value in drawn.released} == {8.0}
    assert {value for _, value in drawn.share} == {40.0}
    assert drawn.observed[-1][0] == 995_000
    assert len(drawn.median_ms) == 121
    assert course([], "24 hours").observed == []
    now = pace(history)
    assert (now.observed, now.released, now.share, now.is_idle) == (20.0, 8.0, 0.4, False)


def test_nothing_that_comes_is_no_share_and_a_count_that_falls_is_no_rate() -> None:
    history = [figures(0, 50, 50), figures(5, 50, 50), figures(10, 7, 3), figures(15, 9, 4)]
    drawn = course(history, "10 minutes")
    assert [value for _, value in drawn.share] == [None, None, 50.0]
    assert [value for _, value in drawn.observed] == [0.0, 0.0, 0.4]
    assert pace(history[:2]).is_idle
    assert pace(history[:1]).share is None


def test_curves_are_those_of_the_model() -> None:
    population = Population.power_law()
    at_20 = point(population, GIVEN)
    assert at_20["visible"] == pytest.approx(0.1244, abs=1e-4)
    assert at_20["paper"] == pytest.approx(0.86921, abs=1e-5)
    assert at_20["released"] == pytest.approx(0.603, abs=1e-3)
    found = curves(population, GIVEN)
    for at in (0, 20):
        single = point(population, GIVEN | {"z": found["z"][at]})
        assert all(found[name][at] == single[name] for name in ("visible", "paper", "released"))
    assert found["paper"] == sorted(found["paper"])
    # Where nobody is to be seen, nothing is said of those who are.
    assert found["visible"][-1] is None
    assert point(population, GIVEN | {"z": found["z"][-1]})["visible_share"] * 50_000 < 1
    # Ids that change sooner leave fewer windows to link.
    sooner = point(population, GIVEN | {"z": 60, "rotate": 4})
    assert sooner["visible"] == pytest.approx(0.95, abs=0.01)
    assert linked(GIVEN | {"rotate": 100}) == 24


def test_a_trace_is_measured_by_the_gate() -> None:
    draw = np.random.default_rng(5)
    trace = Trace.of_codes(
        np.sort(draw.integers(0, 6 * 3600, 5_000)) * 10**9,
        draw.integers(0, 60, 5_000),
        draw.geometric(0.2, 5_000),
        window="1h",
    )
    given = GIVEN | {"z": 5, "window_s": 1800.0, "rotate": 2}
    found = measured(trace, given)
    expected = measure(
        Trace.of_codes(trace.time_ns, trace.user, trace.attribute, window="30m"),
        5, k=2, rotate_every=2,
    )  # fmt: skip
    assert (found["p_k"], found["released"]) == (expected.p_k, expected.released)
    assert of_trace(trace, given).users == trace.users


def test_every_proposal_is_a_policy() -> None:
    names = Names(time="t", user='u"ser', attributes=("page.host", "päge"))
    for window, seconds in WINDOWS:
        for rotate in ROTATIONS:
            text = proposal(names, z=Z_VALUES[-1], window=window, rotate=rotate, running=True)
            policy = parse_policy(text)
            assert policy.names == names.attributes
            assert policy.user.field == 'u"ser'
            expected = None if rotate is None else rotate * seconds * 1e9
            assert policy.rotate_ns == expected
    assert set(HORIZONS) < set(ROTATIONS)


def test_a_choice_begins_with_the_policy() -> None:
    policy = Policy.of(time="t", user="u", attributes=["a"], z=37, window="45m", rotate="3 windows")
    choice = Choice.of(policy)
    assert (choice.z, choice.window, choice.rotate) == (37, "1h", 3)
    assert Names.of(policy).attributes == ("a",)


def test_what_is_heard_is_what_was_said_and_holds_no_value() -> None:
    hearing = Hearing(time="ts", user="uid", attributes=["host", "page"])
    records = [
        {
            "ts": 10 * n,
            "uid": n % 7 if n % 2 else str(n % 7),
            "host": f"a-host-{n % 3}",
            "page": None,
        }
        for n in range(100)
    ]
    records[5]["page"] = "a-host-0"
    lines = [json.dumps(record).encode() for record in records]
    hearing.hear(b"\n".join(lines[:60]) + b"\nno json\n")
    hearing.hear(b"\n".join(lines[60:]))
    trace = hearing.trace(window_s=100)
    # A number and a text of the same digits are one user; a word in two fields is two values.
    assert (len(trace), trace.users, trace.attributes, trace.starts) == (101, 7, 4, (0, 100))
    assert hearing.told() == {"count": 101, "users": 7, "span_s": 990.0, "is_full": False}
    held = b"".join(part.tobytes() for field in hearing._heard for rows in field for part in rows)
    assert b"a-host" not in held
    direct = Trace.of_columns(
        [record["ts"] for record in records], [str(record["uid"]) for record in records],
        [record["host"] for record in records], window=100,
    )  # fmt: skip
    assert sorted(of_trace(trace, {"window_s": 100.0}).p_x[:3]) != []
    assert trace.time_ns[:100].tolist() == direct.time_ns.tolist()


def test_only_files_right_in_the_folder_are_offered(tmp_path: Path) -> None:
    for name in ("b-10.csv", "b-2.csv.gz", ".hidden.csv", "keys.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "deep.csv").write_text("x")
    (tmp_path / "link.csv").symlink_to(tmp_path / "keys.txt")
    shelf = Shelf(tmp_path)
    assert shelf.names() == ["b-2.csv.gz", "b-10.csv"]
    for name in ("keys.txt", "../x.csv", "inside/deep.csv", "link.csv", "/etc/passwd", ""):
        with pytest.raises(ValueError, match="no longer in the folder"):
            shelf.open(name)
    given = shelf.open("b-10.csv")
    assert given.file.read() == b"x"
    given.close()
    assert Shelf(tmp_path / "gone").names() == []


def test_a_limit_must_be_a_size() -> None:
    assert Inbox("2MiB").largest == 2 << 20
    with pytest.raises(ValueError, match="upload: expected bytes"):
        Inbox("much")


def test_a_worker_does_its_tasks_and_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZVEIL_KEY", "00" * 32)

    async def work() -> None:
        worker = Worker()
        try:
            small = GIVEN | {"users": 500, "attributes": 20, "rate": 0.5}
            found = await worker.ask("curves", small)
            assert found["users"] == 500
            process = worker._process
            assert process is not None
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            assert b"ZVEIL_KEY" not in environment
            assert os.getpriority(os.PRIO_PROCESS, process.pid) >= 10
            assert Path(f"/proc/{process.pid}/oom_score_adj").read_text() == "1000\n"
            with pytest.raises(WorkError, match="users: expected a whole number"):
                await worker.ask("curves", small | {"users": 0})
            with pytest.raises(WorkError, match=r"could not be worked out \(KeyError\)"):
                await worker.ask("nothing", {})
            # Two at once wait for each other.
            both = await asyncio.gather(*(worker.ask("point", small) for _ in range(2)))
            assert both[0] == both[1]
        finally:
            worker.close()
            await worker.over()
        with pytest.raises(WorkError, match="the page was left"):
            await worker.ask("point", GIVEN)

    asyncio.run(work())


def test_a_task_that_takes_too_long_is_stopped() -> None:
    async def work() -> None:
        worker = Worker(longest_s=0.3)
        with pytest.raises(WorkError, match="took more than"):
            await worker.ask("ways", GIVEN | {"horizon": 720})
        await worker.over()

    asyncio.run(work())
