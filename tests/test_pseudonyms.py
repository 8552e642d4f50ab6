"""What leaves instead of user ids: every spelling, fixed and rotating, by text and by columns."""

import base64
import ipaddress
import json
import uuid
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from events import KEY, cut
from hypothesis import given, settings
from hypothesis import strategies as st
from program import line, run

from zveil._native import Keyring
from zveil.act import TextAct
from zveil.act.columns import ColumnsAct
from zveil.io import Format
from zveil.policy import Policy

HOUR = 3_600
START = 1_700_000_000 // HOUR * HOUR
CODES = ["base32", "hex", "uuid"]


def names(keyring: Keyring, users: list[Any], times: list[int] | None = None) -> list[Any]:
    """Name users directly; times are seconds."""
    array = None if times is None else pa.array(times, pa.int64())
    named = keyring.name(array, 10**9, None)
    count, present, ends, data = named.pseudonyms(pa.array(users), None)
    buffers = [pa.py_buffer(present), pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), count, buffers).to_pylist()


def fixed(pseudonym: str, users: list[Any], key: bytes = KEY) -> list[Any]:
    return names(Keyring.fixed(pseudonym, key), users)


def test_all_codes_are_one_code_spelled_differently() -> None:
    users = [f"u{number}" for number in range(50)] + ["", "é", "x" * 100]
    letters, digits, ids = (fixed(each, users) for each in CODES)
    for letter, digit, each in zip(letters, digits, ids, strict=True):
        bits = int(digit, 16)
        assert len(digit) == 32
        assert len(letter) == 20
        assert int.from_bytes(base64.b32decode(letter.upper() + "====")) == bits >> 32
        found = uuid.UUID(each)
        assert (found.version, found.variant) == (8, uuid.RFC_4122)
        fixed_bits = 0xF << 76 | 0x3 << 62
        assert found.int & ~fixed_bits == bits & ~fixed_bits
    assert len(set(digits)) == len(users)
    assert not set(digits) & set(fixed("hex", users, bytes(32)))


@pytest.mark.parametrize("pseudonym", CODES)
def test_one_person_has_one_name_however_the_id_is_written(pseudonym: str) -> None:
    assert len({*fixed(pseudonym, ["7"]), *fixed(pseudonym, [7]), *fixed(pseudonym, [7.0])}) == 1
    assert fixed(pseudonym, [None, 0.5]) == [None, None]


def shared(one: str, other: str) -> int:
    """Count the first bits that two addresses have in common."""
    a, b = ipaddress.ip_address(one), ipaddress.ip_address(other)
    return a.max_prefixlen - (int(a) ^ int(b)).bit_length()


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_addresses_keep_what_they_have_in_common(seed: int) -> None:
    random = Random(seed)
    for bits, address in ((32, ipaddress.IPv4Address), (128, ipaddress.IPv6Address)):
        base = random.getrandbits(bits)
        users = [
            str(address(base ^ random.getrandbits(random.randint(1, bits)))) for _ in range(20)
        ]
        made = fixed("crypto-pan", users, random.randbytes(32))
        for true, name in zip(pairwise(users), pairwise(made), strict=True):
            assert shared(*name) == shared(*true)


def test_what_is_no_address_leaves_as_letters() -> None:
    users = ["ada", "10.0.0", "010.0.0.1", "10.0.0.1/8", "fe80::1%eth0", "7", ""]
    assert fixed("crypto-pan", users) == fixed("base32", users)
    assert fixed("crypto-pan", [7, 8]) == fixed("base32", [7, 8])


def test_the_program_writes_every_spelling() -> None:
    data = line(START, "203.0.113.9", "a") + line(START, "2001:db8::7", "a")
    data += line(START, "203.0.113.8", "a")
    shown = {}
    for pseudonym in [*CODES, "crypto-pan", "raw"]:
        done = run("-q", "--pseudonym", pseudonym, stdin=data)
        assert done.returncode == 0, done.stderr
        shown[pseudonym] = [json.loads(each)["uid"] for each in done.stdout.splitlines()]
    assert shown["raw"] == ["2001:db8::7", "203.0.113.8"]
    assert [ipaddress.ip_address(each).version for each in shown["crypto-pan"]] == [6, 4]
    assert not set(shown["crypto-pan"]) & set(shown["raw"])
    assert [len(shown[each][0]) for each in CODES] == [20, 32, 36]
    for arguments, words in [
        (("--pseudonym", "rot13"), b"--pseudonym"),
        (("--pseudonym", "hex", "--raw-users"), b"--raw-users"),
        (("--raw-users", "--rotate", "1h"), b"--rotate"),
        (("--keep-keys",), b"--keep-keys"),
        (("--rotate", "59s"), b"--rotate: expected"),
        (("--rotate", "soon"), b"--rotate: expected"),
        (("--rotate", "0 windows"), b"--rotate: expected"),
    ]:
        done = run(*arguments, stdin=data)
        assert (done.returncode, done.stdout) == (2, b""), arguments
        assert words in done.stderr
    assert (
        run("-q", "--raw-users", stdin=data).stdout
        == run("-q", "--pseudonym", "raw", stdin=data).stdout
    )


def stream(random: Random, length: int) -> list[tuple[int, str, str]]:
    """Make up events that go on over some hours, and fall behind now and then."""
    now, events = START, []
    for _ in range(length):
        now += random.choice([0, 1, 60, 60, 600, 2 * HOUR])
        t = now - random.choice([0, 0, 0, 5, 700, 5_000])
        events.append((t, f"user-{random.randrange(5)}", random.choice("aab")))
    return events


def chain_of(folder: Path, pseudonym: str, random: Random) -> Keyring:
    """Begin the same chain anew."""
    file = folder / f"chain{random.getrandbits(60)}"
    file.touch(0o600)
    file.write_text(f"zveil chain\nkey {KEY.hex()}\n")
    return Keyring.chain(
        pseudonym, file, period_ns=HOUR * 10**9, lateness_ns=1_800 * 10**9, max_future_ns=10**18
    )


def policy(blank: bool) -> Policy:
    return Policy.of(
        time="ts", user="uid", attributes=["host"], z=2, window="1h", lateness="30m",
        max_future=None, empty="blank" if blank else "drop",
    )  # fmt: skip


def by_text(
    rule: Policy, events: list[tuple[int, str, str]], keyring: Keyring, random: Random, threads: int
) -> bytes:
    act = TextAct(
        rule, rule.gates(threads=threads), Format.NDJSON, Format.NDJSON,
        keyring=keyring, max_line=1 << 20, stop_at_problem=False, threads=threads,
    )  # fmt: skip
    act.way.start_file()
    data = b"".join(line(*event) for event in events)
    pieces = cut(random, data, random.randint(1, 6))
    written = [part for piece in pieces if piece for part in act.lines(piece, last=False)]
    return b"".join([*written, *act.lines(b"", last=True)])


def by_columns(
    rule: Policy, events: list[tuple[int, str, str]], keyring: Keyring, random: Random
) -> list[dict[str, Any]]:
    columns = dict(zip(("ts", "uid", "host"), zip(*events, strict=True), strict=True))
    batch = pa.record_batch({name: list(values) for name, values in columns.items()})
    if random.random() < 0.5:
        batch = batch.set_column(1, "uid", batch.column(1).dictionary_encode())
    act = ColumnsAct(rule, rule.gates(), batch.schema, keyring=keyring)
    left: list[dict[str, Any]] = []
    places = sorted(random.randrange(len(events)) for _ in range(random.randint(0, 4)))
    for start, end in zip([0, *places], [*places, len(events)], strict=True):
        left += act.act(batch.slice(start, end - start)).to_pylist()
    return left


@given(st.integers(0, 2**32), st.integers(1, 80), st.sampled_from([*CODES, "crypto-pan"]))
@settings(max_examples=60)
def test_rotating_names_are_the_same_for_any_cut_threads_and_format(
    tmp_path_factory: pytest.TempPathFactory, seed: int, length: int, pseudonym: str
) -> None:
    random = Random(seed)
    events, blank = stream(random, length), random.random() < 0.5
    folder, rule = tmp_path_factory.mktemp("chains"), policy(blank)
    outs = [
        by_text(rule, events, chain_of(folder, pseudonym, random), random, threads)
        for threads in (1, 1, 2)
    ]
    assert outs[0] == outs[1] == outs[2]
    records = [json.loads(each) for each in outs[0].splitlines()]
    assert by_columns(rule, events, chain_of(folder, pseudonym, random), random) == records
    assert b"user-" not in outs[0], "a raw id left"
    if not blank:
        assert None not in [record["uid"] for record in records]
    # Whose it is, told by running it again with raw ids.
    raw = [json.loads(each) for each in by_text(rule, events, None, random, 1).splitlines()]  # type: ignore[arg-type]
    seen: dict[tuple[str, int], str] = {}
    for shown, true in zip(records, raw, strict=True):
        if shown["uid"] is not None:
            whose = true["uid"], true["ts"] // HOUR
            assert seen.setdefault(whose, shown["uid"]) == shown["uid"]
    assert len(set(seen.values())) == len(seen), "two periods or users share a name"


def test_many_lines_on_two_threads_over_a_boundary(tmp_path: Path) -> None:
    """Enough lines that threads take parts of a block, with the boundary in one of them."""
    events = [(START + number // 4, f"user-{number % 50}", "a") for number in range(20_000)]
    random, rule = Random(1), policy(blank=False)
    outs = []
    for threads in (1, 2):
        keyring = chain_of(tmp_path, "base32", random)
        act = TextAct(
            rule, rule.gates(threads=threads), Format.NDJSON, Format.NDJSON,
            keyring=keyring, max_line=1 << 20, stop_at_problem=False, threads=threads,
        )  # fmt: skip
        act.way.start_file()
        data = b"".join(line(*event) for event in events)
        outs.append(b"".join([*act.lines(data, last=False), *act.lines(b"", last=True)]))
    assert outs[0] == outs[1]
    shown = {json.loads(each)["uid"] for each in outs[0].splitlines()}
    assert len(shown) == 100
    assert None not in shown
