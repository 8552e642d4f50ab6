"""A worker while it works: what it is told, how it ended, and what it came to."""

from __future__ import annotations

import gc
import json
import signal
from types import FrameType
from typing import TYPE_CHECKING, Any

from zveil.cli.inputs import FAILED
from zveil.cli.progress import account
from zveil.cli.telling import say

if TYPE_CHECKING:
    from zveil.engines.kafka.worker import Worker
    from zveil.serve.monitor import Flow
    from zveil.summary import Summary

_YOUNG = 100_000
_SHOWN = ("replayed", "moves", "commits", "aborts", "split")


def watch(worker: Worker, *, once: bool, quiet: bool, as_json: bool) -> int:
    """Let it work, say how it ended, and give the exit code."""
    from zveil.engines.kafka.client import KafkaFailure

    def stop(_: int, __: FrameType | None) -> None:
        worker.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    code, ended = 0, "end of input" if once else "signal"
    # What is there by now stays, and messages make no cycles: searching for those costs time, and
    # makes a message wait now and then.
    gc.freeze()
    gc.set_threshold(_YOUNG)
    try:
        worker.go()
    except (KafkaFailure, OSError, MemoryError) as error:
        say(f"Error: {error}")
        code, ended = FAILED, "error"
    summary = worker.account.summary()
    summary.ended = ended
    flow = worker.account.flow()
    if as_json:
        say(json.dumps(summary.as_dict() | {"kafka": _plain(flow)}))
    elif not quiet:
        say(_spoken(summary, flow))
    return code


def _plain(flow: Flow) -> dict[str, Any]:
    """Give it as plain values, for JSON."""
    return {name: getattr(flow, name) for name in _SHOWN}


def _spoken(summary: Summary, flow: Flow) -> str:
    """Give the account of a worker."""
    text = [account(summary)]
    if summary.ended == "signal":
        text = [text[0].removesuffix("\nended early: signal")]
    text.append(
        f"commits: {flow.commits:,}, aborted transactions: {flow.aborts:,}, moves of partitions: "
        f"{flow.moves:,}, messages replayed: {flow.replayed:,}"
    )
    return "\n".join(text)
