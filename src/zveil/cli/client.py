"""What is said about Kafka: the options of its commands, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zveil.cli.inputs import FAILED, duration
from zveil.cli.rule import as_option
from zveil.cli.telling import say
from zveil.durations import duration_ns, size_bytes
from zveil.io import Format, format_of
from zveil.keys import derive_key
from zveil.memory import ceiling
from zveil.policy import Policy

if TYPE_CHECKING:
    from zveil.engines.kafka.client import Clients
    from zveil.engines.kafka.leaving import Leaving
    from zveil.engines.kafka.partition import Recipe
    from zveil.engines.kafka.worker import Worker

Command = TypeVar("Command", bound=Callable[..., Any])


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
                "least once; 200ms and 5s with --throughput]",
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
    def every_s(self) -> float | None:
        """Seconds between two commits, if that was said."""
        if self.commit_every is None:
            return None
        return duration_ns(duration(self.commit_every), "commit-every") / 1e9

    def clients(self) -> Clients:
        """Say how clients are made."""
        try:
            import confluent_kafka  # noqa: F401
        except ImportError:
            from zveil.engines.kafka.client import MISSING

            raise click.UsageError(MISSING) from None
        from zveil.engines.kafka.client import Clients
        from zveil.engines.kafka.settings import parse_settings, read_settings

        settings = {} if self.client_config is None else read_settings(self.client_config)
        return Clients(
            brokers=self.brokers,
            group=self.group or "",
            delivery=self.delivery,
            instance=self.instance,
            said=settings | parse_settings(self.said),
            at_once=not self.throughput,
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

    def worker(
        self, recipe: Recipe, leaving: Leaving, *, silent: bool, is_keyed: bool = True
    ) -> Worker:
        """Make the worker; a silent one tells only what is wrong."""
        from zveil.engines.kafka.offsets import Topic
        from zveil.engines.kafka.worker import Worker

        return Worker(
            self.clients(),
            recipe,
            Topic(name=self.source or "", start=self.start),
            self.to or "",
            leaving,
            say,
            every_s=self.every_s,
            once=self.once,
            is_keyed=is_keyed,
            tell=None if silent else say,
        )


def fields_of(said: dict[str, Any]) -> dict[str, Any]:
    """Take out of all options which fields are decided about, by their names in a policy."""
    return {
        "time": said.pop("time_field"),
        "user": said.pop("user_field"),
        "attributes": said.pop("attribute_fields"),
    }


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
