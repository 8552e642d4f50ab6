"""What a worker lets out, what it says, and what it is told: on a real broker."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from broker import SASL_PASSWORD, SASL_USER, Address, free_ports
from confluent_kafka import Producer
from kafka.workers import PATIENCE_S, RULE, START, Group, Stream, require_same
from topics import produce, read

Make = Callable[..., str]
BARE = tuple(word for word in RULE if word not in ("--keep", "n"))


def event(second: int, user: str, host: object, **more: object) -> bytes:
    return json.dumps({"ts": START + second, "uid": user, "host": host, **more}).encode()


def crowd(host: str, count: int = 4) -> list[bytes]:
    return [event(number, f"u{number}", host) for number in range(count)]


def once(made: Group, *more: str) -> dict[str, Any]:
    return made.start("--once", *more).ended()


def sent(made: Group, values: Sequence[bytes | None], **more: Any) -> None:
    producer = Producer({"bootstrap.servers": made.bootstrap})
    for value in values:
        producer.produce(made.source, value, partition=0, **more)
    assert producer.flush(30) == 0


def test_nothing_leaves_but_what_the_policy_names(group: Callable[..., Group]) -> None:
    made = group()
    sent(made, crowd("a.example"), key=b"the-secret", headers=[("who", b"ada"), ("trace", b"1")])
    before = time.time() * 1000
    once(made)
    found = read(made.bootstrap, made.to)
    assert [message.key() for message in found] == [b"a.example"] * 2
    assert [message.headers() for message in found] == [None] * 2
    assert all(message.timestamp()[1] >= before - 1000 for message in found)
    assert b"secret" not in b"".join(message.value() or b"" for message in found)


def test_what_is_kept_on_purpose_leaves_with_its_record(group: Callable[..., Group]) -> None:
    made = group()
    # One name may come several times, with nothing in it, or with no value at all.
    kept = [("trace", b"1"), ("träger", b"x"), ("trace", b""), ("trace", None)]
    sent(made, crowd("a.example"), key=b"mine", headers=[("who", b"ada"), *kept], timestamp=1234)
    names = ("--keep-header", "trace", "--keep-header", "träger")
    once(made, "--message-key", "source", *names, "--keep-timestamp")
    found = read(made.bootstrap, made.to)
    assert len(found) == 2
    for message in found:
        assert message.key() == b"mine"
        assert message.headers() == kept
        assert message.timestamp() == (1, 1234)


def test_a_veiled_record_leaves_no_trace_unless_that_was_chosen(
    group: Callable[..., Group],
) -> None:
    made = group()
    sent(made, [*crowd("a.example", 2), *crowd("b.example", 1)], key=b"rare.example")
    once(made, "--message-key", "source")
    assert read(made.bootstrap, made.to) == []
    blank = group()
    sent(blank, crowd("a.example", 3), key=b"a.example")
    once(blank, "--veiled", "blank")
    found = read(blank.bootstrap, blank.to)
    assert [json.loads(message.value() or b"")["host"] for message in found] == [
        None,
        None,
        "a.example",
    ]
    assert [message.key() for message in found] == [None, None, b"a.example"]


def test_times_of_messages_are_rounded_as_those_of_records_are(group: Callable[..., Group]) -> None:
    made = group()
    sent(made, crowd("a.example"))
    once(made, "--round", "hour")
    found = read(made.bootstrap, made.to)
    assert len(found) == 2
    assert all(message.timestamp()[1] % 3_600_000 == 0 for message in found)
    worker = made.start("--round", "hour", "--keep-timestamp")
    worker.ended(code=2)
    assert "--keep-timestamp: the policy rounds times" in worker.said()


def test_bad_messages_are_counted_and_told_by_their_place_alone(
    group: Callable[..., Group],
) -> None:
    made = group()
    bad = [b"{secret", b"[]", b'{"ts":1,"uid":"secret"}', b"\xff secret", b'{"ts":"secret"}']
    sent(made, [*bad, None, b"", *crowd("a.example"), b'{\n "ts": 1700000009,\n "uid": "u9",\n'
                b' "host": "a.example"\n}'])  # fmt: skip
    worker = made.start("--once")
    account = worker.ended()
    assert account["bad_lines"] == 5
    assert account["records"] == 5
    assert account["passed"] == 2
    assert account["left"] == len(read(made.bootstrap, made.to)) == 3
    said = worker.said()
    assert f"{made.source}[0]@0:" in said
    assert f"{made.source}[0]@3:" in said
    assert "secret" not in said.rsplit("\n", 2)[0]


def test_csv_in_csv_out(group: Callable[..., Group]) -> None:
    made = group(options=BARE)
    rows = [b'%d,x,u%d,"a,b"' % (START + number, number) for number in range(4)]
    sent(made, [*rows, b'1700000005,x,"u5', b"1,2\n3,4"])
    account = once(made, "--format", "csv", "--columns", "ts,other,uid,host", "--keep", "other")
    assert account["bad"] == {"cut-off": 1, "syntax": 1}
    found = [message.value() for message in read(made.bootstrap, made.to)]
    assert found == [b'%d,u%d,"a,b",x' % (START + number, number) for number in (2, 3)]


@pytest.fixture
def unkeyed(group: Callable[..., Group]) -> Group:
    """A topic whose messages are wherever they happened to be written."""
    made = group(2, options=BARE)
    hosts = [f"h{number % 5}.example" for number in range(400)]
    messages = [
        (number % 2, b"%d" % number, event(number // 10, f"u{number % 17}", host))
        for number, host in enumerate(hosts)
    ]
    produce(made.bootstrap, made.source, messages)
    return made


def test_a_value_on_two_partitions_is_told_loudly(unkeyed: Group) -> None:
    worker = unkeyed.start("--once")
    account = worker.ended()
    assert account["kafka"]["split"]["host"] > 0
    assert "WARNING" in worker.said()
    assert "a value of 'host' is on two partitions" in worker.said()
    assert "zveil kafka rekey" in worker.said()
    assert ".example" not in worker.said()


def test_a_topic_that_is_rekeyed_is_decided_as_one_stream(
    unkeyed: Group, topic: Make, tmp_path: Path
) -> None:
    keyed = topic(3)
    rekey = Group(
        unkeyed.bootstrap, unkeyed.source, keyed, tmp_path, command=("kafka", "rekey"),
        options=("--time", "ts", "--user", "uid", "--attribute", "host"),
    )  # fmt: skip
    account = once(rekey)
    assert account["records"] == account["left"] == 400
    found = read(rekey.bootstrap, keyed)
    of_host: dict[str, set[int | None]] = {}
    for message in found:
        host = json.loads(message.value() or b"")["host"]
        assert message.key() == host.encode()
        of_host.setdefault(host, set()).add(message.partition())
    assert all(len(partitions) == 1 for partitions in of_host.values())
    worker = Group(rekey.bootstrap, keyed, topic(3), tmp_path, options=unkeyed.options)
    account = once(worker)
    assert account["kafka"]["split"] == {"host": 0}
    # Five hosts of many users: but for the first two of each, everything.
    assert account["left"] == 400 - 2 * 5
    rekey.close()
    worker.close()


def test_a_rekeyed_topic_has_all_that_the_old_one_had(group: Callable[..., Group]) -> None:
    rule = ("--time", "ts", "--user", "uid", "--attribute", "host")
    made = group(1, options=rule, command=("kafka", "rekey"))
    values, headers = crowd("a.example"), [("who", b"ada"), ("none", None)]
    sent(made, values, key=b"the old one", headers=headers, timestamp=1234)
    once(made)
    found = read(made.bootstrap, made.to)
    assert [message.value() for message in found] == list(values)
    for message in found:
        assert (message.key(), message.headers()) == (b"a.example", headers)
        assert message.timestamp() == (1, 1234)


def test_records_with_several_attributes_are_split(group: Callable[..., Group]) -> None:
    rule = ("--time", "ts", "--user", "uid", "--attribute", "host", "--attribute", "app")
    made = group(2, options=rule, command=("kafka", "rekey"))
    sent(made, [
        event(0, "ada", "a.example", app="mail", other="x"),
        event(1, "bob", "a.example", app=None),
        event(2, "cyd", None, app=7),
    ])  # fmt: skip
    account = once(made)
    assert (account["records"], account["left"]) == (3, 4)
    found = {message.key(): [] for message in read(made.bootstrap, made.to)}
    for message in read(made.bootstrap, made.to):
        found[message.key()].append(json.loads(message.value() or b""))
    assert found == {
        b"a.example": [
            {"ts": START, "uid": "ada", "host": "a.example", "app": None},
            {"ts": START + 1, "uid": "bob", "host": "a.example", "app": None},
        ],
        b"mail": [{"ts": START, "uid": "ada", "host": None, "app": "mail"}],
        b"7": [{"ts": START + 2, "uid": "cyd", "host": None, "app": 7}],
    }


def test_a_hierarchy_is_keyed_by_its_coarsest_level(
    group: Callable[..., Group], tmp_path: Path
) -> None:
    policy = tmp_path / "zveil.toml"
    policy.write_text(
        '[time]\nfield = "ts"\n[user]\nfield = "uid"\npseudonym = "raw"\n[[attribute]]\n'
        'field = "host"\nz = 3\nwindow = "1m"\nhierarchy = [{ segments = ".", levels = 1 }]\n',
        encoding="utf-8",
    )
    made = group(2, options=("--policy", str(policy)), command=("kafka", "rekey"))
    sent(made, [event(n, f"u{n}", f"example.w{n}") for n in range(4)])
    once(made)
    found = read(made.bootstrap, made.to)
    assert len({message.key() for message in found}) == 1
    decided = Group(made.bootstrap, made.to, made.source, tmp_path, made.options)
    assert once(decided)["left"] == 2
    decided.close()


def test_settings_of_the_client_are_passed_through(
    broker: Address, group: Callable[..., Group], tmp_path: Path
) -> None:
    made = group()
    sent(made, crowd("a.example"))
    config = tmp_path / "client.conf"
    config.write_text(
        "# how to log in\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.username={SASL_USER}\nsasl.password={SASL_PASSWORD}\n",
        encoding="utf-8",
    )
    logged_in = Group(broker.sasl_bootstrap, made.source, made.to, tmp_path)
    account = once(logged_in, "--client-config", str(config), "--set", "producer.linger.ms=3")
    assert account["left"] == 2
    assert SASL_PASSWORD not in logged_in.running[0].said()


def test_a_worker_says_which_partitions_it_has(group: Callable[..., Group]) -> None:
    made = group(3, telling=())
    one = made.start()
    made.until(lambda: f"{made.source}: 3 of 3 partitions on this worker: 0-2\n" in one.said())
    two = made.start()
    shares = [
        f"2 of 3 partitions on this worker: {numbers}\n" for numbers in ("0-1", "1-2", "0, 2")
    ]
    made.until(lambda: any(share in one.said() + two.said() for share in shares))
    # More workers than partitions: the rest wait, and say so.
    rest = [made.start() for _ in range(2)]
    waits = f"{made.source}: none of 3 partitions is on this worker, which waits for one\n"
    made.until(lambda: any(waits in each.said() for each in rest))
    for each in made.running:
        each.end()
    silent = group(3, telling=("-q",)).start("--once")
    silent.ended()
    assert silent.said() == ""


def test_the_figures_are_served_with_the_lag(group: Callable[..., Group]) -> None:
    stream, made = Stream.drawn(9, 1000, 2), group(2)
    # Transactions leave marks at the ends of partitions, which are nothing to be decided.
    writer = Producer(
        {"bootstrap.servers": made.bootstrap, "transactional.id": f"writer-{made.source}"}
    )
    writer.init_transactions(PATIENCE_S)
    writer.begin_transaction()
    for partition, key, value in stream.messages():
        writer.produce(made.source, value, key, partition)
    writer.commit_transaction(PATIENCE_S)
    (port,) = free_ports(1)
    worker = made.start("--metrics", str(port))
    found: dict[str, float] = {}

    def is_decided() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                lines = answer.read().decode().splitlines()
        except URLError:
            return False  # it is not there yet
        found.update(
            (name, float(value))
            for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
        )
        lags = [found.get(f'zveil_kafka_lag{{partition="{number}"}}') for number in (0, 1)]
        return found["zveil_records_total"] == 1000 and lags == [0, 0]

    made.until(is_decided)
    assert found["zveil_kafka_commits_total"] >= 1
    assert found["zveil_kafka_replaying"] == 0
    assert found['zveil_kafka_split_total{attribute="host"}'] == 0
    worker.end()
    require_same(made.output(), stream)


def test_pseudonyms_are_the_same_on_all_workers(
    group: Callable[..., Group], tmp_path: Path
) -> None:
    made = group(2, options=tuple(word for word in RULE if word != "--raw-users"))
    worker = made.start()
    worker.ended(code=2)
    assert "--key-file: all workers" in worker.said()
    key = tmp_path / "key"
    subprocess.run([Path(sys.executable).parent / "zveil", "key", str(key)], check=True)
    messages = [
        (partition, None, event(n, f"u{n}", host, n=n))
        for partition, host in enumerate(("a.example", "b.example"))
        for n in range(4)
    ]
    produce(made.bootstrap, made.source, messages)
    once(made, "--key-file", str(key))
    users: dict[int, set[str]] = {}
    for message in read(made.bootstrap, made.to):
        record = json.loads(message.value() or b"")
        users.setdefault(record["n"], set()).add(record["uid"])
    assert len(users) == 2
    assert all(len(names) == 1 and len(min(names)) > 10 for names in users.values())


def test_what_cannot_work_is_said_at_once(group: Callable[..., Group]) -> None:
    made = group()
    nowhere = Group("127.0.0.1:1", made.source, made.to, made.folder)
    for options, code, words in [
        (["--to", made.source], 2, "--to: expected another topic"),
        (["--to", "nowhere"], 1, "nowhere: there is no such topic"),
        (["--set", "isolation.level=read_uncommitted"], 2, "isolation.level: zveil sets it"),
        (["--set", "nonsense=1"], 2, "the client of Kafka does not take it"),
        (["--format", "csv"], 2, "--columns: a message of CSV has no header"),
        (["--format", "csv", "--columns", "ts,uid"], 2, "--columns"),
        (["--pseudonym", "hex", "--rotate", "1h"], 2, "--raw-users"),
    ]:
        worker = made.start(*options)
        worker.ended(code)
        assert words in worker.said(), worker.said()
    worker = nowhere.start()
    worker.ended(code=1)
    assert "--brokers: Kafka does not answer there" in worker.said()
