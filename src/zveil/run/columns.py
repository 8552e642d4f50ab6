"""The way of columns: record batches, decided and written as they arrive."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from zveil.act.columns import ColumnsAct
from zveil.fields import FieldError
from zveil.io import ByteSource, Format
from zveil.io.columnar import BatchSource
from zveil.run.ending import BadInputError
from zveil.run.station import Counts, Setting, named


class ColumnStream:
    """Inputs of Parquet or Arrow, one behind the other, through the gates.

    Parameters
    ----------
    setting
        What it is told.
    form
        The format of all inputs.
    """

    def __init__(self, setting: Setting, form: Format) -> None:
        self._setting = setting
        self._outlet = setting.outlet
        self._format = form
        self._act: ColumnsAct | None = None

    def batches(self, source: ByteSource) -> BatchSource:
        """Open it so that only what leaves is read, where it can be opened twice."""
        if source.input.size is None or source.input.path is None:
            return BatchSource(source)
        with BatchSource(source.input) as whole, named(source.input, is_text=False):
            act = self._act_for(whole)
        return BatchSource(source.input, act.reads, worded=act.worded)

    def go_through(self, source: BatchSource, between: Callable[[], None]) -> None:
        """Read one input to its end; `between` is called after each batch."""
        stop = self._setting.stop
        with named(source.input, is_text=False):
            act = self._act_for(source)
        while True:
            if not source.pending():
                self._outlet.flush()
            with stop.waiting():
                batch = next(source, None)
            if batch is None:
                return
            try:
                left = act.act(batch)
                if left.num_rows:
                    self._outlet.write_batch(left)
            except pa.ArrowException:  # whose own words may quote data
                raise FieldError(
                    f"{source.input.name}: a column is not of the type it had in the files before, "
                    "or of one that cannot be used"
                ) from None
            if self._setting.stop_at_problem and act.moments.bad:
                raise BadInputError(f"{source.input.name}: a time cannot be read")
            between()
            stop.check()

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
        act = ColumnsAct(
            setting.policy,
            setting.gates,
            source.schema,
            keyring=setting.keyring,
            stop_at_problem=setting.stop_at_problem,
        )
        self._act = act
        to = outlet.to or self._format
        outlet.to = to
        if not outlet.writes:
            return act
        if not to.is_text:
            outlet.open_columns(act.schema)
            return act
        outlet.open_lines()
        if to is not Format.NDJSON:
            outlet.write_batch(act.nothing())
        return act
