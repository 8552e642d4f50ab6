"""Logs are read as plain readers read them: as programs write them, and broken in any way."""

import gzip
import json
import os
import subprocess
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_readers import READERS, Found
from logs import START, WRITERS, Visit, dnsmasq, visits, zeek, zeek_json
from program import zveil

from zveil.act import TextAct
from zveil.io import PRESETS, Format
from zveil.policy import Policy, PolicyError

randoms = st.integers(0, 2**32).map(Random)


def policy_of(name: str) -> Policy:
    preset = PRESETS[name]
    return Policy.of(
        time=preset.time, user=preset.user, attributes=[preset.attribute], z=1, window=0,
        raw_users=True, format=name, year=2024,
    )  # fmt: skip


def read(
    name: str, text: bytes, *, cuts: int = 1, form: Format | None = None, threads: int = 1
) -> Found:
    """Read a log natively, in some pieces, nothing decided."""
    act = TextAct(
        policy_of(name), [], form or PRESETS[name].format, Format.ARROW, keyring=None,
        max_line=1 << 20, stop_at_problem=False, threads=threads,
    )  # fmt: skip
    act.way.start_file()
    step = max(1, -(-len(text) // cuts))
    batches = []
    for at in range(0, len(text), step):
        batches += act.batches(text[at : at + step], last=False)
    batches += act.batches(b"", last=True)
    found = Found()
    for batch in batches:
        times = batch.column(0).cast("int64").to_pylist()
        columns = [batch.column(1).to_pylist(), batch.column(2).to_pylist()]
        found.records += [
            (-(2**63) if t is None else t, user, value)
            for t, user, value in zip(times, *columns, strict=True)
        ]
    tally = act.way.tally()
    found.passed, found.bad = tally["passed"], sum(tally["bad"].values())
    assert tally["records"] == len(found.records)
    return found


def plainly(name: str, text: bytes) -> Found:
    preset = PRESETS[name]
    return READERS[name](text, (preset.time, preset.user, preset.attribute))


@pytest.mark.parametrize("name", WRITERS)
def test_what_programs_write_is_read_whole(name: str) -> None:
    made = visits(Random(name), 500, odd=True)
    text = WRITERS[name](made).encode()
    found = read(name, text)
    assert found == plainly(name, text) == read(name, text, cuts=50) == read(name, text, threads=2)
    assert not found.bad
    assert len(found.records) == len(made)
    assert [user for _, user, _ in found.records] == [visit.client for visit in made]
    assert [t // 10**9 for t, _, _ in found.records] == [visit.t for visit in made]
    assert len({value for _, _, value in found.records}) >= (1 if name == "zeek-conn" else 5)


JUNK = ["\t", " ", "\n", "-", "\\", '"', "[", "]", "#", ":", "0", "9", "\x00", "é", "\udcff", "/",
        "query[", " from ", "info: ", "\r", "from 192.0.2.1", "\\x", "\\x2d", "%", ".",
        "+"]  # fmt: skip


def broken(random: Random, text: str, times: int) -> bytes:
    """Damage records, never a header: letters lost, doubled, or others among them."""
    lines = text.split("\n")
    records = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    for _ in range(times if records else 0):
        number = random.choice(records)
        line = lines[number]
        at = random.randrange(len(line) + 1)
        end = min(len(line), at + random.choice([0, 0, 1, 1, 3, 20]))
        junk = random.choice(["", *JUNK])
        # A line that would begin with one is a header.
        made = line[:at] + junk + line[end:]
        if not any(part.startswith("#") for part in made.split("\n")):
            lines[number] = made
    return "\n".join(lines).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=60, deadline=None)
@given(random=randoms, count=st.integers(1, 12), times=st.integers(0, 10), cuts=st.integers(1, 9))
def test_broken_lines_are_bad_and_nothing_else(
    name: str, random: Random, count: int, times: int, cuts: int
) -> None:
    text = broken(random, WRITERS[name](visits(random, count, odd=True)), times)
    assert read(name, text, cuts=cuts) == plainly(name, text)


# --- the program ---


def released(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def crowd(*names: str, users: int = 3) -> list[Visit]:
    """Some users who all visit each name, one a second."""
    pairs = [(name, user) for name in names for user in range(users)]
    return [Visit(START + at, f"192.0.2.{user}", name) for at, (name, user) in enumerate(pairs)]


@pytest.mark.parametrize("name", WRITERS)
def test_a_preset_means_the_fields_of_its_log(name: str, tmp_path: Path) -> None:
    preset = PRESETS[name]
    log = tmp_path / "of.log"
    log.write_text(WRITERS[name](crowd("example.org", "example.com")))
    done = zveil(
        "run", log, "--format", name, "-z", "3", "--window", "1h", "--year", "2024",
        "--max-future", "any",
    )  # fmt: skip
    records = released(done)
    assert records
    for record in records:
        assert list(record) == [preset.time, preset.user, preset.attribute]
        assert not str(record[preset.user]).startswith("192.")
    if name not in ("zeek-conn", "combined"):
        assert [record[preset.attribute] for record in records] == ["example.org", "example.com"]


@pytest.mark.parametrize("is_iso", [False, True])
def test_zeek_json_is_told_by_its_bytes(is_iso: bool, tmp_path: Path) -> None:
    text = zeek_json([*crowd("example.org"), *crowd("-")], iso=is_iso).encode()
    for stdin, files in (text, []), (gzip.compress(text), []), (b"", [tmp_path / "ssl.log"]):
        (tmp_path / "ssl.log").write_bytes(text)
        done = zveil(
            "run", *files, "--format", "zeek-ssl", "-z", "3", "--window", "1h",
            "--keep", "id.resp_p", stdin=stdin,
        )  # fmt: skip
        (record,) = released(done)
        assert (record["server_name"], record["id.resp_p"]) == ("example.org", 443)
        # A name that is not there is no mistake of the line.
        assert b"bad lines" not in done.stderr
        assert b"no value, user or time" in done.stderr


def test_rotated_logs_are_one_stream_however_they_come(tmp_path: Path) -> None:
    made = visits(Random(5), 60)
    (tmp_path / "ssl.00.log").write_text(zeek(made[:20]))
    (tmp_path / "ssl.01.log.gz").write_bytes(gzip.compress(zeek(made[20:45]).encode()))
    (tmp_path / "ssl.02.log").write_text(zeek(made[45:]))
    rule = ["--format", "zeek-ssl", "-z", "2", "--window", "1h", "--raw-users"]
    one_by_one = zveil("run", tmp_path, *rule)
    joined = "".join(zeek(part) for part in (made[:20], made[20:45], made[45:]))
    through_a_pipe = zveil("run", *rule, stdin=joined.encode())
    assert len(released(one_by_one)) > 10
    assert one_by_one.stdout == through_a_pipe.stdout


def test_a_log_without_its_header_is_refused_without_its_words(tmp_path: Path) -> None:
    log = tmp_path / "ssl.log"
    log.write_text(zeek(crowd("secret.example")).split("\n", 8)[8])
    done = zveil("run", log, "--format", "zeek-ssl", "-z", "3", "--window", "1h")
    assert done.returncode == 2
    assert b"lines with #" in done.stderr
    assert b"secret" not in done.stderr


def test_the_year_is_that_of_the_file_or_the_stated_one(tmp_path: Path) -> None:
    log = tmp_path / "dnsmasq.log"
    log.write_text(dnsmasq(crowd("example.org")))
    rule = ["--format", "dnsmasq", "-z", "3", "--window", "1h"]
    os.utime(log, (START + 86_400, START + 86_400))
    assert [r["time"] for r in released(zveil("run", log, *rule))] == ["2024-01-01T00:00:02Z"]
    done = zveil("run", log, *rule, "--year", "2021")
    assert [r["time"] for r in released(done)] == ["2021-01-01T00:00:02Z"]
    done = zveil("run", log, *rule, "--year", "21")
    assert done.returncode == 2


def test_what_holds_an_attribute_inside_does_not_leave() -> None:
    def policy(*keep: str, attribute: str = "path") -> Policy:
        return Policy.of(
            time="time_local", user="remote_addr", attributes=[attribute], z=2, window="1h",
            keep=keep, format="combined",
        )  # fmt: skip

    for kept in "request", "request_uri", "*":
        with pytest.raises(PolicyError, match="holds 'path' inside"):
            policy(kept)
    policy("status", "request_method")
    policy("request_uri", attribute="request_method")
    with pytest.raises(PolicyError, match="leave it out"):
        Policy.of(
            time="time_local", user="remote_addr", attributes=["path"], z=2, window="1h",
            time_format="s", format="combined",
        )  # fmt: skip


def test_a_policy_file_may_leave_to_the_preset_what_it_means(tmp_path: Path) -> None:
    (tmp_path / "zveil.toml").write_text(
        '[input]\nformat = "zeek-dns"\n[[attribute]]\nz = 3\nwindow = "1h"\nonly = "top.csv"\n'
    )
    (tmp_path / "top.csv").write_text("1,example.org\n")
    (tmp_path / "dns.log").write_text(zeek(crowd("www.example.org", "example.com"), "dns"))
    done = zveil("run", tmp_path / "dns.log", "--policy", tmp_path / "zveil.toml")
    (record,) = released(done)
    assert record["query"] == "www.example.org"
    flags = zveil(
        "run", tmp_path / "dns.log", "--format", "zeek-dns", "-z", "3", "--window", "1h",
        "--only", tmp_path / "top.csv",
    )  # fmt: skip
    policies = [done.stderr.splitlines()[-1] for done in (done, flags)]
    assert policies[0].startswith(b"policy ")
    assert policies[0] == policies[1]
