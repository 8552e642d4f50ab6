"""The broker that other tests stand on: it answers, keeps what it was given, and can be ended."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import broker as module
import pytest
from broker import SASL_PASSWORD, SASL_USER, Address, Broker
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from jars import MissingError, jars, java, maven
from topics import ends, positions, produce, read, values


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_messages_come_back_in_their_order(broker: Address, topic: Callable[..., str]) -> None:
    name = topic(partitions=2)
    sent = [(number % 2, b"key", b"%d" % number) for number in range(100)]
    produce(broker.bootstrap, name, sent)
    evens, odds = range(0, 100, 2), range(1, 100, 2)
    assert values(read(broker.bootstrap, name)) == [b"%d" % number for number in (*evens, *odds)]
    assert ends(broker.bootstrap, name) == {0: 50, 1: 50}


def test_every_test_has_topics_of_its_own(broker: Address, topic: Callable[..., str]) -> None:
    first, second = topic(), topic()
    produce(broker.bootstrap, first, [(0, None, b"here")])
    assert first != second
    assert read(broker.bootstrap, second) == []


def test_what_was_aborted_is_not_read(broker: Address, topic: Callable[..., str]) -> None:
    name = topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "aborting",
                         "log_level": 0})  # fmt: skip
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(name, end.__name__.encode())
        assert producer.flush(30) == 0  # or what is aborted would never have been sent
        end(30)
    assert values(read(broker.bootstrap, name)) == [b"commit_transaction"]
    assert len(read(broker.bootstrap, name, committed=False)) == 2


def test_what_a_group_committed_is_told(broker: Address, topic: Callable[..., str]) -> None:
    name = topic(partitions=2)
    produce(broker.bootstrap, name, [(1, None, b"a"), (1, None, b"b")])
    assert positions(broker.bootstrap, "counting", name) == {}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "counting"})
    consumer.commit(offsets=[TopicPartition(name, 1, 2)], asynchronous=False)
    consumer.close()
    assert positions(broker.bootstrap, "counting", name) == {1: 2}


def test_it_asks_for_a_password(broker: Address) -> None:
    def login(password: str) -> AdminClient:
        return AdminClient({"bootstrap.servers": broker.sasl_bootstrap, "log_level": 0,
                            "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
                            "sasl.username": SASL_USER, "sasl.password": password})  # fmt: skip

    assert login(SASL_PASSWORD).list_topics(timeout=120).brokers
    with pytest.raises(Exception, match=r"transport|[Aa]uthentication"):
        login("wrong").list_topics(timeout=2)


def test_it_keeps_its_data_over_an_end_of_any_kind(own_broker: Broker) -> None:
    name, bootstrap = own_broker.create_topic("kept"), own_broker.bootstrap
    for number, end in enumerate((own_broker.stop, own_broker.kill)):
        produce(bootstrap, name, [(0, None, b"%d" % number)], acks="all")
        pid = own_broker.pid
        end()
        assert not is_there(pid)
        own_broker.restart()
        assert own_broker.bootstrap == bootstrap
    assert values(read(bootstrap, name)) == [b"0", b"1"]


def test_it_ends_with_whoever_started_it() -> None:
    program = [sys.executable, module.__file__]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        bootstrap = started.stdout.readline().strip()
        assert AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=120).brokers
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        assert len(children) == 1
        started.kill()
        started.wait()
    while is_there(int(children[0])):  # the system does it, in its own time
        pass


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingError, match="Java 17 or later"):
        java()
    with pytest.raises(MissingError, match="mvn"):
        maven()


def test_an_older_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho '    java.specification.version = 11' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingError, match="Java 11: the broker needs Java 17"):
        java()


def test_jars_are_fetched_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "pom.xml"
    broken.write_text("no pom")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(MissingError, match="could not fetch"):
        jars(broken)
    assert list((tmp_path / "cache" / "zveil").iterdir()) == []
