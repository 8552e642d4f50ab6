"""One stream that many hand events to: one set of gates, one order of decisions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from zveil._native import Keyring
from zveil.act import TextAct
from zveil.io import Format, format_of
from zveil.meter import Meter
from zveil.policy import Policy, PolicyError
from zveil.run import MAX_LINE, event_ids
from zveil.serve.monitor import Figures, Latencies, Monitor, figures
from zveil.serve.totals import Totals
from zveil.summary import Measured

if TYPE_CHECKING:
    import pyarrow as pa

    from zveil.act.columns import ColumnsAct
    from zveil.act.swaps import Swaps
    from zveil.hold.steering import Steering
    from zveil.serve.keeping import Keeping

Answer = TypeVar("Answer")

# What is no larger is decided at once, if nothing else is: handing it over would take longer.
_SMALL = 8 << 10
# Columns of so many types share what they swap with those before; nobody sends more.
_MOST_KINDS = 64


@dataclass(kw_only=True)
class Decided:
    """What became of some lines of one request."""

    pieces: list[bytes] = field(default_factory=list)
    """What leaves, as whole lines."""
    lines: int = 0
    records: int = 0
    """Good ones: each was decided."""
    left: int = 0
    """Records with something released."""
    repeated: int = 0
    """Good ones that were left out: their id had been seen."""
    bad: dict[str, int] = field(default_factory=dict)
    """Bad lines by kind."""
    first_bad: tuple[int, str, int] | None = None
    """Where the first bad line is, from 1, what is wrong with it, and in which column."""

    @property
    def accepted(self) -> int:
        """Good records, whatever became of them."""
        return self.records + self.repeated

    def add(self, other: Decided) -> None:
        """Add what became of the lines that follow; not what leaves of them."""
        if self.first_bad is None and other.first_bad is not None:
            line, kind, column = other.first_bad
            self.first_bad = (self.lines + line, kind, column)
        self.lines += other.lines
        self.records += other.records
        self.left += other.left
        self.repeated += other.repeated
        for kind, count in other.bad.items():
            self.bad[kind] = self.bad.get(kind, 0) + count


class Engine:
    """The gates and all around them that requests share.

    Whole lines come in and are decided in one order, by one thread at a time; what a request has of
    a line that is not whole yet is the request's. So decisions are those of one stream, in the
    order in which blocks of lines came, and a request that ends in the middle of a line leaves
    nothing behind. All requests share what is found out about the stream, such as the format of its
    times, and the values that swaps are taken from.

    Parameters
    ----------
    policy
        What is decided and what leaves.
    keyring
        The keys of the pseudonyms; None if user ids leave as they are.
    gate_key
        As for `zveil.policy.Policy.gates`.
    threads
        For large blocks; any number writes the same bytes.
    max_line
        A line of more bytes is bad.
    memory
        Bytes for the state where the policy has no limit; no limit by default.
    ids_key
        32 secret bytes for the ids of events, where the policy names their field; random ones by
        default.
    keeping
        Saves the state and has what was saved; None if nothing is saved.
    meter
        Is shown what leaves; its periods must be those of the keyring.
    report
        Is told of every change where z tunes itself, and what the meter does not know.

    Raises
    ------
    PolicyError
        If the policy reads another format than NDJSON.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        keyring: Keyring | None,
        gate_key: bytes | None = None,
        threads: int = 1,
        max_line: int = MAX_LINE,
        memory: int | None = None,
        ids_key: bytes | None = None,
        keeping: Keeping | None = None,
        meter: Meter | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        form = format_of(policy.input.format) or Format.NDJSON
        if not form.is_json:
            raise PolicyError(("input", "format"), "the service takes NDJSON and Arrow only")
        self.policy = policy
        self.max_line = max_line
        self.latencies = Latencies()
        self.monitor = Monitor(self._figures)
        self.is_broken = False
        """Whether the gates refuse to decide."""
        self.keeping = keeping
        self._keyring = keyring
        self._meter = meter
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "zveil-decide")
        self.gates = policy.gates(threads=threads, key=gate_key, memory=memory)
        self._ids = None
        if policy.input.id is not None:
            saved = None if keeping is None else keeping.ids()
            self._ids = saved or event_ids(policy, ids_key, memory)
        self._act = TextAct(
            policy,
            self.gates,
            form,
            Format.NDJSON,
            keyring=keyring,
            max_line=max_line,
            stop_at_problem=False,
            threads=threads,
            ids=self._ids,
            meter=meter,
        )
        self._totals = Totals(policy)
        self._swaps: dict[tuple[str, ...], list[Swaps | None]] = {}
        self._time_format: str | None = None
        note: Mapping[str, Any] = {}
        if keeping is not None:
            note = keeping.resume(self.gates, self._act.way, keyring, self._totals)
            self._time_format = note.get("time_format")
            if meter is not None and (words := keeping.meter_into(meter, self.gates)):
                report(words)
        self._steering = None
        if policy.hold is not None:
            self._steering = self._steered(report, note.get("controller"))
        self._listeners: list[Callable[[bytes], None]] = []

    def _steered(
        self, report: Callable[[str], None], state: dict[str, Any] | None
    ) -> tuple[Steering, Steering]:
        """Make what tunes z, and let it go on from what was saved: for text, and for columns."""
        from zveil.hold.steering import Steering, steered

        controller = steered(self.policy, self.gates, self._meter, report)
        if state is not None:
            controller.resume(state)
        meter = cast(Meter, self._meter)
        return Steering(controller, meter), Steering(controller, meter)

    def listen(self, listener: Callable[[bytes], None]) -> Callable[[], None]:
        """Have a listener told every block of lines from now on; call what it gives to end that.

        It is called on the thread that decides, and must not take long.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def decide(self, lines: bytes) -> Decided:
        """Decide whole lines: whoever asks first is answered first."""
        arrived = time.perf_counter()
        # Tuning z may take long: not where connections are waited for.
        if self._steering is None and len(lines) <= _SMALL and self._lock.acquire(blocking=False):
            try:
                return self._decide(lines, arrived)
            finally:
                self._lock.release()
        return await self._in_turn(lambda: self._decide(lines, arrived))

    def columns(self, schema: pa.Schema) -> ColumnsAct:
        """Make what decides the batches of one request; raises as `ColumnsAct` does."""
        from zveil.act.columns import ColumnsAct

        with self._lock:
            kinds = tuple(map(str, schema.types))
            act = ColumnsAct(
                self.policy,
                self.gates,
                schema,
                keyring=self._keyring,
                shared=self._swaps.get(kinds),
                ids=self._ids,
                meter=self._meter,
            )
            if len(self._swaps) < _MOST_KINDS:
                self._swaps[kinds] = act.swaps
            act.moments.time_format = act.moments.time_format or self._time_format
        return act

    def decide_batch(self, act: ColumnsAct, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Decide a batch of a request, and give what leaves.

        Waits for its turn: not to be called where others must not wait.
        """
        arrived = time.perf_counter()
        with self._deciding():
            before = self._totals.reading(act)
            try:
                return self._act_on(act, batch)
            finally:
                self._totals.add(act, before)
                self._time_format = self._time_format or act.moments.time_format
                self.latencies.add(time.perf_counter() - arrived)

    def _act_on(self, act: ColumnsAct, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._steering is None:
            return act.act(batch)
        import pyarrow as pa

        pieces = self._steering[1].pieces_of_columns(batch.num_rows)
        slices = (batch.slice(piece.start, piece.stop - piece.start) for piece in pieces)
        left = [act.act(each) for each in slices] or [act.act(batch)]
        return pa.concat_batches(left)

    async def forget(self, user: str | int | float) -> int:
        """Erase a user from the state, here and in what is saved; how many values had them.

        A meter lets go of what it measures until pseudonyms change: nobody can be found there.
        """

        def erase() -> int:
            if self._meter is not None:
                self._meter.give_up()
            return sum(gate.forget(user) for gate in self.gates)

        found = await self._in_turn(erase)
        if self.keeping is not None:
            await self.save()
        return found

    @property
    def most_z(self) -> dict[str, int]:
        """The largest z that each attribute may be set to."""
        return {
            each.field: gate.z_max - gate.noise
            for gate, each in zip(self.gates, self.policy.attributes, strict=True)
        }

    async def set_z(self, z: int, attribute: str | None = None) -> None:
        """Set z anew for one attribute, or for all; ValueError if a gate cannot have it."""
        if self._steering is not None:
            raise ValueError("z: is tuned to hold the level that the policy states")

        def change() -> None:
            named = [
                gate
                for gate, each in zip(self.gates, self.policy.attributes, strict=True)
                if attribute in (None, each.field)
            ]
            if not named:
                raise ValueError("attribute: the policy has none of this name")
            most = min(gate.z_max - gate.noise for gate in named)
            if not 1 <= z <= most:
                raise ValueError(f"z: expected from 1 to {most}, the z_max of the policy")
            for gate in named:
                gate.z = z

        await self._in_turn(change)

    async def save(self) -> None:
        """Save the state now, and wait until it is; OSError if that fails."""
        await self._in_turn(lambda: self._save(wait=True))

    async def keep(self) -> None:
        """Do what is due: to be called about once a second."""
        if self.keeping is not None:
            await self._in_turn(self._save_if_due)
        await asyncio.get_running_loop().run_in_executor(None, self.monitor.tick)

    def close(self) -> None:
        """Decide nothing more, and save the state for the last time; OSError if that fails."""
        self._thread.shutdown(wait=True)
        if self.keeping is None:
            return
        try:
            with self._deciding():
                self._save(wait=True, ends=True)
        finally:
            self.keeping.close()

    async def _in_turn(self, work: Callable[[], Answer]) -> Answer:
        """Do something on the thread that decides, while nobody else does."""

        def alone() -> Answer:
            with self._deciding():
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, alone)

    @contextmanager
    def _deciding(self) -> Iterator[None]:
        with self._lock, self._noticed():
            yield

    @contextmanager
    def _noticed(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            # A gate says it so; other errors are made of that kind, too.
            self.is_broken |= type(error) is RuntimeError
            raise

    def _decide(self, lines: bytes, arrived: float) -> Decided:
        way = self._act.way
        # Lines are counted from here, and nothing of the lines before matters.
        way.start_file()
        before = way.tally()
        with self._noticed():
            pieces = self._lines(lines)
        after = way.tally()
        found = Decided(
            pieces=pieces,
            lines=after["lines"] - before["lines"],
            records=after["records"] - before["records"],
            left=sum(after["leaving"]) - sum(before["leaving"]),
            repeated=after["repeated"] - before["repeated"],
        )
        if after["bad"] != before["bad"]:
            for kind, count in after["bad"].items():
                if count > before["bad"][kind]:
                    found.bad[kind] = count - before["bad"][kind]
            found.first_bad = next(iter(way.take_troubles()), None)
        self.latencies.add(time.perf_counter() - arrived)
        for listener in tuple(self._listeners):
            listener(lines)
        return found

    def _lines(self, lines: bytes) -> list[bytes]:
        pieces: Iterable[slice] = [slice(None)]
        if self._steering is not None:
            pieces = self._steering[0].pieces_of_text(len(lines))
        return [bytes(text) for each in pieces for text in self._act.lines(lines[each], last=False)]

    def _save_if_due(self) -> None:
        if self.keeping is not None and self.keeping.is_due():
            self._save(wait=False)

    def _save(self, *, wait: bool, ends: bool = False) -> None:
        if self.keeping is not None:
            steering = self._steering
            held = None if steering is None else steering[0].controller.state()
            self.keeping.save(
                self.gates,
                self._act.way,
                self._keyring,
                self._totals,
                self._ids,
                self._meter,
                {"time_format": self._time_format, "controller": held, "ended": ends},
                wait=wait,
            )

    def _figures(self) -> Figures:
        with self._lock:
            summary = self._totals.summary(self._act.way, self.gates)
            held = [gate.stats(entries=False) for gate in self.gates]
            if self._steering is not None:
                summary.hold = self._steering[0].controller.account()
        if self._meter is not None:
            summary.meter = Measured.of(self._meter, is_brief=True)
        keeping = self.keeping
        return figures(
            summary,
            held,
            self.latencies,
            snapshot_age=None if keeping is None else keeping.age,
            snapshot_failures=0 if keeping is None else keeping.failures,
        )
