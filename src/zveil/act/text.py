"""Records of text: scanned, decided and written natively, no Python object for any of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zveil._native import EventIds, Keyring, TextWay
from zveil.gate import Gate
from zveil.io.formats import Format
from zveil.meter import Meter
from zveil.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa

_DELIMITERS = {Format.CSV: ",", Format.TSV: "\t"}


class TextAct:
    """Lines in, released lines or columns out.

    Parameters
    ----------
    policy
        What leaves.
    gates
        One for each attribute; or for a trial several sets of them, one behind the other, of which
        the first decides what leaves.
    source
        The format of what comes in.
    to
        The format of what leaves; None if nothing does.
    keyring
        The keys of the pseudonyms; None if user ids leave as they are.
    max_line
        A line of more bytes is bad.
    stop_at_problem
        The first bad line ends it.
    threads
        For large blocks of lines. Any number writes the same bytes.
    ids
        The ids of events seen lately, where the policy names their field: what comes again is left
        out.
    meter
        Is shown what leaves.
    """

    def __init__(
        self,
        policy: Policy,
        gates: Sequence[Gate],
        source: Format,
        to: Format | None,
        *,
        keyring: Keyring | None,
        max_line: int,
        stop_at_problem: bool,
        threads: int = 1,
        ids: EventIds | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._gates = list(gates)
        self._meter = meter
        self._ids = ids
        self._policy = policy
        self._is_text = to is not None and to.is_text
        if to is None:
            output = "nothing"
        elif to.is_text:
            output = _spoken(to)
        else:
            output = "columns"
        self.way = TextWay(
            source=_spoken(source),
            source_delimiter=_DELIMITERS.get(source, ""),
            to=output,
            to_delimiter="" if to is None else _DELIMITERS.get(to, ""),
            fields=list(policy.fields),
            attributes=len(policy.attributes),
            veiled=[attribute.veiled for attribute in policy.attributes],
            ladders=[
                None if attribute.hierarchy is None else attribute.hierarchy.native()
                for attribute in policy.attributes
            ],
            positions=[list(attribute.fields) or None for attribute in policy.attributes],
            swaps=[attribute.swap for attribute in policy.attributes],
            keep_rest=policy.keeps_all,
            blank=policy.record.empty == "blank",
            time_format=policy.time.format,
            step_ns=policy.time.step_ns,
            max_line=max_line,
            stop_at_problem=stop_at_problem,
            keyring=keyring,
            threads=threads,
            flat=source is Format.ZEEK_JSON,
            filters=policy.filters(),
            year=policy.time.year,
            id_field=None if ids is None else policy.input.id,
        )

    def lines(self, data: bytes, *, last: bool) -> list[memoryview]:
        """Decide what is complete by now; the records that leave, as text."""
        return self.way.feed(self._gates, data, last, ids=self._ids, meter=self._meter)

    def batches(self, data: bytes, *, last: bool) -> list[pa.RecordBatch]:
        """Decide what is complete by now; the records that leave, as columns of text."""
        import pyarrow as pa

        return [
            pa.record_batch(
                [_array(column, number) for number, column in enumerate(part)], schema=self.schema
            )
            for part in self.way.feed_columns(
                self._gates, data, last, ids=self._ids, meter=self._meter
            )
        ]

    @property
    def schema(self) -> pa.Schema:
        """The columns of `batches`: text knows no types, except that the time is one."""
        import pyarrow as pa

        names = self.way.fields
        return pa.schema([(names[0], _time()), *((name, pa.large_string()) for name in names[1:])])


def _spoken(text: Format) -> str:
    if text.is_json:
        return "ndjson"
    return text.value if text.is_log else "csv"


def _array(column: tuple[int, bytes, bytes, bytes], number: int) -> pa.Array:
    import pyarrow as pa

    count, present, ends, data = column
    if number > 0:
        buffers = [pa.py_buffer(present), pa.py_buffer(ends), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), count, buffers)
    return pa.Array.from_buffers(_time(), count, [pa.py_buffer(present), pa.py_buffer(data)])


def _time() -> pa.DataType:
    import pyarrow as pa

    return pa.timestamp("ns", tz="UTC")
