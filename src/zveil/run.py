"""One stream on its way: files or a pipe in, what is safe out, decided as it arrives."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from zveil._native import Keyring, problem_sentence
from zveil.act import TextAct
from zveil.fields import FieldError, names_of, no_such_field, wrong_columns
from zveil.io import ByteSink, ByteSource, Format, Input, SourceError, of_path
from zveil.policy import EVERYTHING, Policy
from zveil.summary import Summary

if TYPE_CHECKING:
    import pyarrow as pa

    from zveil.act.columns import ColumnsAct
    from zveil.io.batch_sinks import BatchSink
    from zveil.io.columnar import BatchSource

Watch = Callable[["Run"], None]

MAX_LINE = 1 << 20
MAX_BAD = 0.1

# Bytes read in one go: these stay in the cache; several threads need more to be worth starting.
_BLOCK = 256 << 10
_BLOCK_FOR_THREADS = 4 << 20
# A share of few lines says little.
_LINES_FOR_A_SHARE = 1_000
# So many lines without a field are enough to call its name wrong.
_LINES_WITHOUT_FIELD = 10
_HEAD = 1 << 16
_SHOWN = 10
_YEAR_NS = 365 * 86_400 * 10**9


class BadInputError(ValueError):
    """Too much of the input is bad, or any where that was to end it."""


class Stopped(Exception):  # noqa: N818  # no error: someone asked for it
    """The run was asked to stop, and has."""


def _sets(policy: Policy, trial: Sequence[int]) -> list[int | None]:
    """Give the z of each set of gates; None for the policy's own, of which each has its own."""
    if not trial:
        return [None]
    own = {attribute.z for attribute in policy.attributes}
    return [*trial] if len(own) == 1 and own <= set(trial) else [None, *trial]


def _written_ns(source: Input) -> int | None:
    """Give when an input was written; None for a pipe."""
    if source.path is None or source.size is None:
        return None
    return os.stat(source.path).st_mtime_ns


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
        self._output = output
        self._to = to or (None if output is None else of_path(output)[0])
        self._keyring = keyring
        self._threads = threads
        self._stop_at_problem = stop_at_problem
        self._max_bad = max_bad
        self._max_line = max_line
        self._zs = _sets(policy, trial)
        self._writes = not trial
        self._report = report
        self._reported = 0
        self._held: list[tuple[str, int, str, int]] = []
        sets = (policy.gates(z=z, threads=threads, key=gate_key) for z in self._zs)
        self._gates = [gate for each in sets for gate in each]
        self._act: TextAct | ColumnsAct | None = None
        self._sink: ByteSink | BatchSink | None = None
        self._source: ByteSource | BatchSource | None = None
        self._format: Format | None = None
        self._head = b""
        self._done_bytes = 0
        self._has_header = False
        self._began = time.monotonic()
        self._ended = "end of input"
        self._is_asked_to_stop = False
        self._is_waiting = False

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
            for number, source in enumerate(self.inputs):
                self._check_stop()
                self._go_through(source, watch)
                if number == len(self.inputs) - 1:
                    self._check_fields(is_over=True)
                    self._check_any()
        finally:
            sink, self._sink = self._sink, None
            if sink is not None:
                sink.close()
                self._written = sink.position
        return self.summary()

    def stop(self) -> None:
        """End the run as soon as what has been read is decided and written.

        May be called from a signal handler: it raises `Stopped` there if the run is only waiting.
        """
        self._is_asked_to_stop = True
        if self._is_waiting:
            raise Stopped

    def summary(self) -> Summary:
        """Give the account as it stands."""
        found = Summary(policy=self.policy.fingerprint)
        leaving: list[int] = []
        swapped: list[int] = []
        levels: Sequence[Sequence[int]] = []
        filtered: list[int] = []
        if isinstance(self._act, TextAct):
            tally = self._act.way.tally()
            levels, swapped = tally["levels"], tally["swapped"]
            found.lines, found.records, leaving = tally["lines"], tally["records"], tally["leaving"]
            found.bad = {kind: count for kind, count in tally["bad"].items() if count}
            found.passed, filtered = tally["passed"], tally["filtered"]
            found.time_format = self._act.way.time_format
        elif self._act is not None:
            found.records, leaving = self._act.records, self._act.leaving
            levels, swapped = self._act.levels, self._act.swapped
            filtered = self._act.filtered
            found.time_format = self._act.moments.time_format
            if self._act.moments.bad:
                found.bad = {"time": self._act.moments.bad}
        own = found.take(self.policy.attributes, self._gates, self._zs, filtered)
        first = own * len(self.policy.attributes)
        for number, attribute in enumerate(self.policy.attributes):
            if attribute.hierarchy is not None:
                released = levels[first + number] if levels else []
                outcome = found.outcomes[number]
                found.outcomes[number] = outcome.at_levels(attribute.hierarchy.names, released)
            if attribute.swap and self._writes:
                count = swapped[number] if swapped else 0
                found.outcomes[number] = replace(found.outcomes[number], swapped=count)
        if leaving:
            is_blank = self.policy.record.empty == "blank"
            found.left = found.records if is_blank else leaving[own]
            found.rungs = [
                replace(rung, records=left) for rung, left in zip(found.rungs, leaving, strict=True)
            ]
        if self._writes:
            found.rungs = []
        found.bytes_in = self.position
        found.bytes_out = self._sink.position if self._sink is not None else self._written
        found.seconds = time.monotonic() - self._began
        return found

    _written = 0

    @property
    def position(self) -> int:
        """Bytes read so far, as stored."""
        return self._done_bytes + (0 if self._source is None else self._source.position)

    @property
    def size(self) -> int | None:
        """Bytes of all inputs; None if one of them is a pipe."""
        sizes = [source.size for source in self.inputs]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def _go_through(self, source: Input, watch: Watch) -> None:
        with ByteSource(source) as opened, self._counted():
            self._source = opened
            with self._waiting():
                form = opened.format
            if self._format not in (None, form):
                raise FieldError(
                    f"{source.name}: is {form}, and those before are {self._format}; "
                    "run one format at a time"
                )
            self._format = form
            if form.is_text:
                self._text(opened, watch)
            else:
                with self._batches(opened) as batches:
                    self._source = batches
                    self._columns(batches, watch)

    def _text(self, source: ByteSource, watch: Watch) -> None:
        act = self._text_act(source)
        act.way.start_file(_written_ns(source.input))
        most = _BLOCK if self._threads == 1 else _BLOCK_FOR_THREADS
        while True:
            if not source.pending(most) and self._sink is not None:
                self._sink.flush()
            failure = None
            try:
                with self._waiting():
                    data = source.read(most)
            except SourceError as error:
                # What came before counts, and is written before anyone hears of the rest.
                data, failure = b"", error
            if len(self._head) < _HEAD:
                self._head += data[: _HEAD - len(self._head)]
            with self._named(source.input):
                self._write_text(act, data)
            self._tell(source.input, act)
            if failure is not None:
                raise failure
            self._check_text(source.input, act)
            watch(self)
            if not data:
                return
            self._check_stop()

    def _text_act(self, source: ByteSource) -> TextAct:
        if isinstance(self._act, TextAct):
            return self._act
        form = source.format
        to = self._to or form.written
        if self.policy.keeps_all and form.is_json and to is not Format.NDJSON:
            raise FieldError(
                f"keep: '*' cannot be written as {to}, whose columns must be known beforehand; "
                "name the fields to keep"
            )
        act = TextAct(
            self.policy,
            self._gates,
            form,
            to if self._writes else None,
            keyring=self._keyring,
            max_line=self._max_line,
            stop_at_problem=self._stop_at_problem,
            threads=self._threads,
        )
        self._act = act
        if self._writes and to.is_text:
            self._sink = ByteSink(self._output, inputs=self.inputs)
        self._to = to
        return act

    def _write_text(self, act: TextAct, data: bytes) -> None:
        if not self._writes:
            act.lines(data, last=not data)
        elif isinstance(self._sink, ByteSink):
            for lines in act.lines(data, last=not data):
                self._sink.write(lines)
        else:
            batches = act.batches(data, last=not data)
            if self._sink is None and (batches or not data):
                from zveil.io.batch_sinks import BatchSink

                self._sink = BatchSink(
                    self._output, act.schema, format=self._to, inputs=self.inputs
                )
            if self._sink is not None:
                for batch in batches:
                    self._sink.write(batch)

    def _columns(self, source: BatchSource, watch: Watch) -> None:
        import pyarrow as pa

        with self._named(source.input):
            act = self._columns_act(source)
        while True:
            if not source.pending() and self._sink is not None:
                self._sink.flush()
            with self._waiting():
                batch = next(source, None)
            if batch is None:
                return
            try:
                left = act.act(batch)
                if self._sink is not None and left.num_rows:
                    self._write_columns(self._sink, left)
            except pa.ArrowException:  # whose own words may quote data
                raise FieldError(
                    f"{source.input.name}: a column is not of the type it had in the files before, "
                    "or of one that cannot be used"
                ) from None
            if self._stop_at_problem and act.moments.bad:
                raise BadInputError(f"{source.input.name}: a time cannot be read")
            watch(self)
            self._check_stop()

    def _batches(self, source: ByteSource) -> BatchSource:
        """Open it so that only what leaves is read, where it can be opened twice."""
        from zveil.io.columnar import BatchSource

        if source.input.size is None or source.input.path is None:
            return BatchSource(source)
        with BatchSource(source.input) as whole, self._named(source.input):
            act = self._columns_act(whole)
        return BatchSource(source.input, act.reads, worded=act.worded)

    def _columns_act(self, source: BatchSource) -> ColumnsAct:
        from zveil.act.columns import ColumnsAct

        if isinstance(self._act, ColumnsAct):
            self._act.check(source.schema)
            return self._act
        act = ColumnsAct(
            self.policy,
            self._gates,
            source.schema,
            keyring=self._keyring,
            stop_at_problem=self._stop_at_problem,
        )
        self._act = act
        to = self._to or source.input.format or self._format
        self._to = to
        if not self._writes or to is None:
            return act
        if to.is_text:
            self._sink = ByteSink(self._output, inputs=self.inputs)
            if to is not Format.NDJSON:
                self._write_columns(self._sink, act.nothing())
        else:
            from zveil.io.batch_sinks import BatchSink

            self._sink = BatchSink(self._output, act.schema, format=to, inputs=self.inputs)
        return act

    def _write_columns(self, sink: ByteSink | BatchSink, batch: pa.RecordBatch) -> None:
        if not isinstance(sink, ByteSink):
            sink.write(batch)
            return
        from zveil.io.lines import to_csv, to_ndjson

        if self._to is Format.NDJSON:
            sink.write(to_ndjson(batch))
        else:
            delimiter = "," if self._to is Format.CSV else "\t"
            sink.write(to_csv(batch, delimiter, header=not self._has_header))
            self._has_header = True

    def _tell(self, source: Input, act: TextAct) -> None:
        """Report bad lines: where they are and what is wrong, never what they hold."""
        self._held += [(source.name, *trouble) for trouble in act.way.take_troubles()]
        if self._is_field_missing(act) and not act.way.stopped:
            return  # perhaps in all: then one message says more
        troubles, self._held = self._held, []
        for name, line, kind, column in troubles:
            self._reported += 1
            if self._reported <= _SHOWN:
                self._report(f"{name}:{line}:{column}: {problem_sentence(kind)}")
            elif self._reported == _SHOWN + 1:
                self._report("further bad lines are only counted")

    def _check_text(self, source: Input, act: TextAct) -> None:
        self._check_fields(is_over=False)
        if act.way.stopped:
            raise BadInputError(f"{source.name}: stopped at the first bad line")
        tally = act.way.tally()
        bad, lines = sum(tally["bad"].values()), tally["lines"] - tally["passed"]
        if lines >= _LINES_FOR_A_SHARE and bad > self._max_bad * lines:
            raise BadInputError(
                f"{source.name}: {bad:,} of {lines:,} lines are bad, more than "
                f"{self._max_bad:.0%} (see --max-bad); what was good before was written"
            )

    def _check_fields(self, *, is_over: bool) -> None:
        """End it early where no line has a field: its name is wrong."""
        if not isinstance(self._act, TextAct) or not self._is_json:
            return
        enough = 1 if is_over else _LINES_WITHOUT_FIELD
        if not self._is_field_missing(self._act, enough):
            return
        names = self._names()
        wanted = [self.policy.time.field, self.policy.user.field]
        wanted += [name for each in self.policy.attributes for name in each.reads]
        absent = [name for name in wanted if name not in names] or list(wanted)
        raise FieldError(no_such_field(absent[0], names))

    @property
    def _is_json(self) -> bool:
        return self._format is not None and self._format.is_json

    def _names(self) -> list[str]:
        return names_of(self._head, flat=self._format is Format.ZEEK_JSON)

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
        if self._is_json:
            names = self._names()
            for name in self.policy.record.keep:
                inside = any(other.startswith(f"{name}.") for other in names)
                if name != EVERYTHING and name not in names and not inside:
                    self._report(f"warning: --keep: the first records have no field {name!r}")

    def _is_field_missing(self, act: TextAct, enough: int = 1) -> bool:
        """Whether every line so far, and enough of them, lack a field."""
        tally = act.way.tally()
        missing, bad = tally["bad"]["missing-field"], sum(tally["bad"].values())
        return tally["records"] == 0 and missing == bad and missing >= enough

    def _check_stop(self) -> None:
        if self._is_asked_to_stop:
            raise Stopped

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self._check_stop()
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Add up what was read of one input after another."""
        try:
            yield
        finally:
            read, self._source = self.position, None
            self._done_bytes = read

    @contextmanager
    def _named(self, source: Input) -> Iterator[None]:
        """Say which file lacks a column."""
        try:
            yield
        except LookupError as error:
            is_text = self._format is not None and self._format.is_text
            raise FieldError(f"{source.name}: {wrong_columns(error, is_text=is_text)}") from None
