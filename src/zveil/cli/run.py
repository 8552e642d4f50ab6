"""`zveil run`: a stream in, a safe stream out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from zveil.cli.inputs import (
    FAILED,
    FORMATS,
    USAGE,
    duration,
    field_options,
    format_option,
    time_format_option,
)
from zveil.cli.progress import Progress
from zveil.cli.rule import as_option, policy_of
from zveil.cli.secrets import Secrets
from zveil.cli.telling import Telling, say, watch
from zveil.durations import duration_ns, size_bytes
from zveil.io import Format, SourceError, find, format_of
from zveil.io.presets import NAMES
from zveil.memory import ceiling
from zveil.meter import Meter
from zveil.policy import Policy, Pseudonym
from zveil.run import MAX_BAD, Run
from zveil.state.error import StateError

if TYPE_CHECKING:
    from zveil.serve.exporter import Board
    from zveil.state.store import Store

Command = TypeVar("Command", bound=Callable[..., Any])

TRIAL = (2, 5, 10, 20, 50, 100, 200, 500, 1_000)

# Libraries read these when they are loaded: memory goes back to the system once it is free, and
# no threads are started for linear algebra, of which there is none here.
_FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}


class _Share(click.ParamType):  # type: ignore[type-arg]
    """``5%`` or ``0.05``."""

    name = "share"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read it, or say what would have been right."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        with suppress(ValueError):
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
            if 0 <= share <= 1:
                return share
        raise click.BadParameter("expected a share such as 5% or 0.05", ctx, param)


@click.command(short_help="Anonymize a stream: files or standard input in, what is safe out.")
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--policy", "policy_file", metavar="FILE", type=click.Path(dir_okay=False),
    help="Read from a file what the options with a * say otherwise.",
)  # fmt: skip
@field_options(
    "Field whose value is released or veiled; repeat it for several.",
    required=False,
    more="  [required, *]",
)
@click.option(
    "-z", type=click.IntRange(1), metavar="N",
    help="Users who must share a value, from 1.  [required, *]",
)  # fmt: skip
@click.option(
    "--window", metavar="DURATION", help="How far back they count: 90s, 1h, 7d.  [required, *]"
)
@click.option(
    "--hold", metavar="'k=K p=P'",
    help="Instead of -z: tune z so that a share P of the visible users, over each --rotate, has "
    "the same set of values released as K - 1 others.  [*]",
)  # fmt: skip
@click.option(
    "--z-min", type=click.IntRange(1), metavar="N",
    help="With --hold: the smallest z.  [default: 2, *]",
)  # fmt: skip
@click.option(
    "--z-max", type=click.IntRange(1), metavar="N",
    help="With --hold: the largest z; memory grows with it.  [default: 1000, *]",
)  # fmt: skip
@click.option(
    "--noise", type=click.IntRange(0), metavar="N",
    help="Let each value need up to so many users more, drawn under the key.  [default: 0, *]",
)  # fmt: skip
@click.option(
    "--swap", type=_Share(), metavar="SHARE",
    help="Let this share of the released values leave as another one, released shortly before, so "
    "that no record is proof; from 0 to less than 1.  [default: 0, *]",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False),
    help="Write there instead of to standard output.",
)  # fmt: skip
@format_option(
    "Format of the input, if its name and content do not tell; a log's says its fields too.  [*]",
    NAMES,
)
@click.option(
    "--to", type=FORMATS,
    help="Format of the output; by default by the ending of --output, else that of the input.",
)  # fmt: skip
@time_format_option(" A wrong one can release too much.  [*]")
@click.option(
    "--year", type=click.IntRange(1970, 2261), metavar="YEAR",
    help="Year of the first event of a log that writes none; by default told by the file's age. "
    " [*]",
)  # fmt: skip
@click.option(
    "--only", metavar="FILE", type=click.Path(dir_okay=False),
    help="Let only values count that are in this list of names, or below one of them.  [*]",
)  # fmt: skip
@click.option(
    "--except", "except_", metavar="FILE", type=click.Path(dir_okay=False),
    help="Let no values count that are in this list of names, or below one of them.  [*]",
)  # fmt: skip
@click.option(
    "--round", type=click.Choice(["none", "minute", "hour", "day"]),
    help="What the time that leaves is rounded down to, in UTC; decisions go by the exact time. "
    " [default: none, *]",
)  # fmt: skip
@click.option(
    "--keep", multiple=True, metavar="FIELD",
    help="Let this field leave as it is, undecided; repeat it, or '*' for all others.  [*]",
)  # fmt: skip
@click.option(
    "--veiled", "empty", type=click.Choice(["drop", "blank"]),
    help="What becomes of a record with nothing released: dropped, or let out with nulls, which "
    "shows that its user was active.  [default: drop, *]",
)  # fmt: skip
@click.option(
    "--key-file", metavar="FILE", type=click.Path(dir_okay=False),
    help="Make the same pseudonyms, and draw the same noise and swaps, as other runs with this "
    "key; see `zveil key`.",
)  # fmt: skip
@click.option(
    "--pseudonym", type=click.Choice(get_args(Pseudonym)),
    help="What user ids leave as; crypto-pan is for IP addresses and keeps their prefixes. "
    " [default: base32, *]",
)  # fmt: skip
@click.option(
    "--rotate", metavar="DURATION",
    help="Change pseudonyms every 24h, 7d, ... or '4 windows', counted from the Unix epoch.  [*]",
)  # fmt: skip
@click.option(
    "--keep-keys", is_flag=True,
    help="With --rotate: past keys can be made again from the key file, no one-way chain.  [*]",
)  # fmt: skip
@click.option("--raw-users", is_flag=True, help="Short for --pseudonym raw.  [*]")
@click.option(
    "--lateness",
    metavar="DURATION",
    help="How late events may come; the window by default.  [*]",
)
@click.option(
    "--max-future", metavar="DURATION",
    help="Veil events further past the wall clock than this; 'any' to take all times. "
    " [default: 1d, *]",
)  # fmt: skip
@click.option(
    "--memory",
    metavar="SIZE",
    help="Most memory for the state, such as 2GB; then new values are veiled. "
    " [default: half of the machine's, *]",
)
@click.option(
    "--max-attributes", type=click.IntRange(1), metavar="N",
    help="Most values to remember at a time; then new ones are veiled.  [*]",
)  # fmt: skip
@click.option(
    "--state", "state_folder", metavar="DIR", type=click.Path(file_okay=False),
    help="Save there what was seen, and where input and output stand; the next start with it goes "
    "on from there.",
)  # fmt: skip
@click.option(
    "--state-every", default="10s", show_default=True, metavar="DURATION",
    help="How often to save; at the end too.",
)  # fmt: skip
@click.option(
    "--state-reset", is_flag=True,
    help="Start anew in spite of a state in DIR: values are veiled until enough users have shown "
    "them again.",
)  # fmt: skip
@click.option(
    "--metrics", metavar="ADDRESS",
    help="Serve figures for Prometheus at PORT or ADDRESS:PORT, while it runs.",
)  # fmt: skip
@click.option(
    "--tokens", "tokens_file", metavar="FILE", type=click.Path(dir_okay=False),
    help="Show them only to those with a token of this file that may read; see `zveil token`.",
)  # fmt: skip
@click.option(
    "--id", metavar="FIELD",
    help="Field of an id that no two events share: what the sender repeats is decided once.  [*]",
)  # fmt: skip
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Threads, up to 64; the output is the same.",
)
@click.option(
    "--on-error", type=click.Choice(["skip", "stop"]), default="skip", show_default=True,
    help="What a bad line does: it is counted and left out, or ends the run.",
)  # fmt: skip
@click.option(
    "--max-bad", type=_Share(), default=f"{MAX_BAD:.0%}", show_default=True, metavar="SHARE",
    help="End the run when more of the lines are bad, once 1,000 were read.",
)  # fmt: skip
@click.option(
    "--max-line", default="1MiB", show_default=True, metavar="SIZE", help="A longer line is bad."
)
@click.option(
    "--dry-run", is_flag=True,
    help="Write no data; show what z = 2, 5, 10, 20, ... would release. For you, not to publish.",
)  # fmt: skip
@click.option(
    "--meter", "measures", is_flag=True,
    help="Measure all along how many visible users share the set of their released values.",
)  # fmt: skip
@click.option(
    "--meter-memory", default="1GB", show_default=True, metavar="SIZE",
    help="Most memory for that; a period that needs more is not measured.",
)  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; errors are told.")
@click.option(
    "--json", "as_json", is_flag=True, help="The summary as one JSON object, on standard error."
)
def run(
    files: tuple[str, ...],
    policy_file: str | None,
    time_field: str | None,
    user_field: str | None,
    attribute_fields: tuple[str, ...],
    stated: str | None,
    output: str | None,
    to: str | None,
    key_file: str | None,
    state_folder: str | None,
    state_every: str,
    state_reset: bool,
    metrics: str | None,
    tokens_file: str | None,
    threads: int,
    on_error: str,
    max_bad: float,
    max_line: str,
    dry_run: bool,
    measures: bool,
    meter_memory: str,
    quiet: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Release the events of a stream that enough users share, and veil the others.

    FILES are NDJSON, CSV, TSV, Parquet or Arrow, plain or packed (.gz, .zst); a directory or a
    glob stands for the files in it; without any, standard input is read. An event leaves at once if
    at least Z users showed the same attribute within the past window.

    Only time, user, the attributes and what --keep names leave. User ids leave as pseudonyms.

    A policy file can say more than the options: a z and a window for each attribute, what a veiled
    value becomes. Options with a * are the short form of its keys, and not used beside it.

    \b
    zveil run events.ndjson --time ts --user uid --attribute host \\
        -z 20 --window 1h > released.ndjson
    tail -F access.ndjson | zveil run --time ts --user uid --attribute host \\
        -z 20 --window 1h
    zveil run 'logs/*.csv.gz' --time time --user ip --attribute url \\
        -z 50 --window 1d -o released.parquet
    zveil run events.ndjson --time ts --user uid --attribute host \\
        --window 1h --dry-run
    zveil run events.ndjson --time ts --user uid --attribute host \\
        --window 1h --rotate 24h --hold 'k=2 p=0.95' > released.ndjson
    zveil run events.ndjson --policy zveil.toml

    \b
    Exit codes:
      0    done, or the reader closed the pipe
      1    reading or writing failed
      2    wrong usage
      3    bad input ended it
      130  interrupted
      143  told to end

    Whatever ends it, what was decided is written.

    With --state it can be killed at any moment and started again: every event is decided once, and
    a file (-o) is gone on with exactly where the state stands. A pipe cannot be rewound.
    """  # noqa: D301  # click's mark for text that must not be wrapped
    without_z = policy_file is None and said["z"] is None and said["hold"] is None
    if without_z and not dry_run:
        raise click.UsageError(
            "-z: say how many users must share a value, or what --hold is to hold; --dry-run shows "
            "what each z would release"
        )
    if measures and dry_run:
        raise click.UsageError("--meter: with --dry-run nothing leaves that could be measured")
    for name, value in _FRUGAL.items():
        os.environ.setdefault(name, value)
    if without_z:
        said["z"] = TRIAL[0]
    _check_state(state_folder, state_reset=state_reset, dry_run=dry_run, output=output)
    store = None
    try:
        fields = {"time": time_field, "user": user_field, "attributes": attribute_fields}
        policy = policy_of(policy_file, said | fields | {"format": stated})
        if policy.hold is not None and dry_run:
            raise click.UsageError("--dry-run: tries z that stay; leave out the level to hold")
        progress = Progress(quiet=quiet or as_json)

        def report(words: str) -> None:
            progress.clear()
            say(words)

        secrets = Secrets(policy, key_file)
        if state_folder is not None:
            store = _store(
                state_folder, secrets, every=state_every, reset=state_reset, report=report
            )
        going = Run(
            policy,
            find(files, format_of(policy.input.format)),
            output=output,
            to=Format(to) if to else None,
            gate_key=secrets.gate_key(store),
            keyring=None if dry_run else secrets.keyring(store),
            threads=threads,
            stop_at_problem=on_error == "stop",
            max_bad=max_bad,
            max_line=size_bytes(max_line, "max-line"),
            trial=_trial(policy) if dry_run else (),
            report=report,
            memory=ceiling(),
            store=store,
            meter=meter_of(policy, meter_memory) if measures or policy.hold else None,
        )
        progress.also = _exported(metrics, tokens_file, going)
        if store is not None and state_reset:
            store.forget()
            report("starting anew: a value is veiled until enough users have shown it again")
    except StateError as error:
        say(f"Error: {error}")
        raise SystemExit(USAGE) from None
    except (SourceError, ValueError) as error:
        raise click.UsageError(as_option(error)) from None
    if not files and not quiet and sys.stdin.isatty():
        say("reading standard input; end it with Ctrl-D")
    telling = Telling(quiet=quiet, as_json=as_json, is_trial=dry_run, without_z=without_z)
    code = watch(going, progress, telling)
    if store is not None:
        store.close()
    raise SystemExit(code)


def _check_state(
    folder: str | None, *, state_reset: bool, dry_run: bool, output: str | None
) -> None:
    if folder is None and state_reset:
        raise click.UsageError("--state-reset: say which state is to start anew with --state")
    if folder is not None and dry_run:
        raise click.UsageError("--state: a dry run leaves nothing behind; leave one of them out")
    is_written = output is not None and os.path.isfile(output) and os.path.getsize(output) > 0
    if state_reset and is_written:
        # It cannot be gone on with, and what was written may not be to be had again.
        raise click.UsageError(
            f"--state-reset: {output} was written before, and would be overwritten; move it away, "
            "or name another with -o"
        )


def _exported(address: str | None, tokens_file: str | None, run: Run) -> Board | None:
    if address is None:
        if tokens_file is not None:
            raise click.UsageError("--tokens: goes with --metrics")
        return None
    from zveil.cli.export import export

    try:
        return export(address, tokens_file, run)
    except OSError as error:
        say(f"Error: {error}")
        raise SystemExit(FAILED) from None


def _store(
    folder: str, secrets: Secrets, *, every: str, reset: bool, report: Callable[[str], None]
) -> Store:
    from zveil.state.store import Store

    interval = duration_ns(duration(every), "state-every") / 1e9
    given = secrets.given()
    return Store(
        folder,
        key=given,
        policy=secrets.policy,
        interval=interval,
        report=report,
        reset=reset,
    )


def _trial(policy: Policy) -> list[int]:
    """Give the z that are tried: the policy's too, where it has one."""
    own = {attribute.z for attribute in policy.attributes}
    return sorted({*TRIAL, *(own if len(own) == 1 else ())})


def meter_of(policy: Policy, memory: str) -> Meter:
    """Make a meter whose periods are those of the pseudonyms."""
    length = policy.rotate_ns
    return Meter(
        rotate=None if length is None else f"{length}ns",
        lateness=f"{policy.lateness_ns}ns",
        memory_limit=size_bytes(memory, "meter-memory"),
        time_unit="ns",
    )


def of_run(names: Sequence[str]) -> Callable[[Command], Command]:
    """Add options to another command that mean there what they mean here."""

    def add(command: Command) -> Command:
        known = {option.name: option for option in run.params}
        command.__dict__.setdefault("__click_params__", []).extend(
            known[name] for name in reversed(names)
        )
        return command

    return add
