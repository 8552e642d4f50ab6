"""`zveil kafka` before it has met a broker: what it is told, and what it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest

from zveil.engines.kafka.client import ClientError, Clients
from zveil.engines.kafka.settings import parse_settings, read_settings

TOPICS = ("--brokers", "localhost:9092", "--from", "a", "--to", "b", "--group", "g")
RULE = ("--time", "ts", "--user", "uid", "--attribute", "host", "-z", "3", "--window", "1h")
# Whether the client of Kafka is installed here or not.
WITHOUT = "import sys; sys.modules['confluent_kafka'] = None; from zveil.cli import main; main()"


def refused(*options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "kafka", *options],
        capture_output=True, text=True, encoding="utf-8", check=False,
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("command", [(), ("rekey",)])
def test_a_missing_client_is_told_with_what_adds_it(command: tuple[str, ...]) -> None:
    rule = (*RULE, "--raw-users") if not command else RULE[:6]
    assert "pip install 'zveil[kafka]'" in refused(*command, *TOPICS, *rule)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*TOPICS[:4], *RULE), "Missing option '--to'"),
        ((*TOPICS, "--to", "a", *RULE), "--to: expected another topic than --from"),
        ((*TOPICS, *RULE[:6]), "-z: say how many users"),
        ((*TOPICS, *RULE), "--key-file: all workers"),
        ((*TOPICS, *RULE, "--raw-users", "--noise", "2"), "--key-file: all workers"),
        ((*TOPICS, *RULE, "--rotate", "1h"), "--rotate: a one-way chain of keys belongs to one"),
        (
            (*TOPICS, *RULE, "--raw-users", "--round", "hour", "--keep-timestamp"),
            "--keep-timestamp: the policy rounds times",
        ),
        ((*TOPICS, *RULE, "--raw-users", "--format", "csv"), "--columns: a message of CSV"),
        (("rekey", *TOPICS), "Missing option '--time'"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: tuple[str, ...], words: str) -> None:
    assert words in " ".join(refused(*options).split())


def test_logs_are_no_messages(tmp_path: Path) -> None:
    policy = tmp_path / "zveil.toml"
    policy.write_text(
        '[input]\nformat = "zeek-dns"\n[time]\nfield = "ts"\n[user]\nfield = "id.orig_h"\n'
        '[[attribute]]\nfield = "query"\nz = 3\nwindow = "1h"\n',
        encoding="utf-8",
    )
    assert "messages are records of JSON" in refused(*TOPICS, "--policy", str(policy))


def test_a_level_that_is_held_does_not_partition(tmp_path: Path) -> None:
    policy = tmp_path / "zveil.toml"
    policy.write_text(
        '[hold]\nk = 2\np = 0.9\nz_max = 50\n[time]\nfield = "ts"\n[user]\nfield = "uid"\n'
        'rotate = "1d"\nkeep_keys = true\n[[attribute]]\nfield = "host"\nz = 3\nwindow = "1h"\n',
        encoding="utf-8",
    )
    said = " ".join(refused(*TOPICS, "--policy", str(policy)).split())
    assert "hold: who looks like whom is not known to one part of a stream" in said


def test_settings_go_to_the_clients_they_are_for() -> None:
    said = parse_settings(["security.protocol=SSL", "producer.linger.ms=7", "consumer.a=b=c"])
    clients = Clients(brokers="k:1", group="g", said=said)
    consumer, producer = clients.consumer_settings(), clients.producer_settings()
    assert (consumer["bootstrap.servers"], producer["bootstrap.servers"]) == ("k:1", "k:1")
    assert (consumer["security.protocol"], producer["security.protocol"]) == ("SSL", "SSL")
    assert ("linger.ms" in consumer, producer["linger.ms"]) == (False, "7")
    assert (consumer["a"], "a" in producer) == ("b=c", False)
    assert consumer["isolation.level"] == "read_committed"
    assert consumer["enable.auto.commit"] is False
    assert (producer["acks"], producer["enable.idempotence"]) == ("all", True)


def test_a_worker_has_one_name_for_its_transactions() -> None:
    drawn = Clients(brokers="k:1", group="g")
    assert drawn.producer_settings() == drawn.producer_settings()
    other = Clients(brokers="k:1", group="g")
    name = "transactional.id"
    assert other.producer_settings()[name] != drawn.producer_settings()[name]
    named = Clients(brokers="k:1", group="g", instance="one")
    assert named.producer_settings()[name] == "g-one"
    least = Clients(brokers="k:1", group="g", delivery="at-least-once")
    assert name not in least.producer_settings()


@pytest.mark.parametrize(
    "name", ["enable.auto.commit", "consumer.isolation.level", "producer.transactional.id", "acks"]
)
def test_what_delivery_depends_on_is_not_set(name: str) -> None:
    with pytest.raises(ClientError, match="leave it out"):
        Clients(brokers="k:1", group="g", said={name: "1"})


def test_settings_are_read_from_a_file_without_showing_them(tmp_path: Path) -> None:
    file = tmp_path / "client.conf"
    file.write_text(
        "# log in\n\n sasl.password = a=b# \nssl.ca.location=ca.pem\n", encoding="utf-8"
    )
    assert read_settings(str(file)) == {"sasl.password": "a=b#", "ssl.ca.location": "ca.pem"}
    file.write_text("sasl.username=u\nhunter2\n", encoding="utf-8")
    with pytest.raises(ClientError, match=r":2: expected name=value") as error:
        read_settings(str(file))
    assert "hunter2" not in str(error.value)
    with pytest.raises(ClientError, match="--brokers"):
        Clients(brokers=None, group="g")
    Clients(brokers=None, group="g", said={"bootstrap.servers": "k:1"})
