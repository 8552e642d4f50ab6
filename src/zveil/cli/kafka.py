"""`zveil kafka`: a worker of a consumer group."""

from __future__ import annotations

import json
import secrets as random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zveil.cli.inputs import FAILED, duration
from zveil.cli.progress import account
from zveil.cli.rule import as_option, policy_of
from zveil.cli.run import of_run
from zveil.cli.secrets import Secrets
from zveil.cli.telling import say
from zveil.durations import duration_ns, size_bytes
from zveil.io import Format, format_of
from zveil.keys import derive_key
from zveil.memory import ceiling
from zveil.policy import Policy

if TYPE_CHECKING:
    from zveil.engines.kafka.assignment import Topic
    from zveil.engines.kafka.client import Clients
    from zveil.engines.kafka.partition import Recipe
    from zveil.engines.kafka.worker import Worker
    from zveil.serve.monitor import Flow
    from zveil.summary import Summary

Command = TypeVar("Command", bound=Callable[..., Any])

_RULE = (
    "policy_file", "time_field", "user_field", "attribute_fields", "z", "window", "noise", "swap",
    "time_format", "only", "except_", "round", "keep", "empty", "key_file", "pseudonym", "rotate",
    "keep_keys", "raw_users", "lateness", "max_future", "memory", "max_attributes", "id",
)  # fmt: skip
_TELLING = ("metrics", "tokens_file", "quiet", "as_json")

# Seconds between two commits, and messages decided in one go: for little delay, and for much.
_AT_ONCE = {"exactly-once": 0.02, "at-least-once": 1.0}
_THROUGHPUT = {"exactly-once": 0.5, "at-least-once": 5.0}
_MOST_AT_ONCE, _MOST = 2_000, 20_000


def client_options(command: Command) -> Command:
    """Add the options that say where Kafka is, what is read and what is written."""
    for option in reversed(
        (
            click.option(
                "--brokers", metavar="HOST:PORT", help="Where Kafka is; several with commas.",
            ),
            click.option("--from", "source", metavar="TOPIC", help="Read this topic.  [required]"),
            click.option("--to", metavar="TOPIC", help="Write to this one.  [required]"),
            click.option(
                "--group", metavar="NAME", help="The consumer group that shares it.  [required]",
            ),
            click.option(
                "--format", "stated", type=click.Choice(["ndjson", "csv", "tsv"]),
                help="What a message is: an object of JSON, or a line of CSV or TSV. "
                " [default: ndjson]",
            ),
            click.option(
                "--columns", metavar="NAMES",
                help="Of CSV: what the columns are called, with commas between.",
            ),
            click.option(
                "--delivery", type=click.Choice(["exactly-once", "at-least-once"]),
                default="exactly-once", show_default=True,
                help="Each record and how far it is in one transaction; or records at once, of "
                "which some come again after a failure.",
            ),
            click.option(
                "--instance", metavar="NAME",
                help="A name of this worker that stays over restarts: then what it left open is "
                "closed at once, and whoever else has the name is fenced.",
            ),
            click.option(
                "--start", type=click.Choice(["earliest", "latest"]), default="earliest",
                show_default=True, help="Where a group begins that has decided nothing yet.",
            ),
            click.option(
                "--throughput", is_flag=True,
                help="Work in larger pieces: more in a second, and later.",
            ),
            click.option(
                "--commit-every", metavar="DURATION",
                help="The shortest time between two commits.  [default: 20ms exactly once, 1s at "
                "least once; 500ms and 5s with --throughput]",
            ),
            click.option(
                "--once", is_flag=True, help="End when all that is there is decided.",
            ),
            click.option(
                "--set", "said", multiple=True, metavar="NAME=VALUE",
                help="A setting of the client library, such as security.protocol=SSL; with "
                "consumer. or producer. before it of one of the two.",
            ),
            click.option(
                "--client-config", metavar="FILE", type=click.Path(dir_okay=False),
                help="Read such settings from a file, one a line: for secrets, which others can "
                "see on a command line.",
            ),
            click.option(
                "--max-message", default="1MiB", show_default=True, metavar="SIZE",
                help="A longer message is bad.",
            ),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@click.group(
    invoke_without_command=True, short_help="Work on a topic of Kafka: one of a consumer group."
)
@of_run(_RULE)
@client_options
@click.option(
    "--message-key", type=click.Choice(["released", "none", "source"]), default="released",
    show_default=True,
    help="The key of what leaves: the value that is released, none, or the message's own, which "
    "leaves undecided.",
)  # fmt: skip
@click.option(
    "--keep-header", multiple=True, metavar="NAME",
    help="Let this header leave as it is, undecided; repeat it.",
)  # fmt: skip
@click.option(
    "--keep-timestamp", is_flag=True,
    help="Let the message's own timestamp leave, instead of when its record was sent.",
)  # fmt: skip
@of_run(_TELLING)
@click.pass_context
def kafka(
    context: click.Context,
    /,
    policy_file: str | None,
    time_field: str | None,
    user_field: str | None,
    attribute_fields: tuple[str, ...],
    key_file: str | None,
    message_key: Any,
    keep_header: tuple[str, ...],
    keep_timestamp: bool,
    metrics: str | None,
    tokens_file: str | None,
    quiet: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Take the messages of a topic, and send those to another that enough users share.

    One worker of a consumer group: start as many as the topic has partitions. The topic is keyed by
    attribute; `zveil kafka rekey` writes one that is. Each partition has a gate of its own, which
    is rebuilt from the last window of the partition wherever it goes.

    Options with a * are the short form of a policy file, as for `zveil run`. Only what the policy
    names leaves: no header, no timestamp, and as a key only the value that is released.

    \b
    zveil kafka --policy zveil.toml --key-file key --brokers localhost:9092 \\
        --from visits --to visits-safe --group zveil
    zveil kafka rekey --policy zveil.toml --brokers localhost:9092 \\
        --from raw --to visits --group zveil-rekey

    \b
    Exit codes:
      0  told to end, and did: what was decided is committed
      1  Kafka is not there or refuses, or another worker has taken its place
      2  wrong usage
    """  # noqa: D301  # click's mark for text that must not be wrapped
    if context.invoked_subcommand is not None:
        return
    client = Client.taken(said)
    fields = {"time": time_field, "user": user_field, "attributes": attribute_fields}
    if policy_file is None and said["z"] is None:
        raise click.UsageError("-z: say how many users must share a value")
    with client.told():
        policy = policy_of(policy_file, said | fields | {"format": client.stated})
        if keep_timestamp and policy.time.step_ns is not None:
            raise click.UsageError(
                "--keep-timestamp: the policy rounds times, and this would tell them exactly"
            )
        from zveil.engines.kafka.fitness import check, needs_key
        from zveil.engines.kafka.worker import Leaving

        check(policy)
        secrets = Secrets(policy, key_file)
        if needs_key(policy) and secrets.given() is None:
            raise click.UsageError(
                "--key-file: all workers, and each after a restart, must make the same pseudonyms; "
                "make a key with: zveil key FILE, and give it to all of them"
            )
        gate_key = secrets.gate_key() or random.token_bytes(32)
        recipe = client.recipe(policy, gate_key, secrets.keyring())
        recipe.act([])  # or the first partition would find that columns are missing
        leaving = Leaving(
            key=message_key,
            headers=frozenset(keep_header),
            timestamp=keep_timestamp,
            step_ns=policy.time.step_ns,
        )
        worker = client.worker(recipe, leaving)
        if metrics is not None:
            from zveil.cli.export import exporting

            exporting(metrics, tokens_file, worker.account.figures)
        elif tokens_file is not None:
            raise click.UsageError("--tokens: goes with --metrics")
    raise SystemExit(client.watch(worker, quiet=quiet, as_json=as_json))


@dataclass(frozen=True, kw_only=True)
class Client:
    """What is said about Kafka."""

    brokers: str | None
    source: str | None
    to: str | None
    group: str | None
    stated: str | None
    columns: str | None
    delivery: Any
    instance: str | None
    start: Any
    throughput: bool
    commit_every: str | None
    once: bool
    said: tuple[str, ...]
    client_config: str | None
    max_message: str

    @classmethod
    def taken(cls, said: dict[str, Any]) -> Client:
        """Take its options out of all."""
        found = cls(**{name: said.pop(name) for name in cls.__dataclass_fields__})
        for option, value in (
            ("--from", found.source), ("--to", found.to), ("--group", found.group),
        ):  # fmt: skip
            if value is None:
                raise click.UsageError(f"Missing option '{option}'.")
        if found.source == found.to:
            raise click.UsageError("--to: expected another topic than --from")
        return found

    def told(self) -> _Told:
        """Say what is wrong with options, and end."""
        return _Told()

    @property
    def every_s(self) -> float:
        """Seconds between two commits."""
        if self.commit_every is None:
            return (_THROUGHPUT if self.throughput else _AT_ONCE)[self.delivery]
        return duration_ns(duration(self.commit_every), "commit-every") / 1e9

    def clients(self) -> Clients:
        """Say how clients are made."""
        try:
            import confluent_kafka  # noqa: F401
        except ImportError:
            from zveil.engines.kafka.client import MISSING

            raise click.UsageError(MISSING) from None
        from zveil.engines.kafka.client import Clients, parse_settings, read_settings

        settings = {} if self.client_config is None else read_settings(self.client_config)
        return Clients(
            brokers=self.brokers,
            group=self.group or "",
            delivery=self.delivery,
            instance=self.instance,
            said=settings | parse_settings(self.said),
            at_once=not self.throughput,
            ends=self.once,
        )

    def recipe(self, policy: Policy, gate_key: bytes, keyring: Any) -> Recipe:
        """Say what partitions are made from; asks Kafka how many there are."""
        from zveil.engines.kafka.partition import Recipe
        from zveil.engines.kafka.topics import partitions_of

        form = format_of(policy.input.format) or Format.NDJSON
        columns = [] if self.columns is None else self.columns.split(",")
        if form is not Format.NDJSON and not columns:
            raise click.UsageError(
                "--columns: a message of CSV has no header; say what its columns are called, such "
                "as --columns ts,uid,host"
            )
        clients = self.clients()
        return Recipe(
            policy=policy,
            partitions=partitions_of(clients, [self.source or "", self.to or ""])[0],
            format=form,
            columns=columns,
            keyring=keyring,
            gate_key=gate_key,
            ids_key=derive_key(gate_key, "ids"),
            memory=ceiling(),
            max_message=size_bytes(self.max_message, "max-message"),
        )

    def topic(self) -> Topic:
        """Say what is read."""
        from zveil.engines.kafka.assignment import Topic

        return Topic(name=self.source or "", start=self.start)

    def worker(self, recipe: Recipe, leaving: Any, *, keyed: bool = True) -> Worker:
        """Make the worker."""
        from zveil.engines.kafka.worker import Worker

        return Worker(
            self.clients(),
            recipe,
            self.topic(),
            self.to or "",
            leaving=leaving,
            every_s=self.every_s,
            most=_MOST if self.throughput else _MOST_AT_ONCE,
            once=self.once,
            is_keyed=keyed,
            report=say,
        )

    def watch(self, worker: Worker, *, quiet: bool, as_json: bool) -> int:
        """Let it work, say how it ended, and give the exit code."""
        from zveil.engines.kafka.client import KafkaFailure

        def stop(_: int, __: FrameType | None) -> None:
            worker.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        code, ended = 0, "end of input" if self.once else "signal"
        try:
            worker.go()
        except (KafkaFailure, OSError, MemoryError) as error:
            say(f"Error: {error}")
            code, ended = FAILED, "error"
        summary = worker.account.summary()
        summary.ended = ended
        flow = worker.account.flow()
        if as_json:
            say(json.dumps(summary.as_dict() | {"kafka": flow_dict(flow)}))
        elif not quiet:
            say(spoken(summary, flow))
        return code


class _Told:
    """Turns errors into what is said at the end."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        from zveil.engines.kafka.client import KafkaFailure

        if isinstance(error, LookupError):
            from zveil.fields import wrong_columns

            raise click.UsageError(f"--columns: {wrong_columns(error, is_text=True)}") from None
        if isinstance(error, ValueError):
            raise click.UsageError(as_option(error)) from None
        if isinstance(error, OSError | KafkaFailure):
            say(f"Error: {error}")
            raise SystemExit(FAILED) from None


def flow_dict(flow: Flow) -> dict[str, Any]:
    """Give it as plain values, for JSON."""
    return {
        "replayed": flow.replayed,
        "moves": flow.moves,
        "commits": flow.commits,
        "aborts": flow.aborts,
        "split": dict(flow.split),
    }


def spoken(summary: Summary, flow: Flow) -> str:
    """Give the account of a worker."""
    text = [account(summary)]
    if summary.ended == "signal":
        text = [text[0].removesuffix("\nended early: signal")]
    text.append(
        f"{flow.commits:,} commits, {flow.aborts:,} aborted transactions, {flow.moves:,} moves of "
        f"partitions, {flow.replayed:,} messages replayed"
    )
    return "\n".join(text)
