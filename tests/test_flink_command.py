"""`zveil flink` before it has met Flink: what it is told, what it refuses, what it would tell."""

import subprocess
import sys
from pathlib import Path

import pytest

from zveil.engines.flink.description import Records, described
from zveil.engines.flink.fitness import check
from zveil.engines.flink.installation import (
    MAIN,
    POM,
    SOURCES,
    Installation,
    MissingPart,
    coordinates,
)
from zveil.engines.flink.job import Job, Launch, Topics, files, folder
from zveil.engines.flink.properties import written
from zveil.hierarchy import Step, parse
from zveil.io import Format
from zveil.names import Names
from zveil.policy import Policy, PolicyError
from zveil.policy.parts import Attribute, Time, User

TOPICS = ("--brokers", "localhost:9092", "--from", "a", "--to", "b")
RULE = ("--time", "ts", "--user", "uid", "--attribute", "host", "-z", "3", "--window", "1h")
WHOLE = (*RULE, "--time-format", "s", "--raw-users")
# Whether Flink is installed here or not.
WITHOUT = "import sys; sys.modules['pyflink'] = None; from zveil.cli import main; main()"


def refused(*options: str, code: int = 2) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "flink", *options],
        capture_output=True, text=True, encoding="utf-8", check=False,
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def test_a_missing_flink_is_told_with_what_adds_it() -> None:
    assert "pip install 'zveil[flink]'" in refused(*TOPICS, *WHOLE, code=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*WHOLE,), "--from: name a topic, or files"),
        ((*TOPICS, *WHOLE, "file"), "--from: name a topic, or files"),
        ((*TOPICS[:4], *WHOLE), "--to: name a topic, or a folder"),
        ((*TOPICS, "-o", "c", *WHOLE), "--to: name a topic, or a folder"),
        ((*TOPICS[:4], "--to", "a", *WHOLE), "--to: expected another topic than --from"),
        ((*TOPICS[2:], *WHOLE), "--brokers: say where Kafka is"),
        (("-o", "c", "file", "--once", *WHOLE), "--once: is for a topic"),
        ((*TOPICS, *WHOLE, "--once", "--resume", "x"), "--once: is for a topic from its start"),
        ((*TOPICS, *RULE[:6]), "-z: say how many users"),
        ((*TOPICS, *RULE, "--raw-users"), "--time-format: expected for Flink"),
        ((*TOPICS, *RULE, "--time-format", "s"), "--key-file: all tasks"),
        ((*TOPICS, *WHOLE, "--resume", "x"), "--key-file: the state is hashed under the key"),
        ((*TOPICS, *WHOLE, "--detached"), "--detached: expected with --cluster"),
        ((*TOPICS, *WHOLE, "--cluster", "x:1"), "--checkpoints: say where all machines"),
        ((*TOPICS, *WHOLE, "--format", "csv"), "--columns: a message of CSV has no header"),
        ((*TOPICS, *WHOLE, "--format", "csv", "--columns", "ts,uid"), "there is no field 'host'"),
        ((*TOPICS, *WHOLE, "--keep", "*"), "--keep: '*'"),
        ((*TOPICS, *WHOLE, "--set", "x"), "--set: expected name=value"),
        ((*TOPICS, *WHOLE, "--set", "isolation.level=read_uncommitted"), "leave it out"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: tuple[str, ...], words: str) -> None:
    assert words in refused(*options)


def test_headers_are_utf_8_whatever_the_locale_is(tmp_path: Path) -> None:
    one, other, odd = (str(tmp_path / name) for name in ("one.csv", "other.csv", "odd.csv"))
    Path(one).write_bytes("ts,uid,höst\n".encode())
    Path(other).write_bytes(b"\xef\xbb\xbf" + Path(one).read_bytes())
    Path(odd).write_bytes(b"ts,uid,h\xf6st\n")
    said = ("-o", "c", "--format", "csv", *WHOLE)
    assert "there is no field 'host'" in (told := refused(one, other, *said))
    assert "höst" in told
    assert f"the header of {odd} is not UTF-8" in refused(odd, *said)


def test_a_level_that_is_held_does_not_partition(tmp_path: Path) -> None:
    policy = tmp_path / "zveil.toml"
    policy.write_text(
        '[hold]\nk = 2\np = 0.9\nz_max = 50\n[time]\nfield = "ts"\nformat = "s"\n'
        '[user]\nfield = "uid"\nrotate = "1d"\nkeep_keys = true\n'
        '[[attribute]]\nfield = "host"\nz = 3\nwindow = "1h"\n',
        encoding="utf-8",
    )
    assert "hold" in refused(*TOPICS, "--policy", str(policy))


def policy(**changed: object) -> Policy:
    said = {"time": "ts", "user": "uid", "attributes": ["host"], "z": 3, "window": "1h"}
    return Policy.of(**(said | {"time_format": "s"} | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"noise": 2}, "attribute[0].noise"),
        ({"swap": 0.1}, "attribute[0].swap"),
        ({"memory": "1GiB"}, "limits.memory"),
        ({"max_attributes": 10}, "limits.attributes"),
        ({"id": "n"}, "input.id"),
        ({"pseudonym": "crypto-pan"}, "user.pseudonym"),
        ({"rotate": "1h"}, "user.rotate"),
        ({"attributes": ["host", "path"], "empty": "blank"}, "record.empty"),
    ],
)
def test_what_the_operator_does_not_do_is_refused(changed: dict[str, object], place: str) -> None:
    check(policy())
    with pytest.raises(PolicyError) as error:
        check(policy(**changed))
    parts = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.value.where)
    assert parts.removeprefix(".") == place


def levelled(steps: list[Step], **said: object) -> Policy:
    one = Attribute("host", z=3, window="1h", hierarchy=parse(steps, "."), **said)  # type: ignore[arg-type]
    return Policy(time=Time("ts", format="s"), user=User("uid"), attributes=(one,))


def test_steps_that_it_does_not_climb_are_refused() -> None:
    check(levelled([{"segments": "/", "levels": 2}, {"bins": [10]}]))
    check(levelled(["domain"]))
    check(levelled([{"prefix": [24]}]))
    check(levelled([{"time": ["day"]}]))
    with pytest.raises(PolicyError, match="cells: the operator for Flink climbs"):
        check(levelled([{"cells": [7]}], fields=("lat", "lon")))


def test_a_policy_is_told_whole() -> None:
    told = described(
        policy(attributes=["page.host", "page.path"], keep=['a"b', "page.note"], round="hour"),
        Records(format=Format.NDJSON, max_line=100),
        gate_key=bytes(range(32)),
        user_key=None,
    )
    pieces = [told[f"piece.{number}.text"] for number in range(int(told["pieces"]))]
    fields = [int(told[f"piece.{number}.field"]) for number in range(int(told["pieces"]))]
    record = "".join(f"{text}{field}" for text, field in zip(pieces, fields, strict=True))
    assert record + told["end"] == '{"ts":0,"uid":1,"page":{"host":2,"path":3,"note":5},"a\\"b":4}'
    assert told["time.step_ns"] == str(3_600 * 10**9)
    assert told["gate.key"] == bytes(range(32)).hex()


def test_of_csv_columns_are_told() -> None:
    records = Records(format=Format.CSV, columns=["x", "host", "uid", "ts"], max_line=100)
    told = described(policy(), records, gate_key=bytes(32), user_key=bytes(32))
    assert [told[f"column.{number}"] for number in range(3)] == ["3", "2", "1"]
    assert told["attribute.0.veil"] == ""


def test_lists_and_rules_are_told_as_the_core_takes_them(tmp_path: Path) -> None:
    file = tmp_path / "top.csv"
    file.write_bytes(
        b"\xef\xbb\xbfrank,name\n1,Example.ORG\n\n# no\n2,*.co.uk.\r\n3,\xff.a\n4,example.org"
    )
    one = levelled([{"domain": "icann"}], only=Names.read(file))
    records = Records(format=Format.NDJSON, max_line=100)
    told = described(one, records, gate_key=bytes(32), user_key=bytes(32))
    assert told["attribute.0.only"] == "example.org,co.uk,\xff.a"
    assert told["attribute.0.except"] == ""
    rules = told["attribute.0.step.0.rules"].split(",")
    assert {"org", "*.ck", "!www.ck"} < set(rules)
    assert "github.io" not in rules
    assert {"c0-e0", "130-69-307", "3a3-3c3"} < set(told["attribute.0.step.0.lower"].split(","))
    file.write_bytes(b"another")
    with pytest.raises(ValueError, match="has changed since it was read"):
        described(one, records, gate_key=bytes(32), user_key=bytes(32))


def test_properties_are_plain_text_whatever_they_hold() -> None:
    assert written({"a": 'é\n=:#! \\"😀'}).isascii()
    assert written({"a": "x\ny"}).count("\n") == 1


def test_a_job_is_told_to_flink() -> None:
    topics = Topics(brokers="h:1", group="g", settings={"consumer": {"x": "1"}})
    job = Job(
        policy={"name of": "it"},
        source=topics.source("a", start="latest", once=True),
        sink=folder("/out"),
        checkpoints="/kept",
        checkpoint_ms=1_000,
    )
    told = job.properties()
    assert told["source.consumer.0"] == "x=1"
    assert told["sink.folder"] == "file:///out"
    assert (told["buffer_ms"], told["checkpoint_ms"]) == ("0", "1000")
    launch = Launch(cluster="h:2", parallelism=3, detached=True, resume="/kept/chk-1",
                    settings={"a": "b"})  # fmt: skip
    asked = launch.arguments(job, Path("job.jar"), Path("job.properties"))
    assert asked[:9] == ["run", "-m", "h:2", "-p", "3", "-d", "-s", "file:///kept/chk-1",
                         "-Drestart-strategy.type=failure-rate"]  # fmt: skip
    assert asked[-5:] == ["-Da=b", "-c", "zveil.flink.Job", "job.jar", "job.properties"]
    assert files(["/a b"], header=True)["file.0"] == "file:///a%20b"


def test_the_operator_is_part_of_the_package() -> None:
    made = {source.relative_to(SOURCES).as_posix() for source in SOURCES.rglob("*.java")}
    assert {f"{MAIN.replace('.', '/')}.java", "zveil/flink/KafkaEnds.java"} < made
    assert POM.is_file()


def test_another_flink_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLINK_HOME", str(tmp_path))
    with pytest.raises(MissingPart, match="there is no Flink in"):
        Installation.find()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "flink-dist-1.20.0.jar").touch()
    with pytest.raises(MissingPart, match=r"made for Flink 2\.3"):
        Installation.find()


def test_what_is_missing_to_make_the_operator_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    flink = Installation(tmp_path, "2.3")
    with pytest.raises(MissingPart, match="javac is not there"):
        flink.job(kafka=False)
    with pytest.raises(MissingPart, match="--connectors, or install Maven"):
        flink.job(kafka=True)
    with pytest.raises(MissingPart, match="holds no flink-connector-kafka"):
        flink.job(kafka=True, connectors=tmp_path)
    assert coordinates().startswith("org.apache.flink:flink-connector-kafka:")
