"""What `zveil run` does to JSON lines, as a program in Python: a peer, at its plainest and fastest.

usage: python in_python.py Z WINDOW_S < events.ndjson > released.ndjson

It trusts its input, never waits for a line to leave, and names users by keyed BLAKE2b.
"""

from __future__ import annotations

import secrets
import sys
from hashlib import blake2b

import orjson

from zveil.reference import Reference


def main(z: int, window_s: int) -> None:
    """Let the lines through that enough users share."""
    key = secrets.token_bytes(32)
    observe = Reference(z, window_s).observe
    write = sys.stdout.buffer.write
    for line in sys.stdin.buffer:
        event = orjson.loads(line)
        user = event["uid"]
        if observe(event["ts"], user, event["host"]):
            event["uid"] = blake2b(user.encode(), digest_size=10, key=key).hexdigest()
            write(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
