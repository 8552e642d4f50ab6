"""Where events come from and go to: files and pipes, as bytes; as columns in `io.columnar`."""

from zveil.io.formats import Compression, Format, of_path, sniff
from zveil.io.sinks import ByteSink, SameFileError, SinkClosed, SinkError
from zveil.io.sources import ByteSource, Input, SourceError, UnknownFormatError, find

__all__ = [
    "ByteSink",
    "ByteSource",
    "Compression",
    "Format",
    "Input",
    "SameFileError",
    "SinkClosed",
    "SinkError",
    "SourceError",
    "UnknownFormatError",
    "find",
    "of_path",
    "sniff",
]
