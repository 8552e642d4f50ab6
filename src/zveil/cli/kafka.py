"""`zveil kafka`: a worker of a consumer group."""

from __future__ import annotations

import secrets as random
from typing import Any

import click

from zveil.cli.client import Client, client_options, fields_of
from zveil.cli.rekey import rekey
from zveil.cli.rule import policy_of
from zveil.cli.run import of_run
from zveil.cli.secrets import Secrets
from zveil.cli.worker import watch

_RULE = (
    "policy_file", "time_field", "user_field", "attribute_fields", "z", "window", "noise", "swap",
    "time_format", "only", "except_", "round", "keep", "empty", "key_file", "pseudonym", "rotate",
    "keep_keys", "raw_users", "lateness", "max_future", "memory", "max_attributes", "id",
)  # fmt: skip
_TELLING = ("metrics", "tokens_file", "quiet", "as_json")


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
    client, fields = Client.taken(said), fields_of(said)
    if policy_file is None and said["z"] is None:
        raise click.UsageError("-z: say how many users must share a value")
    with client.told():
        policy = policy_of(policy_file, said | fields | {"format": client.stated})
        if keep_timestamp and policy.time.step_ns is not None:
            raise click.UsageError(
                "--keep-timestamp: the policy rounds times, and this would tell them exactly"
            )
        from zveil.engines.kafka.fitness import check, needs_key
        from zveil.engines.kafka.leaving import Leaving

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
        worker = client.worker(recipe, leaving, silent=quiet or as_json)
        if metrics is not None:
            from zveil.cli.export import exporting

            exporting(metrics, tokens_file, worker.account.figures)
        elif tokens_file is not None:
            raise click.UsageError("--tokens: goes with --metrics")
    raise SystemExit(watch(worker, once=client.once, quiet=quiet, as_json=as_json))


kafka.add_command(rekey)
