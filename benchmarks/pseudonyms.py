"""What names cost: keys that change beside one that stays, addresses beside letters."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import files
import peers
import pipeline
from report import Ratio, Result, at_most
from text import zveil
from workloads import Scale, for_text, short

ROTATING = at_most(1.1)

# Periods as short as the window: the stream goes through several.
_ROTATE = ("--rotate", "1h")


def runs(scale: Scale) -> list[Result]:
    """Time `zveil run` on files, with names of several kinds."""
    stream = for_text(scale)
    with tempfile.TemporaryDirectory() as folder:
        ndjson, parquet, addresses = (
            Path(folder, name) for name in ("events.ndjson", "events.parquet", "addresses.ndjson")
        )
        files.write_ndjson(stream, ndjson)
        files.write_parquet(stream, parquet)
        files.write_addresses(stream, addresses)

        def timed(file: Path, *more: str) -> peers.Outcome:
            output = ("--to", "arrow") if file == parquet else ()
            passage = pipeline.flow(zveil(scale.z, file, *output, *more))
            return peers.Outcome(passage.seconds, len(stream))

        best = peers.best_of(
            scale.text_rounds,
            {
                "one key": partial(timed, ndjson),
                "rotating": partial(timed, ndjson, *_ROTATE),
                "kept": partial(timed, ndjson, *_ROTATE, "--keep-keys"),
                "hex": partial(timed, ndjson, "--pseudonym", "hex"),
                "uuid": partial(timed, ndjson, "--pseudonym", "uuid"),
                "columns, one key": partial(timed, parquet),
                "columns, rotating": partial(timed, parquet, *_ROTATE),
                "letters for addresses": partial(timed, addresses),
                "addresses": partial(timed, addresses, "--pseudonym", "crypto-pan"),
            },
        )
    case = f"{stream.case} z={scale.z}, {short(len(stream))} events"
    return [
        Ratio(what, case, beside, best[ours].ns, best[other].ns, wanted)
        for what, beside, ours, other, wanted in (
            ("--rotate 1h, NDJSON", "one key", "rotating", "one key", ROTATING),
            ("--rotate 1h --keep-keys, NDJSON", "one key", "kept", "one key", ROTATING),
            ("--rotate 1h, Parquet", "one key", "columns, rotating", "columns, one key", ROTATING),
            ("--pseudonym hex", "base32", "hex", "one key", at_most(None)),
            ("--pseudonym uuid", "base32", "uuid", "one key", at_most(None)),
            ("--pseudonym crypto-pan, IPv4", "base32", "addresses", "letters for addresses",
             at_most(None)),
        )
    ]  # fmt: skip
