"""What the process beside the service does: curves of the model, traces, audits.

A task comes as a line of JSON on standard input, ``{"task": ..., "given": {...}}``. Lines of
standard output answer: ``{"doing": words}`` as it goes, then ``{"result": ...}`` or
``{"error": words}``. Nothing else is printed, and no data is quoted in words.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

Given: TypeAlias = Mapping[str, Any]
Watch: TypeAlias = Callable[[str], None]
Task: TypeAlias = Callable[[Given, Watch], Any]

_LOW_PRIORITY = 10
_MEMORY = 6 << 30


def main() -> None:
    """Do tasks until standard input ends, which it also does when the service is gone."""
    _settle()
    # What libraries print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    while True:
        asked = json.loads(lines.get())

        def say(**answer: Any) -> None:
            answers.write(json.dumps(answer) + "\n")

        try:
            task = _TASKS[asked["task"]]
            say(result=task(asked["given"], lambda words: say(doing=words)))
        except MemoryError:
            say(error="there is too little memory for this file")
        except (ValueError, TypeError, OSError) as error:
            say(error=_words(error))
        except Exception as error:
            # The words of a library may quote data; its type does not.
            say(error=f"it could not be worked out ({type(error).__name__})")


def _listen(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def _settle() -> None:
    """Stand back behind the service: for the processor, and where memory is short.

    What a system does not have or does not let is left out.
    """
    with suppress(AttributeError, OSError):
        os.nice(_LOW_PRIORITY)
    with suppress(OSError):
        # If something has to go, then this.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return (error.strerror or "it could not be read").lower()
    return str(error)


def _curves(given: Given, _: Watch) -> Any:
    from zveil.console import curves

    return curves.curves(_population(given), given)


def _point(given: Given, _: Watch) -> Any:
    from zveil.console import curves

    found = curves.point(_population(given), given)
    if given.get("from") == "trace":
        found["measured"] = curves.measured(_trace_of(given), given)
    return found


def _ways(given: Given, watch: Watch) -> Any:
    from zveil.console import curves

    return curves.ways(_population(given), given, watch)


def _audit(given: Given, watch: Watch) -> Any:
    from zveil.console import reports

    return reports.report(given, watch)


def _trace(given: Given, watch: Watch) -> Any:
    from zveil.console import reports

    trace, told = reports.trace(given, watch)
    _TRACE[:] = [trace]
    return told


def _hear(given: Given, _: Watch) -> Any:
    from zveil.console.hearing import Hearing

    names = {name: given[name] for name in ("time", "user", "attributes")}
    hearing = _HEARING[0] if _HEARING else Hearing(**names)
    _HEARING[:] = [hearing]
    hearing.hear(base64.b64decode(given["lines"]))
    return hearing.told()


def _population(given: Given) -> Any:
    from zveil.console import curves

    if given.get("from") != "trace":
        return curves.of_parameters(given)
    return curves.of_trace(_trace_of(given), given)


def _trace_of(given: Given) -> Any:
    if _HEARING:
        return _HEARING[0].trace(window_s=given["window_s"])
    if not _TRACE:
        raise ValueError("the trace is gone; send it again")
    return _TRACE[0]


# The one trace that this process was given; it goes with the process.
_TRACE: list[Any] = []
# What it has heard of the stream; it goes with the process too.
_HEARING: list[Any] = []

_TASKS: dict[str, Task] = {
    "curves": _curves,
    "point": _point,
    "ways": _ways,
    "audit": _audit,
    "trace": _trace,
    "hear": _hear,
}

if __name__ == "__main__":
    main()
