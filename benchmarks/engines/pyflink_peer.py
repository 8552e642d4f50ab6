"""The same as `zveil flink` as people write it in Python: PyFlink's own keyed process function.

usage: python pyflink_peer.py FILE FOLDER Z WINDOW_S MODE

MODE is how PyFlink runs Python: "process" (its default) or "thread". It trusts its input, and
forgets nothing.
"""

from __future__ import annotations

import json
import secrets
import sys
from hashlib import blake2b
from typing import Any

from pyflink.common import Configuration, Encoder, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from pyflink.datastream.state import ValueStateDescriptor


def parsed(line: str) -> tuple[float, str, str, str]:
    """Read what is needed of a record."""
    event = json.loads(line)
    return event["ts"], event["uid"], event["host"], event["p"]


class Decide(KeyedProcessFunction):
    """Keeps the z users of a value that were seen last, each with when: in order of time."""

    def __init__(self, z: int, window_s: float) -> None:
        self._z, self._window_s = z, window_s
        self._key = secrets.token_bytes(32)

    def open(self, runtime_context: Any) -> None:
        """Find the state."""
        described = ValueStateDescriptor("crowd", Types.PICKLED_BYTE_ARRAY())
        self._crowd = runtime_context.get_state(described)

    def process_element(self, event: Any, _: Any) -> Any:
        """Count one, and let it through if z users are there."""
        time, user, host, number = event
        crowd: dict[str, float] = self._crowd.value() or {}
        crowd.pop(user, None)
        crowd[user] = time
        if len(crowd) > self._z:
            del crowd[next(iter(crowd))]
        self._crowd.update(crowd)
        if len(crowd) == self._z and crowd[next(iter(crowd))] >= time - self._window_s:
            name = blake2b(user.encode(), digest_size=10, key=self._key).hexdigest()
            yield json.dumps(
                {"ts": time, "uid": name, "host": host, "p": number}, separators=(",", ":")
            )


def main(file: str, folder: str, z: int, window_s: float, mode: str) -> None:
    """Run the job to its end, in this process."""
    settings = Configuration()
    settings.set_string("python.execution-mode", mode)
    settings.set_string("python.executable", sys.executable)
    environment = StreamExecutionEnvironment.get_execution_environment(settings)
    environment.set_parallelism(1)
    environment.enable_checkpointing(1_000)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), file).build()
    sink = FileSink.for_row_format(folder, Encoder.simple_string_encoder()).build()
    event = Types.TUPLE([Types.DOUBLE(), Types.STRING(), Types.STRING(), Types.STRING()])
    lines = environment.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    keyed = lines.map(parsed, event).key_by(lambda event: event[2], Types.STRING())
    keyed.process(Decide(z, window_s), Types.STRING()).sink_to(sink)
    environment.execute("peer")


if __name__ == "__main__":
    file, folder, z, window_s, mode = sys.argv[1:]
    main(file, folder, int(z), float(window_s), mode)
