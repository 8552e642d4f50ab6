"""`zveil flink`: a job of Apache Flink."""

from __future__ import annotations

import gzip
import os
import secrets as random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zveil.cli.inputs import FAILED, duration
from zveil.cli.rule import as_option, policy_of
from zveil.cli.run import of_run
from zveil.cli.secrets import Secrets
from zveil.cli.telling import say
from zveil.durations import duration_ns, size_bytes
from zveil.io import Format, format_of
from zveil.keys import VARIABLE

if TYPE_CHECKING:
    from zveil.engines.flink.job import Topics

_RULE = (
    "policy_file", "time_field", "user_field", "attribute_fields", "z", "window", "time_format",
    "only", "except_", "round", "keep", "empty", "key_file", "pseudonym", "rotate", "keep_keys",
    "raw_users", "lateness", "max_future",
)  # fmt: skip


@click.command(short_help="Run a job of Apache Flink: topics or files in, what is safe out.")
@click.argument("files", nargs=-1, type=click.Path())
@of_run(_RULE)
@click.option("--output", "-o", metavar="FOLDER", help="Write files into this folder.")
@click.option("--from", "source", metavar="TOPIC", help="Read this topic of Kafka, not files.")
@click.option("--to", metavar="TOPIC", help="Write to this topic, not to files.")
@click.option("--brokers", metavar="HOST:PORT", help="Where Kafka is; several with commas.")
@click.option(
    "--group", metavar="NAME", default="zveil-flink", show_default=True,
    help="The group that offsets are told to, and transactions are named after; jobs that run at "
    "the same time need different ones.",
)  # fmt: skip
@click.option(
    "--format", "stated", type=click.Choice(["ndjson", "csv", "tsv"]),
    help="What a record is: an object of JSON, or a line of CSV or TSV.  [default: ndjson]",
)  # fmt: skip
@click.option(
    "--columns", metavar="NAMES",
    help="Of CSV without a header: what the columns are called, with commas between.",
)  # fmt: skip
@click.option(
    "--delivery", type=click.Choice(["exactly-once", "at-least-once"]), default="exactly-once",
    show_default=True,
    help="To a topic: with each checkpoint in one transaction; or records at once, of which some "
    "come again after a failure.",
)  # fmt: skip
@click.option(
    "--message-key", type=click.Choice(["released", "none"]), default="released",
    show_default=True, help="The key of what leaves: the value that is released, or none.",
)  # fmt: skip
@click.option(
    "--start", type=click.Choice(["earliest", "latest"]), default="earliest", show_default=True,
    help="Where a topic is begun that is not gone on with.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="End when all that the topic holds now is decided.")
@click.option(
    "--set", "said", multiple=True, metavar="NAME=VALUE",
    help="A setting of Kafka's clients, such as security.protocol=SSL; with consumer. or producer. "
    "before it of one of the two.",
)  # fmt: skip
@click.option(
    "--client-config", metavar="FILE", type=click.Path(dir_okay=False),
    help="Read such settings from a file, one a line: for secrets.",
)  # fmt: skip
@click.option(
    "--connectors", metavar="FOLDER", type=click.Path(file_okay=False),
    help="The jars of Flink's connector for Kafka; fetched by Maven by default.",
)  # fmt: skip
@click.option(
    "--cluster", metavar="HOST:PORT",
    help="The address of a cluster; by default the job runs here, in a process of its own.",
)  # fmt: skip
@click.option(
    "-p", "--parallelism", type=click.IntRange(1, 1 << 15), default=1, show_default=True,
    metavar="N", help="Tasks that decide side by side.",
)  # fmt: skip
@click.option(
    "--checkpoints", metavar="FOLDER",
    help="Where checkpoints are kept, for all machines to reach.  [required with --cluster]",
)  # fmt: skip
@click.option(
    "--checkpoint-every", metavar="DURATION", default="1s", show_default=True,
    help="How often one is made. What is exactly once leaves then.",
)  # fmt: skip
@click.option("--resume", metavar="FOLDER", help="Go on from this checkpoint or savepoint.")
@click.option(
    "--throughput", is_flag=True, help="Let records wait for full buffers: more in a second."
)
@click.option("--detached", is_flag=True, help="Do not wait for the end of the job.")
@click.option(
    "--flink-set", multiple=True, metavar="NAME=VALUE",
    help="A setting of Flink, such as state.backend.type=rocksdb.",
)  # fmt: skip
@click.option(
    "--max-message", default="1MiB", show_default=True, metavar="SIZE",
    help="A longer record is bad.",
)  # fmt: skip
@of_run(("quiet",))
def flink(
    files: tuple[str, ...],
    policy_file: str | None,
    time_field: str | None,
    user_field: str | None,
    attribute_fields: tuple[str, ...],
    key_file: str | None,
    stated: str | None,
    resume: str | None,
    quiet: bool,
    **said: Any,
) -> None:
    """Run a job of Apache Flink that lets records through that enough users share.

    The job is a reader beside each source, which splits records by value, and an operator keyed by
    value, which decides. Both are small classes of Java; what they remember is Flink's state.

    Options with a * are the short form of a policy file, as for `zveil run`. What the operator does
    not do is refused.

    \b
    zveil flink --policy zveil.toml --key-file key --output safe events.ndjson
    zveil flink --policy zveil.toml --key-file key --brokers localhost:9092 \\
        --from visits --to visits-safe --cluster localhost:8081 \\
        --checkpoints /shared/checkpoints

    \b
    Exit codes:
      0  the job ended well, or was handed over (--detached)
      1  Flink is not there or refuses, or the job failed
      2  wrong usage
    """  # noqa: D301  # click's mark for text that must not be wrapped
    from zveil.engines.flink.description import Records, described
    from zveil.engines.flink.fitness import check
    from zveil.engines.flink.installation import Installation, MissingPart
    from zveil.engines.flink.job import Job, JobFailure, Launch
    from zveil.engines.kafka.client import ClientError
    from zveil.engines.kafka.fitness import needs_key
    from zveil.engines.kafka.settings import parse_settings

    rule = {name: said.pop(name) for name in list(said) if name in _RULE}
    fields = {"time": time_field, "user": user_field, "attributes": attribute_fields}
    if policy_file is None and rule["z"] is None:
        raise click.UsageError("-z: say how many users must share a value")
    _check_ends(files, resume, said)
    try:
        policy = policy_of(policy_file, rule | fields | {"format": stated})
        check(policy)
        form = format_of(policy.input.format) or Format.NDJSON
        columns, header = _columns(files, form, said["columns"])
        secrets = Secrets(policy, key_file)
        key = secrets.given()
        os.environ.pop(VARIABLE, None)
        if needs_key(policy) and key is None:
            raise click.UsageError(
                "--key-file: all tasks, and each after a restart, must make the same pseudonyms; "
                "make a key with: zveil key FILE"
            )
        if resume is not None and key is None:
            raise click.UsageError(
                "--key-file: the state is hashed under the key; say the one that it was begun with"
            )
        limit = size_bytes(said["max_message"], "max-message")
        job = Job(
            policy=described(
                policy,
                Records(format=form, columns=columns, max_line=limit),
                gate_key=key or random.token_bytes(32),
                user_key=key,
            ),
            source=_source(files, header, said),
            sink=_sink(said),
            checkpoints=said["checkpoints"],
            checkpoint_ms=max(
                duration_ns(duration(said["checkpoint_every"]), "checkpoint-every") // 10**6, 10
            ),
            at_once=not said["throughput"],
        )
        launch = Launch(
            cluster=said["cluster"],
            parallelism=said["parallelism"],
            detached=said["detached"],
            resume=resume,
            settings=parse_settings(said["flink_set"]),
        )
        installation = Installation.find()
        connectors = None if said["connectors"] is None else Path(said["connectors"])
        is_kafka = said["source"] is not None or said["to"] is not None
        jar = installation.job(kafka=is_kafka, connectors=connectors)
    except ClientError as error:
        raise click.UsageError(str(error)) from None
    except ValueError as error:
        raise click.UsageError(_option(error)) from None
    except (OSError, MissingPart) as error:
        say(f"Error: {error}")
        raise SystemExit(FAILED) from None
    try:
        number = launch.go(job, installation, jar)
    except JobFailure as error:
        say(f"Error: {error}")
        raise SystemExit(FAILED) from None
    if not quiet:
        say(f"job {number}: {'handed over' if launch.detached else 'ended'}")


def _option(error: ValueError) -> str:
    words = str(error)
    return f"--{words}" if words.startswith("columns: ") else as_option(error)


def _check_ends(files: tuple[str, ...], resume: str | None, said: dict[str, Any]) -> None:
    if bool(files) == (said["source"] is not None):
        raise click.UsageError("--from: name a topic, or files, one of the two")
    if (said["output"] is None) == (said["to"] is None):
        raise click.UsageError("--to: name a topic, or a folder with --output, one of the two")
    if said["source"] is not None and said["source"] == said["to"]:
        raise click.UsageError("--to: expected another topic than --from")
    if said["brokers"] is None and (said["source"] is not None or said["to"] is not None):
        raise click.UsageError("--brokers: say where Kafka is, such as localhost:9092")
    if said["once"] and resume is not None:
        raise click.UsageError(
            "--once: is for a topic from its start; one that is gone on with goes on, and is "
            "cancelled"
        )
    if files and said["once"]:
        raise click.UsageError("--once: is for a topic; files end by themselves")
    if said["cluster"] is None and said["detached"]:
        raise click.UsageError("--detached: expected with --cluster, which the job is left to")
    if said["cluster"] is not None and said["checkpoints"] is None:
        raise click.UsageError(
            "--checkpoints: say where all machines of the cluster can keep what they know"
        )


def _columns(files: tuple[str, ...], form: Format, named: str | None) -> tuple[list[str], bool]:
    """Give the columns of CSV, and whether files begin with a line that names them."""
    if form is Format.NDJSON:
        return [], False
    if named is not None:
        return named.split(","), False
    if not files:
        raise ValueError(
            "columns: a message of CSV has no header; say what its columns are called, such as "
            "--columns ts,uid,host"
        )
    import csv

    headers = []
    for name in files:
        opening = gzip.open if name.endswith(".gz") else open
        with opening(name, "rt", encoding="utf-8-sig") as file:
            try:
                headers.append(file.readline())
            except UnicodeDecodeError:
                raise ValueError(f"columns: the header of {name} is not UTF-8") from None
    if len(set(headers)) > 1:
        raise ValueError("columns: the files have different headers")
    delimiter = "," if form is Format.CSV else "\t"
    return next(csv.reader([headers[0]], delimiter=delimiter), []), True


def _topics(said: dict[str, Any]) -> Topics:
    from zveil.engines.flink.job import Topics
    from zveil.engines.kafka.client import Clients
    from zveil.engines.kafka.settings import parse_settings, read_settings

    given = {} if said["client_config"] is None else read_settings(said["client_config"])
    given |= parse_settings(said["said"])
    Clients(brokers=said["brokers"], group=said["group"], said=given)  # refuses what is ours
    settings: dict[str, dict[str, str]] = {"consumer": {}, "producer": {}}
    for role, held in settings.items():
        others = tuple(f"{other}." for other in settings if other != role)
        for name, value in given.items():
            if not name.startswith(others):
                held[name.removeprefix(f"{role}.")] = value
    return Topics(brokers=said["brokers"], group=said["group"], settings=settings)


def _source(files: tuple[str, ...], header: bool, said: dict[str, Any]) -> dict[str, Any]:
    from zveil.engines.flink.job import files as described_files

    if files:
        return described_files(files, header=header)
    return _topics(said).source(said["source"], start=said["start"], once=said["once"])


def _sink(said: dict[str, Any]) -> dict[str, Any]:
    from zveil.engines.flink.job import folder

    if said["to"] is None:
        return folder(said["output"])
    return _topics(said).sink(said["to"], delivery=said["delivery"], key=said["message_key"])
