"""The way of columns: record batches, decided and written as they arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from zveil.act.columns import ColumnsAct
from zveil.fields import FieldError
from zveil.io import ByteSource, Format
from zveil.io.columnar import BatchSource
from zveil.run.ending import BadInputError
from zveil.run.station import Counts, Pauses, Setting, named
from zveil.state.error import RESET, StateError


class ColumnStream:
    """Inputs of Parquet or Arrow, one behind the other, through the gates.

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
        self._act: ColumnsAct | None = None
        self._state = state
        self.is_settled = True
        """Whether all that is decided is written."""
        if state is not None and state["form"] != form:
            raise StateError(
                f"the state does not fit this input: it is of {state['form']}, not of {form}; "
                f"{RESET}"
            )

    def state(self) -> dict[str, Any]:
        """Give all that decides what happens next, for JSON."""
        if self._act is None:
            return dict(self._state or {"form": self._format, "act": None})
        return {"form": self._format, "act": self._act.state()}

    def done(self, source: Any) -> int:
        """Give how many rows of the present input are decided."""
        return int(source.rows)

    def batches(self, source: ByteSource, done: int | None = None) -> BatchSource:
        """Open it so that only what leaves is read, where it can be opened twice.

        `done` rows are passed over.
        """
        if source.input.size is None or source.input.path is None:
            return BatchSource(source)
        with BatchSource(source.input) as whole, named(source.input, is_text=False):
            act = self._act_for(whole)
        return BatchSource(source.input, act.reads, worded=act.worded, after=done or 0)

    def go_through(self, source: BatchSource, pauses: Pauses) -> None:
        """Read one input to its end."""
        stop = self._setting.stop
        with named(source.input, is_text=False):
            act = self._act_for(source)
        while True:
            if not source.pending():
                self._outlet.flush()
                pauses.idle()
            with stop.waiting():
                batch = next(source, None)
            if batch is None:
                return
            self.is_settled = False
            try:
                for piece in self._pieces(batch, act):
                    left = act.act(piece)
                    if left.num_rows:
                        self._outlet.write_batch(left)
            except pa.ArrowException:  # whose own words may quote data
                raise FieldError(
                    f"{source.input.name}: a column is not of the type it had in the files before, "
                    "or of one that cannot be used"
                ) from None
            self.is_settled = True
            if self._setting.stop_at_problem and act.moments.bad:
                raise BadInputError(f"{source.input.name}: a time cannot be read")
            pauses.between()
            stop.check()

    def _pieces(self, batch: pa.RecordBatch, act: ColumnsAct) -> Iterator[pa.RecordBatch]:
        """Give what has come, at once; or row by row while the first event is looked for."""
        gap, row = self._setting.gap, 0
        while gap is not None and gap.is_open and row < batch.num_rows:
            before = act.records
            yield from self._steered(batch.slice(row, 1))
            row += 1
            gap.look(has_event=act.records > before)
        if row < batch.num_rows:
            yield from self._steered(batch.slice(row))

    def _steered(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Cut a batch where z is tuned."""
        steering = self._setting.steering
        if steering is None:
            yield batch
            return
        for piece in steering.pieces_of_columns(batch.num_rows):
            yield batch.slice(piece.start, piece.stop - piece.start)

    def counts(self) -> Counts:
        """Tell what there was so far."""
        act = self._act
        if act is None:
            return Counts()
        return Counts(
            records=act.records,
            bad={"time": act.moments.bad} if act.moments.bad else {},
            leaving=act.leaving,
            levels=act.levels,
            swapped=act.swapped,
            filtered=act.filtered,
            repeated=act.repeated,
            time_format=act.moments.time_format,
        )

    def check_end(self) -> None:
        """Do nothing: columns that are not there were missed at the beginning."""

    def warn(self) -> None:
        """Do nothing: there is nothing that looks like a mistake."""

    def _act_for(self, source: BatchSource) -> ColumnsAct:
        if self._act is not None:
            self._act.check(source.schema)
            return self._act
        setting, outlet = self._setting, self._outlet
        to = outlet.to or self._format
        act = ColumnsAct(
            setting.policy,
            setting.gates,
            source.schema,
            keyring=setting.keyring,
            stop_at_problem=setting.stop_at_problem,
            ids=setting.ids,
            meter=setting.meter,
            hides_empty=to in (Format.CSV, Format.TSV),
        )
        self._act = act
        if self._state is not None and self._state["act"] is not None:
            if self._state["act"]["fields"] != act.fields:
                raise StateError(
                    f"{source.input.name}: has other columns than the inputs before, all of which "
                    f"are kept; {RESET}"
                )
            act.resume(self._state["act"])
        outlet.to = to
        if not outlet.writes:
            return act
        if not to.is_text:
            outlet.open_columns(act.schema)
            return act
        outlet.open_lines()
        if to is not Format.NDJSON and not outlet.has_header:
            outlet.write_batch(act.nothing())
        return act
