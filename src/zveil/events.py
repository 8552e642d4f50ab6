"""Events read as columns, undecided: for those who measure, plan or audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from zveil.act import TextAct
from zveil.fields import FieldError, wrong_columns
from zveil.io import ByteSource, Format, Input
from zveil.policy import Attribute, Policy, TimeFormat
from zveil.run import MAX_LINE

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 4 << 20


class Events:
    """The events of some files, block by block, as record batches of the named fields.

    The first column is the time as ``timestamp[ns, UTC]``, null where there is none. Of text the
    other columns are text; Parquet and Arrow keep their types. Bad lines are counted and left out.

    Parameters
    ----------
    inputs
        As `zveil.io.find` gives them; all of one format.
    time, user, attributes
        Names of fields.
    time_format
        What numbers mean; found out by default.
    positions
        Attributes that are made of several fields, by name: read as their finest label.

    Raises
    ------
    FieldError
        If a file lacks a field.

    Examples
    --------
    >>> from zveil.io import find
    >>> events = Events(find(["visits.csv"]), time="t", user="who", attributes=["site"])
    ... # doctest: +SKIP
    >>> sum(batch.num_rows for batch in events)  # doctest: +SKIP
    406829
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        *,
        time: str,
        user: str,
        attributes: Sequence[str],
        time_format: TimeFormat | None = None,
        positions: Mapping[str, Attribute] | None = None,
    ) -> None:
        self.inputs = list(inputs)
        self._policy = Policy.of(
            time=time,
            user=user,
            attributes=attributes,
            z=1,
            window=0,
            raw_users=True,
            time_format=time_format,
        )
        made = tuple((positions or {}).get(each.field, each) for each in self._policy.attributes)
        self._policy = replace(self._policy, attributes=made)
        self._format: Format | None = None
        self._text: TextAct | None = None
        self._done = 0
        self._source: Any = None
        self.bad = 0
        """Bad lines, and times that cannot be read."""

    @property
    def position(self) -> int:
        """Bytes read so far, as stored."""
        return self._done + (0 if self._source is None else self._source.position)

    @property
    def size(self) -> int | None:
        """Bytes of all inputs; None if one of them is a pipe."""
        sizes = [source.size for source in self.inputs]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for source in self.inputs:
            with ByteSource(source) as opened:
                self._source = opened
                form = opened.format
                if self._format not in (None, form):
                    raise FieldError(
                        f"{source.name}: is {form}, and those before are {self._format}; "
                        "read one format at a time"
                    )
                self._format = form
                try:
                    yield from self._lines(opened) if form.is_text else self._columns(opened)
                except LookupError as error:
                    words = wrong_columns(error, is_text=form.is_text)
                    raise FieldError(f"{source.name}: {words}") from None
                self._done, self._source = self.position, None

    def _lines(self, source: ByteSource) -> Iterator[pa.RecordBatch]:
        if self._text is None:
            self._text = TextAct(
                self._policy,
                [],
                source.format,
                Format.ARROW,
                keyring=None,
                max_line=MAX_LINE,
                stop_at_problem=False,
            )
        way = self._text.way
        way.start_file()
        data = b"-"
        while data:
            data = source.read(_BLOCK)
            yield from self._text.batches(data, last=not data)
            way.take_troubles()
            self.bad = sum(way.tally()["bad"].values())

    def _columns(self, source: ByteSource) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from zveil.act.moments import Moments
        from zveil.io.columnar import BatchSource

        moments = Moments(self._policy.time.format)
        fields = list(self._policy.fields)
        wanted = fields[:2] + [name for each in self._policy.attributes for name in each.reads]
        with BatchSource(source) as batches:
            self._source = batches
            for name in wanted:
                if name not in batches.schema.names:
                    raise LookupError(name, batches.schema.names)
            for batch in batches:
                chosen, times = moments.read(batch.select(wanted), fields[0])
                self.bad += batch.num_rows - chosen.num_rows
                columns = [moments.stamps(times), chosen.column(1)]
                columns += [_values(chosen, each) for each in self._policy.attributes]
                yield pa.record_batch(columns, names=fields)


def _values(batch: pa.RecordBatch, attribute: Attribute) -> pa.Array:
    columns = [batch.column(name) for name in attribute.reads]
    if attribute.hierarchy is None or not attribute.fields:
        return columns[0]
    from zveil.act.levels import Levels

    return Levels(attribute.hierarchy).of(columns)[-1]
