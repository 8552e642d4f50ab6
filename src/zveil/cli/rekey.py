"""`zveil kafka rekey`: a topic that is keyed by attribute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from zveil.cli.client import Client, client_options, fields_of
from zveil.cli.rule import policy_of
from zveil.cli.run import of_run
from zveil.cli.worker import watch

_RULE = (
    "policy_file", "time_field", "user_field", "attribute_fields", "time_format", "keep",
)  # fmt: skip


@click.command(short_help="Write a topic that is keyed by attribute.")
@of_run(_RULE)
@client_options
@of_run(("quiet", "as_json"))
def rekey(
    policy_file: str | None,
    quiet: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Copy a topic to another that is keyed by attribute, for workers to share.

    The key of a message is the value of its attribute as text; with a hierarchy, its coarsest
    label. Nothing is decided: the new topic is as secret as the old one. Timestamps and headers are
    kept.

    A record with several attributes becomes one message for each that has a value, without the
    others; the parts are decided, and leave, by themselves. Bad messages are counted and left out.

    \b
    zveil kafka rekey --policy zveil.toml --brokers localhost:9092 \\
        --from raw --to visits --group zveil-rekey

    \b
    Exit codes:
      0  told to end, and did
      1  Kafka is not there or refuses
      2  wrong usage
    """  # noqa: D301  # click's mark for text that must not be wrapped
    client, fields = Client.taken(said), fields_of(said)
    if policy_file is None:
        # Whatever these say, a key does not depend on it.
        fields |= {"z": 1, "window": "1s", "raw_users": True}
    with client.told():
        from zveil.engines.kafka import fitness
        from zveil.engines.kafka.leaving import Leaving
        from zveil.engines.kafka.rekey import KeyRecipe, check

        policy = policy_of(policy_file, said | fields | {"format": client.stated})
        # Keys depend neither on pseudonyms nor on z.
        user = replace(policy.user, rotate=None, keep_keys=False)
        policy = replace(policy, user=user, hold=None)
        fitness.check(policy)
        check(policy)
        made = client.recipe(policy, bytes(32), None)
        recipe = KeyRecipe(**{name: getattr(made, name) for name in made.__dataclass_fields__})
        leaving = Leaving(headers=None, timestamp=True)
        worker = client.worker(recipe, leaving, silent=quiet or as_json, is_keyed=False)
    raise SystemExit(watch(worker, once=client.once, quiet=quiet, as_json=as_json))
