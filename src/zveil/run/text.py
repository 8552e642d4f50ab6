"""The way of text: blocks of lines, decided and written as they arrive."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping
from typing import Any

from zveil._native import problem_sentence
from zveil.act import TextAct
from zveil.fields import FieldError, names_of, no_such_field
from zveil.io import ByteSource, Format, Input, SourceError
from zveil.policy import EVERYTHING
from zveil.run.ending import BadInputError
from zveil.run.station import Counts, Pauses, Setting, named
from zveil.state.error import RESET, StateError

# Bytes read in one go: what a pipe holds; several threads need more to be worth starting.
_BLOCK = 1 << 20
_BLOCK_FOR_THREADS = 4 << 20
# A share of few lines says little.
_LINES_FOR_A_SHARE = 1_000
# So many lines without a field are enough to call its name wrong.
_LINES_WITHOUT_FIELD = 10
_HEAD = 1 << 16
_SHOWN = 10


class TextStream:
    """Inputs of text, one behind the other, through the gates.

    Parameters
    ----------
    setting
        What it is told.
    form
        The format of all inputs.
    state
        What `state` gave: go on from there.
    """

    def __init__(
        self, setting: Setting, form: Format, state: Mapping[str, Any] | None = None
    ) -> None:
        self._setting = setting
        self._outlet = setting.outlet
        self._format = form
        self._head = b""
        self._reported = 0
        self._held: list[tuple[str, int, str, int]] = []
        to = self._outlet.to or form.written
        if setting.policy.keeps_all and form.is_json and to is not Format.NDJSON:
            raise FieldError(
                f"keep: '*' cannot be written as {to}, whose columns must be known beforehand; "
                "name the fields to keep"
            )
        self._act = TextAct(
            setting.policy,
            setting.gates,
            form,
            to if self._outlet.writes else None,
            keyring=setting.keyring,
            max_line=setting.max_line,
            stop_at_problem=setting.stop_at_problem,
            threads=setting.threads,
            ids=setting.ids,
            meter=setting.meter,
        )
        self.is_settled = True
        """Whether all that is decided is written."""
        if state is not None:
            self._resume(state)
        self._outlet.to = to
        if self._outlet.writes and to.is_text:
            self._outlet.open_lines(self._act.way.fields)

    def _resume(self, state: Mapping[str, Any]) -> None:
        try:
            if state["form"] != self._format:
                raise ValueError(f"it is of {state['form']}, not of {self._format}")
            self._act.way.resume(base64.b64decode(state["way"]))
        except ValueError as error:
            raise StateError(f"the state does not fit this input: {error}; {RESET}") from None

    def state(self) -> dict[str, Any]:
        """Give all that decides what happens next, for JSON."""
        return {"form": self._format, "way": base64.b64encode(self._act.way.state()).decode()}

    def done(self, _: object) -> int:
        """Give how many bytes of the present input are decided."""
        return self._act.way.consumed

    def go_through(self, source: ByteSource, pauses: Pauses, done: int | None = None) -> None:
        """Read one input to its end, or from where a state was saved that it was made with."""
        way, stop = self._act.way, self._setting.stop
        if done is None:
            way.start_file(_written_ns(source.input))
        else:
            source.skip(done)
        most = _BLOCK if self._setting.threads == 1 else _BLOCK_FOR_THREADS
        while True:
            failure = None
            try:
                if not source.pending(most):
                    self._outlet.flush()
                    pauses.idle()
                with stop.waiting():
                    data = source.read(most)
            except SourceError as error:
                # What came before counts, and is written before anyone hears of the rest.
                data, failure = b"", error
            if len(self._head) < _HEAD:
                self._head += data[: _HEAD - len(self._head)]
            if not data and way.consumed < source.given:
                pauses.rest()
            self.is_settled = False
            with named(source.input, is_text=True):
                for piece in self._pieces(data):
                    self._write(piece)
            self.is_settled = True
            is_clean = way.is_clean
            if not is_clean:
                self._tell(source.input)
            if failure is not None:
                raise failure
            if not is_clean:
                self._check(source.input)
            pauses.between()
            if not data:
                return
            stop.check()

    def counts(self) -> Counts:
        """Tell what there was so far."""
        tally = self._act.way.tally()
        return Counts(
            lines=tally["lines"],
            records=tally["records"],
            passed=tally["passed"],
            bad={kind: count for kind, count in tally["bad"].items() if count},
            leaving=tally["leaving"],
            levels=tally["levels"],
            swapped=tally["swapped"],
            filtered=tally["filtered"],
            repeated=tally["repeated"],
            time_format=self._act.way.time_format,
        )

    def check_end(self) -> None:
        """Raise the `FieldError` for a field that no line had."""
        self._check_fields(is_over=True)

    def warn(self) -> None:
        """Say what looks like a mistake, though it is none that ends a run."""
        if not self._format.is_json or not self._head:
            return
        names = self._names()
        for name in self._setting.policy.record.keep:
            inside = any(other.startswith(f"{name}.") for other in names)
            if name != EVERYTHING and name not in names and not inside:
                self._setting.report(f"warning: --keep: the first records have no field {name!r}")

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Give what has come, at once; or line by line while the first event is looked for."""
        gap = self._setting.gap
        while gap is not None and gap.is_open and (end := data.find(b"\n") + 1):
            before = self._act.way.tally()["records"]
            yield from self._steered(data[:end])
            data = data[end:]
            gap.look(has_event=self._act.way.tally()["records"] > before)
            if not data:
                return
        yield from self._steered(data)

    def _steered(self, data: bytes) -> Iterator[bytes]:
        """Cut what has come where z is tuned."""
        steering = self._setting.steering
        if steering is None or not data:
            yield data
            return
        for piece in steering.pieces_of_text(len(data)):
            yield data[piece]

    def _write(self, data: bytes) -> None:
        outlet = self._outlet
        if not outlet.writes or (outlet.to is not None and outlet.to.is_text):
            for lines in self._act.lines(data, last=not data):
                outlet.write_lines(lines)
            return
        batches = self._act.batches(data, last=not data)
        if not outlet.is_open and (batches or not data):
            outlet.open_columns(self._act.schema)
        for batch in batches:
            outlet.write_batch(batch)

    def _tell(self, source: Input) -> None:
        """Report bad lines: where they are and what is wrong, never what they hold."""
        way = self._act.way
        self._held += [(source.name, *trouble) for trouble in way.take_troubles()]
        if self._is_field_missing() and not way.stopped:
            return  # perhaps in all: then one message says more
        troubles, self._held = self._held, []
        for name, line, kind, column in troubles:
            self._reported += 1
            if self._reported <= _SHOWN:
                self._setting.report(f"{name}:{line}:{column}: {problem_sentence(kind)}")
            elif self._reported == _SHOWN + 1:
                self._setting.report("further bad lines are only counted")

    def _check(self, source: Input) -> None:
        self._check_fields(is_over=False)
        if self._act.way.stopped:
            raise BadInputError(f"{source.name}: stopped at the first bad line")
        tally, most = self._act.way.tally(), self._setting.max_bad
        bad, lines = sum(tally["bad"].values()), tally["lines"] - tally["passed"]
        if lines >= _LINES_FOR_A_SHARE and bad > most * lines:
            raise BadInputError(
                f"{source.name}: {bad:,} of {lines:,} lines are bad, more than "
                f"{most:.0%} (see --max-bad); what was good before was written"
            )

    def _check_fields(self, *, is_over: bool) -> None:
        """End it early where no line has a field: its name is wrong."""
        if not self._format.is_json:
            return
        enough = 1 if is_over else _LINES_WITHOUT_FIELD
        if not self._is_field_missing(enough):
            return
        names, policy = self._names(), self._setting.policy
        wanted = [policy.time.field, policy.user.field]
        wanted += [name for each in policy.attributes for name in each.reads]
        absent = [name for name in wanted if name not in names] or list(wanted)
        raise FieldError(no_such_field(absent[0], names))

    def _names(self) -> list[str]:
        return names_of(self._head, flat=self._format is Format.ZEEK_JSON)

    def _is_field_missing(self, enough: int = 1) -> bool:
        """Whether no line so far is good, and enough of them, most of all, lack a field."""
        tally = self._act.way.tally()
        missing, bad = tally["bad"]["missing-field"], sum(tally["bad"].values())
        return tally["records"] == 0 and missing >= enough and 2 * missing > bad


def _written_ns(source: Input) -> int | None:
    """Give when an input was written; None for a pipe."""
    if source.path is None or source.size is None:
        return None
    return os.stat(source.path).st_mtime_ns
