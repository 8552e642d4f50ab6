"""Formats and compressions: told by the ending of a name or by the first bytes."""

import enum


class Format(enum.StrEnum):
    """How records are written."""

    NDJSON = "ndjson"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    ARROW = "arrow"
    # Logs, which are only read.
    ZEEK = "zeek"
    ZEEK_JSON = "zeek-json"
    TSTAT_TCP = "tstat-tcp"
    TSTAT_HTTP = "tstat-http"
    COMBINED = "combined"
    DNSMASQ = "dnsmasq"
    UNBOUND = "unbound"

    @property
    def is_text(self) -> bool:
        """Whether records are lines of text; otherwise they are columns."""
        return self not in (Format.PARQUET, Format.ARROW)

    @property
    def is_log(self) -> bool:
        """Whether it is a program's log, which is read but not written."""
        return self not in WRITABLE

    @property
    def is_json(self) -> bool:
        """Whether records are objects of JSON."""
        return self in (Format.NDJSON, Format.ZEEK_JSON)

    @property
    def has_known_times(self) -> bool:
        """Whether it is a log whose times are always written in one way."""
        return self.is_log and self not in (Format.ZEEK, Format.ZEEK_JSON)

    @property
    def written(self) -> "Format":
        """What is written where nothing else is stated: the same, and NDJSON for a log."""
        return Format.NDJSON if self.is_log else self


WRITABLE = (Format.NDJSON, Format.CSV, Format.TSV, Format.PARQUET, Format.ARROW)


class Compression(enum.StrEnum):
    """What the bytes of a whole file are wrapped in."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


FORMATS = {
    ".ndjson": Format.NDJSON,
    ".jsonl": Format.NDJSON,
    ".json": Format.NDJSON,
    ".ldjson": Format.NDJSON,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".tab": Format.TSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".ipc": Format.ARROW,
    ".feather": Format.ARROW,
}
COMPRESSIONS = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
}

_WRAPPED = {
    b"\x1f\x8b": Compression.GZIP,
    b"\x28\xb5\x2f\xfd": Compression.ZSTD,
    # A skippable frame, which pzstd and seekable writers put in front.
    **{bytes([low, 0x2A, 0x4D, 0x18]): Compression.ZSTD for low in range(0x50, 0x60)},
}
_BARE = {
    b"PAR1": Format.PARQUET,
    b"ARROW1": Format.ARROW,
    b"\xff\xff\xff\xff": Format.ARROW,
}
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"


def of_path(name: str) -> tuple[Format | None, Compression]:
    """Tell format and compression by the ending of a name, in any case of letters.

    >>> of_path("logs/part-0001.NDJSON.gz")
    (<Format.NDJSON: 'ndjson'>, <Compression.GZIP: 'gzip'>)
    >>> of_path("notes.txt")
    (None, <Compression.NONE: 'none'>)
    """
    stem, ending = _cut(name.replace("\\", "/").rpartition("/")[2].lower())
    compression = COMPRESSIONS.get(ending, Compression.NONE)
    if compression is not Compression.NONE:
        stem, ending = _cut(stem)
    return FORMATS.get(ending), compression


def sniff(head: bytes) -> tuple[Format | None, Compression]:
    """Tell format and compression by the first bytes, as far as they do.

    Inside a compression nothing is told of the format. CSV and TSV are never told: any text may be
    one.

    >>> sniff(b'{"user": 1}')
    (<Format.NDJSON: 'ndjson'>, <Compression.NONE: 'none'>)
    >>> sniff(b"user,time")
    (None, <Compression.NONE: 'none'>)
    """
    for magic, compression in _WRAPPED.items():
        if head.startswith(magic):
            return None, compression
    for magic, form in _BARE.items():
        if head.startswith(magic):
            return form, Compression.NONE
    text = head.removeprefix(_BOM).lstrip(_SPACE)
    return (Format.NDJSON if text.startswith(b"{") else None), Compression.NONE


def is_short(head: bytes) -> bool:
    """Whether more bytes behind these could change what `sniff` tells.

    >>> is_short(b"PA"), is_short(b"  "), is_short(b"PAX")
    (True, True, False)
    """
    if may_be_wrapped(head) or any(_begins(head, magic) for magic in (*_BARE, _BOM)):
        return True
    return not head.removeprefix(_BOM).lstrip(_SPACE)


def may_be_wrapped(head: bytes) -> bool:
    """Whether more bytes behind these could show a compression.

    >>> may_be_wrapped(bytes([0x1F])), may_be_wrapped(b"{")
    (True, False)
    """
    return any(_begins(head, magic) for magic in _WRAPPED)


def _begins(head: bytes, magic: bytes) -> bool:
    return len(head) < len(magic) and magic.startswith(head)


def _cut(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if dot else (name, "")
