"""A level that is held through `zveil run`: the real program, its account, and what it refuses."""

import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from program import PATIENCE_S, PROGRAM, zveil

from zveil.policy import Hold, Policy, PolicyError
from zveil.policy.changes import changes
from zveil.policy.file import PolicyFileError, parse_policy
from zveil.policy.sentences import explain

DAY_S = 86_400
START = 1_577_836_800
FIELDS = ("--time", "ts", "--user", "user", "--attribute", "site")
RULE = ("--window", "2h", "--rotate", "24h", "--hold", "k=2 p=0.8")
KEYS = ("--keep-keys", "--key-file")


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make three days of users of two classes."""
    folder = tmp_path_factory.mktemp("stream")
    (folder / "key").write_text("07" * 32 + "\n")
    (folder / "key").chmod(0o600)
    size = ("--users", "10000", "--attributes", "300", "--rate", "0.1")
    shape = ("--window", "2h", "--windows", "36", "--class", "0.9:0.5", "--class", "0.1:5")
    done = zveil("simulate", *size, *shape, "-q", "-o", folder / "stream.csv")
    assert done.returncode == 0, done.stderr
    return folder / "stream.csv"


@pytest.fixture(scope="module")
def held(stream: Path) -> tuple[Path, dict[str, Any], list[str]]:
    """Run the program: what left, its account, and what it said."""
    out = stream.parent / "held.csv"
    done = zveil(
        "run", stream, *FIELDS, *RULE, *KEYS, stream.parent / "key", "--json", "-o", out
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *said, account = done.stderr.decode().splitlines()
    return out, json.loads(account), said


def days(path: Path) -> list[str]:
    """Cut what left into files of a day, as CSV."""
    parts = [io.StringIO() for _ in range(3)]
    with path.open(newline="") as file:
        rows = csv.reader(file)
        head = next(rows)
        writers = [csv.writer(part) for part in parts]
        for writer in writers:
            writer.writerow(head)
        for row in rows:
            writers[int((float(row[0]) - START) // DAY_S)].writerow(row)
    return [part.getvalue() for part in parts]


def test_the_audit_finds_what_was_held(
    held: tuple[Path, dict[str, Any], list[str]], tmp_path: Path
) -> None:
    out, account, said = held
    hold = account["hold"]
    assert (hold["k"], hold["p"], hold["z_min"], hold["z_max"]) == (2, 0.8, 2, 1_000)
    assert len(said) == len(hold["changes"]) > 1
    assert all(line.startswith("hold: 2020-01-0") for line in said)
    shown = [period["shares"]["2"] for period in account["meter"]["periods"]]
    for number, text in enumerate(days(out)):
        (tmp_path / "day.csv").write_text(text)
        done = zveil("audit", tmp_path / "day.csv", *FIELDS, "--json", "-q")
        assert done.returncode == 0, done.stderr
        share = json.loads(done.stdout)["k_share"]["2"]
        assert share == pytest.approx(shown[number])
        if number:
            assert 0.8 <= share < 0.9
    ended = [period["share"] for period in hold["periods"]]
    assert ended == pytest.approx(shown[:2], abs=0.002)


def test_nothing_leaves_before_a_window_was_seen(
    held: tuple[Path, dict[str, Any], list[str]],
) -> None:
    with held[0].open() as file:
        next(file)
        first = float(next(file).partition(",")[0])
    assert first > START + 2 * 3_600
    assert held[1]["hold"]["changes"][0]["kind"] == "opened"


def test_a_slow_pipe_gives_the_same(
    stream: Path, held: tuple[Path, dict[str, Any], list[str]], tmp_path: Path
) -> None:
    data = stream.read_bytes()[:4_000_000]
    data = data[: data.rindex(b"\n") + 1]
    out = tmp_path / "held.csv"
    command = [PROGRAM, "run", *FIELDS, *RULE, *KEYS, stream.parent / "key", "-q", "-o", out]
    with subprocess.Popen([*command, "--format", "csv"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for start in range(0, len(data), 61_001):
            process.stdin.write(data[start : start + 61_001])
            process.stdin.flush()
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
    found = out.read_bytes()
    assert found == held[0].read_bytes()[: len(found)]
    assert len(found) > 1_000_000


def test_columns_are_held_too(stream: Path, tmp_path: Path) -> None:
    parquet, left = tmp_path / "stream.parquet", tmp_path / "held.parquet"
    everything = ("-z", "1", "--window", "2h", "--raw-users", "-q")
    assert zveil("run", stream, *FIELDS, *everything, "-o", parquet).returncode == 0
    done = zveil("run", parquet, *FIELDS, *RULE, "--json", "-o", left)
    assert done.returncode == 0, done.stderr
    account = json.loads(done.stderr.decode().splitlines()[-1])
    shares = [period["shares"]["2"] for period in account["meter"]["periods"]]
    assert len(shares) == 3
    assert min(shares[1:]) >= 0.8
    assert account["released"] > 0.4 * account["observed"]


def test_the_account_is_told(stream: Path, tmp_path: Path) -> None:
    done = zveil("run", stream, *FIELDS, *RULE, "-o", tmp_path / "held.csv")
    words = done.stderr.decode()
    assert "veiled: fewer users than needed" in words
    assert "z was tuned to hold k = 2 for 80.0% of the visible users: set " in words
    assert "hold: 2020-01-01T02:1" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--hold", "k=2 p=0.8", "--window", "1h"), "--rotate: expected with hold"),
        (("--hold", "k=2"), "--hold: expected k and p such as 'k=2 p=0.95', got 'k=2'"),
        (("--hold", "k=2 q=1"), "--hold: expected k and p"),
        (("--hold", "k=two p=0.8"), "--hold: expected k and p"),
        (("--hold", "k=2 p=0.8 p=0.9"), "--hold: expected k and p"),
        (("--hold", "p=1"), "--hold: expected a share above 0 and below 1"),
        (("--hold", "k=1 p=0.8"), "--hold: expected a whole number from 2 to 64"),
        (("--hold", "p=0.8", "-z", "20"), "-z: --hold chooses z"),
        (("--hold", "p=0.8", "--z-min", "9", "--z-max", "8"), "--z-max: expected at least z_min"),
        (("--hold", "p=0.8", "--rotate", "1d", "--dry-run"), "--dry-run: tries z that stay"),
        (("--z-min", "5", "-z", "20"), "--z-min: expected with --hold only"),
        (("--hold", "p=0.8", "--rotate", "1d", "--raw-users"), "ids leave raw"),
        ((), "-z: say how many users must share a value, or what --hold is to hold"),
    ],
)
def test_what_cannot_be_held_is_refused(arguments: tuple[str, ...], words: str) -> None:
    window = () if "--window" in arguments else ("--window", "1h")
    done = zveil("run", *FIELDS, *window, *arguments)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.decode().split())


FILE = """
time = { field = "ts" }
user = { field = "user", rotate = "24h" }
attribute = [{ field = "site", window = "1h" }, { field = "page", window = "2h", z = 9 }]
hold = { p = 0.8, z_min = 5 }
"""


def test_a_policy_file_says_it_too() -> None:
    policy = parse_policy(FILE)
    assert policy.hold == Hold(k=2, p=0.8, z_min=5, z_max=1_000)
    assert [(each.z, each.most_z) for each in policy.attributes] == [(5, 1_000), (9, 1_000)]
    assert [(gate.z_max, gate.is_closed) for gate in policy.gates()] == [(1_000, True)] * 2
    options = {"time": "ts", "user": "user", "attributes": ["site"], "window": "1h"}
    said = Policy.of(**options, z=5, rotate="24h", hold=Hold(p=0.8, z_min=5))  # type: ignore[arg-type]
    one = parse_policy(FILE.replace(', { field = "page", window = "2h", z = 9 }', ""))
    assert said.fingerprint == one.fingerprint
    assert one.fingerprint != parse_policy(FILE).fingerprint
    other = parse_policy(FILE.replace("0.8", "0.9"))
    found = changes(policy, other)
    assert [change.fate for change in found] == ["kept", "kept"]
    assert "The level that is held begins anew" in found[0].why[-1]
    stays = parse_policy(FILE.replace("hold = { p = 0.8, z_min = 5 }", "").replace(
        'window = "1h"', 'window = "1h", z = 5'))  # fmt: skip
    assert "No level is held any more" in changes(policy, stays)[0].why[-1]
    assert other.fingerprint != policy.fingerprint


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("p = 0.8", "p = 2.0", "5:14: hold.p: expected a share above 0 and below 1"),
        ("p = 0.8,", "", "5:1: hold: expected the key 'p'"),
        (', rotate = "24h"', "", "user.rotate: expected with hold"),
        ("z_min", "z_least", "there is no key 'z_least'"),
        ("z = 9", "z = 2000", "attribute.z: expected at most hold.z_max, which is 1000"),
        ("z_min = 5", 'z_min = "5"', "hold.z_min: expected a whole number"),
    ],
)
def test_mistakes_in_a_file_are_told_with_their_place(old: str, new: str, words: str) -> None:
    with pytest.raises(PolicyFileError, match=r".") as caught:
        parse_policy(FILE.replace(old, new, 1))
    assert words in str(caught.value)


def test_without_a_level_z_is_asked_for() -> None:
    with pytest.raises(PolicyFileError, match="expected the key 'z'"):
        parse_policy(FILE.replace("hold = { p = 0.8, z_min = 5 }", ""))


def test_it_is_said_in_sentences() -> None:
    words = " ".join(
        sentence for answer in explain(parse_policy(FILE)) for sentence in answer.sentences
    )
    assert "z is chosen while the stream runs, from 9 to 1,000" in words
    assert (
        "a share of 0.8 or more is to have the same set of values released as 1 other user" in words
    )
    assert "no guarantee" in words
    assert "can be raised" not in words


def test_the_parts_check_themselves() -> None:
    for wrong in ({"p": True}, {"p": 0.5, "k": 65}, {"p": 0.5, "z_min": 0}):
        with pytest.raises(PolicyError):
            Hold(**wrong)  # type: ignore[arg-type]
    assert Hold.of("p=0.9,k=3", z_max=50) == Hold(p=0.9, k=3, z_max=50)
