"""The engine: requests that race decide as one gate on the order in which they were taken."""

import asyncio
import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from events import START, keyring_of

from zveil.policy import Policy, PolicyError
from zveil.reference import Reference
from zveil.serve.engine import Decided, Engine

POLICY = Policy.of(time="ts", user="uid", attributes=["host"], z=3, window="10s", raw_users=True)


def events(random: Random, count: int) -> list[dict[str, Any]]:
    return [
        {"ts": START + random.randrange(40), "uid": f"u{random.randrange(6)}",
         "host": f"h{random.randrange(4)}"}
        for _ in range(count)
    ]  # fmt: skip


def text(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


class Told(Engine):
    """Notes the order in which blocks are decided."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, keyring=keyring_of(policy))
        self.order: list[list[dict[str, Any]]] = []

    def _decide(self, lines: bytes, arrived: float) -> Decided:
        self.order.append([json.loads(each) for each in lines.splitlines()])
        return super()._decide(lines, arrived)

    def decide_batch(self, act: Any, batch: pa.RecordBatch) -> pa.RecordBatch:
        # The lock is taken inside; nothing else may come between the note and the decision.
        inner = act.act

        def noted(batch: pa.RecordBatch) -> pa.RecordBatch:
            self.order.append(batch.to_pylist())
            return inner(batch)

        act.act = noted
        try:
            return super().decide_batch(act, batch)
        finally:
            act.act = inner


@pytest.mark.parametrize("seed", range(5))
def test_requests_that_race_are_one_stream(seed: int) -> None:
    engine = Told(POLICY)
    left: list[dict[str, Any]] = []

    async def lines(number: int) -> None:
        random = Random(seed * 100 + number)
        for _ in range(20):
            # Large blocks go to the thread, small ones are decided at once where that is free.
            found = await engine.decide(text(events(random, random.choice([1, 1, 3, 400]))))
            left.extend(json.loads(each) for each in b"".join(found.pieces).splitlines())

    async def columns(number: int) -> None:
        random = Random(seed * 100 + 50 + number)
        loop = asyncio.get_running_loop()
        for _ in range(10):
            batch = pa.RecordBatch.from_pylist(events(random, random.choice([1, 50])))
            act = engine.columns(batch.schema)
            found = await loop.run_in_executor(None, engine.decide_batch, act, batch)
            left.extend(found.to_pylist())

    async def all_at_once() -> None:
        await asyncio.gather(*map(lines, range(6)), *map(columns, range(4)))

    asyncio.run(all_at_once())
    engine.close()
    merged = [event for block in engine.order for event in block]
    reference = Reference(3, 10)
    wanted = [each for each in merged if reference.observe(each["ts"], each["uid"], each["host"])]
    assert 0.05 < len(wanted) / len(merged) < 0.95
    key = json.dumps
    assert sorted(map(key, left)) == sorted(map(key, wanted))
    found = engine.monitor.now()
    assert (found.records, found.left) == (len(merged), len(wanted))
    assert (found.observed, found.released) == (len(merged), len(wanted))
    assert sum(found.veiled.values()) == len(merged) - len(wanted)
    assert found.latency.count == len(engine.order)


def test_a_bad_line_is_counted_and_its_place_told() -> None:
    engine = Engine(POLICY, keyring=None)
    good = text([{"ts": START, "uid": 1, "host": "a"}])
    found = asyncio.run(engine.decide(good + b"\n\nnothing\n" + good + b"{}\n"))
    assert (found.lines, found.records) == (6, 2)
    assert found.bad == {"syntax": 1, "missing-field": 1}
    assert found.first_bad == (4, "syntax", 2)
    again = asyncio.run(engine.decide(good + b"{\n"))
    assert again.first_bad == (2, "cut-off", 2)
    total = Decided()
    total.add(again)
    total.add(found)
    assert (total.lines, total.first_bad) == (8, (2, "cut-off", 2))
    engine.close()


def test_swaps_go_on_from_request_to_request() -> None:
    """A request with one event alone has nothing of its own to swap with."""
    policy = Policy.of(
        time="ts", user="uid", attributes=["host"], z=1, window="1h", swap=0.9, raw_users=True
    )
    engine = Engine(policy, keyring=None)
    left = []
    for number in range(200):
        row = {"ts": START + number, "uid": f"u{number}", "host": f"h{number % 5}"}
        found = asyncio.run(engine.decide(text([row])))
        left.append(json.loads(found.pieces[0])["host"] != row["host"])
        batch = pa.RecordBatch.from_pylist([row])
        leaving = engine.decide_batch(engine.columns(batch.schema), batch)
        left.append(leaving.column("host")[0].as_py() != row["host"])
    assert sum(left[::2]) > 50
    assert sum(left[1::2]) > 50
    engine.close()


def test_z_goes_no_further_than_the_gates_keep_users_for() -> None:
    engine = Engine(POLICY, keyring=None)
    with pytest.raises(ValueError, match="expected from 1 to 3"):
        asyncio.run(engine.set_z(4))
    with pytest.raises(ValueError, match="has none of this name"):
        asyncio.run(engine.set_z(2, "nothing"))
    asyncio.run(engine.set_z(1, "host"))
    row = text([{"ts": START, "uid": 1, "host": "a"}])
    assert asyncio.run(engine.decide(row)).left == 1
    assert engine.monitor.now().z == 1
    engine.close()


def test_a_forgotten_user_is_not_counted_any_more() -> None:
    engine = Engine(POLICY, keyring=None)
    for user in ("u1", "u2"):
        asyncio.run(engine.decide(text([{"ts": START, "uid": user, "host": "a"}])))
    assert asyncio.run(engine.forget("u2")) == 1
    assert asyncio.run(engine.decide(text([{"ts": START, "uid": "u3", "host": "a"}]))).left == 0
    assert asyncio.run(engine.decide(text([{"ts": START, "uid": "u2", "host": "a"}]))).left == 1
    engine.close()


def test_a_policy_of_another_format_is_refused() -> None:
    policy = Policy.of(time="t", user="u", attributes=["a"], z=2, window="1h", format="csv")
    with pytest.raises(PolicyError, match="NDJSON and Arrow"):
        Engine(policy, keyring=None)
