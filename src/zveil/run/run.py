"""A run: its inputs in their order, its account, and its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from zveil._native import Keyring
from zveil.fields import FieldError
from zveil.io import ByteSource, Format, Input
from zveil.policy import Policy
from zveil.run.ending import BadInputError, Stop
from zveil.run.outlet import Outlet
from zveil.run.station import Counts, Setting
from zveil.run.text import TextStream
from zveil.summary import Summary

if TYPE_CHECKING:
    from zveil.io.columnar import BatchSource
    from zveil.run.columns import ColumnStream

Watch = Callable[["Run"], None]

MAX_LINE = 1 << 20
MAX_BAD = 0.1

_YEAR_NS = 365 * 86_400 * 10**9


def _sets(policy: Policy, trial: Sequence[int]) -> list[int | None]:
    """Give the z of each set of gates; None for the policy's own, of which each has its own."""
    if not trial:
        return [None]
    own = {attribute.z for attribute in policy.attributes}
    return [*trial] if len(own) == 1 and own <= set(trial) else [None, *trial]


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
    ) -> None:
        self.policy = policy
        self.inputs = list(inputs)
        formats = list(dict.fromkeys(source.format for source in inputs if source.format))
        if len(formats) > 1:
            raise FieldError(
                f"{', '.join(formats)}: files of several formats; run one format at a time"
            )
        self._zs = _sets(policy, trial)
        self._report = report
        self._outlet = Outlet(output, to, self.inputs, writes=not trial)
        self._stop = Stop()
        sets = (policy.gates(z=z, threads=threads, key=gate_key) for z in self._zs)
        self._gates = [gate for each in sets for gate in each]
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
        )
        self._stream: TextStream | ColumnStream | None = None
        self._source: ByteSource | BatchSource | None = None
        self._format: Format | None = None
        self._done_bytes = 0
        self._began = time.monotonic()

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
            for source in self.inputs:
                self._stop.check()
                self._go_through(source, lambda: watch(self))
            if self._stream is not None:
                self._stream.check_end()
            self._check_any()
        finally:
            self._outlet.close()
        return self.summary()

    def stop(self) -> None:
        """End the run as soon as what has been read is decided and written.

        May be called from a signal handler: it raises `Stopped` there if the run is only waiting.
        """
        self._stop.ask()

    def summary(self) -> Summary:
        """Give the account as it stands."""
        counts = Counts() if self._stream is None else self._stream.counts()
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
        found.bytes_in = self.position
        found.bytes_out = self._outlet.position
        found.seconds = time.monotonic() - self._began
        return found

    @property
    def position(self) -> int:
        """Bytes read so far, as stored."""
        return self._done_bytes + (0 if self._source is None else self._source.position)

    @property
    def size(self) -> int | None:
        """Bytes of all inputs; None if one of them is a pipe."""
        sizes = [source.size for source in self.inputs]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def _go_through(self, source: Input, between: Callable[[], None]) -> None:
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
            if form.is_text:
                if not isinstance(self._stream, TextStream):
                    self._stream = TextStream(self._setting, form)
                self._stream.go_through(opened, between)
                return
            from zveil.run.columns import ColumnStream

            if not isinstance(self._stream, ColumnStream):
                self._stream = ColumnStream(self._setting, form)
            with self._stream.batches(opened) as batches:
                self._source = batches
                self._stream.go_through(batches, between)

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
