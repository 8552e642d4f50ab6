"""Where events come from and go to: files and pipes, as bytes or as columns."""

from zveil.io.columnar import BatchSink, BatchSource, batches, schema, to_csv, to_ndjson
from zveil.io.formats import Compression, Format, of_path, sniff
from zveil.io.sinks import ByteSink, SinkClosed, SinkError
from zveil.io.sources import ByteSource, Input, SourceError, find

__all__ = [
    "BatchSink",
    "BatchSource",
    "ByteSink",
    "ByteSource",
    "Compression",
    "Format",
    "Input",
    "SinkClosed",
    "SinkError",
    "SourceError",
    "batches",
    "find",
    "of_path",
    "schema",
    "sniff",
    "to_csv",
    "to_ndjson",
]
