"""How a run is told about: its end and exit code, its account, and the signals that end it."""

import gc
import json
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

import click

from zveil.cli.inputs import BAD_INPUT, FAILED, USAGE
from zveil.cli.progress import Progress, account, trial
from zveil.cli.rule import as_option
from zveil.fields import FieldError
from zveil.io import SameFileError, SinkClosed, SourceError, UnknownFormatError
from zveil.io.descriptors import wake_by_signals
from zveil.run import BadInputError, Run, Stopped
from zveil.state.error import StateError
from zveil.summary import Summary


@dataclass(frozen=True, kw_only=True)
class Telling:
    """How the account is told."""

    quiet: bool
    as_json: bool
    is_trial: bool
    without_z: bool


def watch(run: Run, progress: Progress, telling: Telling) -> int:
    """Run it, say how it ended, and give the exit code."""
    code, ended, words = 0, "end of input", None
    asked = _listen(run)
    # What is there by now stays: nobody has to search it for garbage, and at the end not either.
    gc.freeze()
    try:
        run.go(progress)
    except Stopped:
        code, ended = 128 + asked[0], "signal"
    except SinkClosed:
        ended = "closed pipe"
    except BadInputError as error:
        code, ended, words = BAD_INPUT, "bad input", str(error)
    except StateError as error:
        code, ended, words = USAGE, "error", str(error)
    except (FieldError, UnknownFormatError, SameFileError) as error:
        code, ended, words = USAGE, "error", as_option(error)
    except (SourceError, OSError, MemoryError) as error:
        code, ended, words = FAILED, "error", str(error)
    except (ValueError, TypeError) as error:
        code, ended, words = USAGE, "error", as_option(error)
    progress.clear()
    if words is not None:
        say(f"Error: {words}")
    if run.has_failed_to_save and code not in (USAGE, BAD_INPUT):
        say("Error: the state could not be saved at the end; the next start goes on from before")
        code = FAILED
    summary = run.summary()
    # A run that failed before it read anything has nothing to account for.
    if code != USAGE and (code == 0 or summary.bytes_in):
        summary.ended = ended
        _tell(summary, telling)
    return code


def _tell(summary: Summary, telling: Telling) -> None:
    """Print the summary: to standard error, because data may be on standard output."""
    figures = None
    if telling.as_json:
        figures = json.dumps(summary.as_dict(without_z=telling.without_z))
    if telling.is_trial:
        click.echo(figures or trial(summary))
    elif figures is not None:
        say(figures)
    if not telling.quiet and not telling.as_json:
        say(account(summary, without_z=telling.without_z))


def say(words: str) -> None:
    """Print it to standard error; a run goes on where nobody listens there any more."""
    with suppress(BrokenPipeError):
        click.echo(words, err=True)


def _listen(run: Run) -> list[int]:
    """Let signals end the run in order; gives the number of the one that came."""
    came: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if came:  # asked twice: at once
            _leave(number)
        came.append(number)
        run.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    wake_by_signals()
    return came


def _leave(number: int) -> NoReturn:
    sys.stderr.write("\n")
    raise SystemExit(128 + number)
