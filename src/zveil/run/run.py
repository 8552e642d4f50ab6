"""A run: its inputs in their order, its account, and its end."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from zveil._native import EventIds, Keyring
from zveil.durations import LONGEST_NS, duration_ns
from zveil.fields import FieldError
from zveil.gate import Gate
from zveil.io import ByteSource, Format, Input
from zveil.meter import Meter
from zveil.policy import Policy
from zveil.run.ending import BadInputError, Stop
from zveil.run.outlet import Outlet
from zveil.run.station import Counts, Pauses, Setting
from zveil.run.text import TextStream
from zveil.summary import Measured, Summary

if TYPE_CHECKING:
    from zveil.hold.steering import Steering
    from zveil.io.columnar import BatchSource
    from zveil.io.parquet_files import ParquetSource
    from zveil.run.columns import ColumnStream
    from zveil.run.keeper import Keeper
    from zveil.run.parquet import ParquetStream
    from zveil.state.store import Store

Watch = Callable[["Run"], None]

MAX_LINE = 1 << 20
MAX_BAD = 0.1

_YEAR_NS = 365 * 86_400 * 10**9

# Of the memory for the state, an eighth is for ids of events.
_SHARE_OF_IDS = 8
_ID_BYTES = 32
_MOST_IDS = 20_000_000
_LEAST_IDS = 100_000


def _sets(policy: Policy, trial: Sequence[int]) -> list[int | None]:
    """Give the z of each set of gates; None for the policy's own, of which each has its own."""
    if not trial:
        return [None]
    own = {attribute.z for attribute in policy.attributes}
    return [*trial] if len(own) == 1 and own <= set(trial) else [None, *trial]


def event_ids(policy: Policy, key: bytes | None, memory: int | None) -> EventIds:
    """Make what remembers the ids of events, for as long as an event may come again and count.

    Parameters
    ----------
    policy
        Its windows and limits.
    key
        32 secret bytes for the hashes; random ones by default.
    memory
        Bytes for the state where the policy has no limit, of which an eighth is for ids.
    """
    room = policy.limits.meaning().get("memory", memory)
    future = policy.limits.max_future
    longest = max(each.window_ns for each in policy.attributes)
    return EventIds(
        key=secrets.token_bytes(32) if key is None else key,
        window_ns=min(longest + policy.lateness_ns, LONGEST_NS),
        most=_MOST_IDS if room is None else max(room // _SHARE_OF_IDS // _ID_BYTES, _LEAST_IDS),
        max_future_ns=None if future is None else duration_ns(future, "max_future"),
    )


class Run:
    """A stream from its inputs through the gates to its output.

    What has arrived is decided and written at once: a line in a slow pipe as well as a megabyte in
    a fast one. Files are read in their order as one stream.

    Parameters
    ----------
    policy
        What is decided and what leaves.
    inputs
        Where events come from, as `zveil.io.find` gives them; all of one format.
    output
        The file to write; None for standard output.
    to
        The format to write, by default by the ending of `output`, else that of the input.
    keyring
        The keys of the pseudonyms, from `zveil.keys`; None if user ids leave as they are.
    gate_key
        32 secret bytes that the keys of the gates are derived from; random ones by default.
    threads
        For large batches; any number writes the same bytes.
    stop_at_problem
        The first bad line ends the run.
    max_bad
        The share of bad lines past which the run ends, once a thousand lines were read.
    max_line
        A line of more bytes is bad.
    trial
        Write nothing, and count what each of these z would release.
    report
        Is told about bad lines: file, line, kind and column.
    memory
        Bytes for the state where the policy has no limit; no limit by default.
    store
        Where the state is kept, and gone on from; by default it ends with the run.
    meter
        Is shown what leaves, and is part of the account; its periods must be those of the keyring.
    """

    def __init__(
        self,
        policy: Policy,
        inputs: Sequence[Input],
        *,
        output: str | None = None,
        to: Format | None = None,
        keyring: Keyring | None,
        gate_key: bytes | None = None,
        threads: int = 1,
        stop_at_problem: bool = False,
        max_bad: float = MAX_BAD,
        max_line: int = MAX_LINE,
        trial: Sequence[int] = (),
        report: Callable[[str], None] = lambda _: None,
        memory: int | None = None,
        store: Store | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.policy = policy
        self._meter = meter
        self.inputs = list(inputs)
        formats = list(dict.fromkeys(source.format for source in inputs if source.format))
        if len(formats) > 1:
            raise FieldError(
                f"{', '.join(formats)}: files of several formats; run one format at a time"
            )
        self._zs = _sets(policy, trial)
        self._report = report
        is_kept = store is not None
        self._outlet = Outlet(output, to, self.inputs, writes=not trial, can_be_cut=is_kept)
        self._stop = Stop()
        part = None if memory is None else memory // len(self._zs)
        sets = (policy.gates(z=z, threads=threads, key=gate_key, memory=part) for z in self._zs)
        self._gates = [gate for each in sets for gate in each]
        self._left = self.inputs
        self._keeper: Keeper | None = None
        if store is not None:
            from zveil.run.keeper import Keeper

            self._keeper = Keeper(
                store,
                policy,
                self.inputs,
                self._outlet,
                self._gates,
                keyring,
                meter,
                report,
                self._stop,
                threads=threads,
            )
            self._left = self._keeper.left
        self._steering = None if policy.hold is None else self._steered(policy, meter)
        if self._keeper is not None and self._steering is not None:
            self._keeper.steer(self._steering)
        self._setting = Setting(
            policy=policy,
            gates=self._gates,
            keyring=keyring,
            threads=threads,
            stop_at_problem=stop_at_problem,
            max_bad=max_bad,
            max_line=max_line,
            report=report,
            outlet=self._outlet,
            stop=self._stop,
            ids=self._ids(memory, store),
            gap=None if self._keeper is None else self._keeper.gap,
            meter=meter,
            steering=self._steering,
        )
        self._stream: TextStream | ColumnStream | ParquetStream | None = None
        self._source: ByteSource | BatchSource | ParquetSource | None = None
        self._format: Format | None = None
        self._done_bytes = 0 if self._keeper is None else self._keeper.finished_bytes
        self._began = time.monotonic()

    def _steered(self, policy: Policy, meter: Meter | None) -> Steering:
        """Make what tunes z."""
        # Loads the model, which takes longer than a run without it needs to start.
        from zveil.hold.steering import Steering, steered

        if not self._outlet.writes or meter is None:
            raise ValueError("hold: expected with a meter, and no trial of other z")
        return Steering(steered(policy, self._gates, meter, self._report), meter)

    def go(self, watch: Watch = lambda _: None) -> Summary:
        """Run to the end; whatever ends it, what was decided is written.

        Parameters
        ----------
        watch
            Is called after each block of events.

        Raises
        ------
        SourceError, SinkError, SinkClosed
            If reading or writing fails.
        BadInputError, FieldError
            If the input is not what the policy says.
        Stopped
            After `stop`.
        """
        self._began = time.monotonic()
        try:
            for number, source in enumerate(self._left):
                self._stop.check()
                self._go_through(number, source, watch)
            if self._stream is not None:
                self._stream.check_end()
            self._check_any()
        finally:
            try:
                if self._keeper is not None:
                    self._keeper.close(self._stream)
            finally:
                self._outlet.close()
        return self.summary()

    def stop(self) -> None:
        """End the run as soon as what has been read is decided and written.

        May be called from a signal handler: it raises `Stopped` there if the run is only waiting.
        """
        self._stop.ask()

    def summary(self, *, is_brief: bool = False) -> Summary:
        """Give the account as it stands; without the periods of a meter where it is to be brief."""
        counts = Counts() if self._keeper is None else self._keeper.counts
        if self._stream is not None:
            counts = self._stream.counts()
        found = Summary(
            policy=self.policy.fingerprint,
            lines=counts.lines,
            records=counts.records,
            passed=counts.passed,
            bad=counts.bad,
            time_format=counts.time_format,
        )
        own = found.take(self.policy.attributes, self._gates, self._zs, counts.filtered)
        first = own * len(self.policy.attributes)
        for number, attribute in enumerate(self.policy.attributes):
            if attribute.hierarchy is not None:
                released = counts.levels[first + number] if counts.levels else []
                outcome = found.outcomes[number]
                found.outcomes[number] = outcome.at_levels(attribute.hierarchy.names, released)
            if attribute.swap and self._outlet.writes:
                count = counts.swapped[number] if counts.swapped else 0
                found.outcomes[number] = replace(found.outcomes[number], swapped=count)
        if counts.leaving:
            is_blank = self.policy.record.empty == "blank"
            found.left = found.records if is_blank else counts.leaving[own]
            found.rungs = [
                replace(rung, records=left)
                for rung, left in zip(found.rungs, counts.leaving, strict=True)
            ]
        if self._outlet.writes:
            found.rungs = []
        if self._setting.ids is not None:
            found.repeated, found.forgotten_ids = counts.repeated, self._setting.ids.forgotten
        if self._keeper is not None:
            found.state = self._keeper.keeping()
        if self._meter is not None:
            found.meter = Measured.of(self._meter, is_brief=is_brief)
        if self._steering is not None:
            found.hold = self._steering.controller.account()
        found.bytes_in = self.position
        found.bytes_out = self._outlet.position
        found.seconds = time.monotonic() - self._began
        return found

    @property
    def gates(self) -> list[Gate]:
        """The gates of the policy, one for each attribute; of a trial, those of its first z."""
        return self._gates[: len(self.policy.attributes)]

    @property
    def took_s(self) -> float:
        """Seconds since what is decided and written by now has arrived."""
        return time.perf_counter() - self._stop.resumed

    @property
    def position(self) -> int:
        """Bytes read so far, as stored."""
        return self._done_bytes + (0 if self._source is None else self._source.position)

    @property
    def has_failed_to_save(self) -> bool:
        """Whether the state of what was decided last is not on the disk, though it was to be."""
        return self._keeper is not None and self._keeper.has_failed

    @property
    def size(self) -> int | None:
        """Bytes of all inputs; None if one of them is a pipe."""
        sizes = [source.size for source in self.inputs]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def _go_through(self, number: int, source: Input, watch: Watch) -> None:
        with ByteSource(source) as opened, self._counted():
            self._source = opened
            with self._stop.waiting():
                form = opened.format
            if self._format not in (None, form):
                raise FieldError(
                    f"{source.name}: is {form}, and those before are {self._format}; "
                    "run one format at a time"
                )
            self._format = form
            keeper, done, state = self._keeper, None, None
            if keeper is not None:
                keeper.begin(opened)
                done, state = (keeper.done if number == 0 else None), keeper.stream
            stream = self._stream
            if form.is_text:
                if not isinstance(stream, TextStream):
                    stream = self._stream = TextStream(self._setting, form, state)
                with self._kept(stream, opened):
                    stream.go_through(opened, self._pauses(stream, opened, number, watch), done)
                return
            if stream is None or isinstance(stream, TextStream):
                stream = self._stream = self._columns(form, state)
            with stream.batches(opened, done) as batches, self._kept(stream, batches):
                self._source = batches
                # Each stream goes through what it has opened.
                going: Any = stream.go_through
                going(batches, self._pauses(stream, batches, number, watch))

    def _columns(
        self, form: Format, state: Mapping[str, Any] | None
    ) -> ColumnStream | ParquetStream:
        """Give the way of columns that is for these inputs and this policy."""
        if form is Format.PARQUET:
            from zveil.run.parquet import ParquetStream

            plain = ParquetStream.fitting(self._setting, self._left, state)
            if plain is not None:
                return plain
        from zveil.run.columns import ColumnStream

        return ColumnStream(self._setting, form, state)

    @contextmanager
    def _kept(
        self,
        stream: TextStream | ColumnStream | ParquetStream,
        source: ByteSource | BatchSource | ParquetSource,
    ) -> Iterator[None]:
        """Note how far an input was read, whatever ends that, while it is open."""
        keeper = self._keeper
        if keeper is None:
            yield
            return
        try:
            yield
        except BaseException:
            keeper.leave(stream, source)
            raise
        keeper.end(source, stream.done(source))

    def _pauses(
        self,
        stream: TextStream | ColumnStream | ParquetStream,
        source: ByteSource | BatchSource | ParquetSource,
        number: int,
        watch: Watch,
    ) -> Pauses:
        keeper = self._keeper
        if keeper is None:
            return Pauses(between=lambda: watch(self))

        def between() -> None:
            watch(self)
            keeper.between(stream, source)

        def rest() -> None:
            # Of an input that another follows nothing is going to come any more.
            if number == len(self._left) - 1:
                keeper.save_before_rest(stream, source)

        return Pauses(between=between, idle=lambda: keeper.idle(stream, source), rest=rest)

    def _ids(self, memory: int | None, store: Store | None) -> EventIds | None:
        """Give what remembers the ids of events, where the policy names their field."""
        policy = self.policy
        if policy.input.id is None or not self._outlet.writes:
            return None
        if self._keeper is not None and self._keeper.ids is not None:
            return self._keeper.ids
        ids = event_ids(policy, None if store is None else store.secret("ids"), memory)
        if self._keeper is not None:
            self._keeper.ids = ids
        return ids

    def _check_any(self) -> None:
        """Call it bad input where nothing of it was good."""
        found = self.summary()
        if found.bad and not found.records:
            raise BadInputError(f"all {found.bad_lines:,} lines are bad")
        self._warn(found)

    def _warn(self, found: Summary) -> None:
        """Say what looks like a mistake, though it is none that ends a run."""
        clocks = [gate.stats().clock_ns for gate in self._gates]
        latest = max((clock for clock in clocks if clock is not None), default=None)
        if latest is not None and _YEAR_NS / 365 < latest < _YEAR_NS:
            self._report(
                f"warning: all times fall into 1970 if they are {found.time_format}; a wrong "
                "--time-format releases too much"
            )
        if self._stream is not None:
            self._stream.warn()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Add up what was read of one input after another."""
        try:
            yield
        finally:
            read, self._source = self.position, None
            self._done_bytes = read
