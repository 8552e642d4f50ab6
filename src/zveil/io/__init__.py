"""Where events come from and go to: files and pipes, as bytes; as columns in `io.columnar`."""

from zveil.io.formats import WRITABLE, Compression, Format, of_path, sniff
from zveil.io.inputs import find
from zveil.io.presets import PRESETS, Preset, format_of
from zveil.io.sinks import ByteSink, SameFileError, SinkClosed, SinkError
from zveil.io.sources import ByteSource, Input, SourceError, UnknownFormatError

__all__ = [
    "PRESETS",
    "WRITABLE",
    "ByteSink",
    "ByteSource",
    "Compression",
    "Format",
    "Input",
    "Preset",
    "SameFileError",
    "SinkClosed",
    "SinkError",
    "SourceError",
    "UnknownFormatError",
    "find",
    "format_of",
    "of_path",
    "sniff",
]
