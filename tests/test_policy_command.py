"""`zveil policy check` as it is typed: sentences, mistakes, what a change keeps."""

import json
import os
from pathlib import Path

import pytest
from program import line, zveil
from test_policy_file import PLAIN
from test_run import T

from zveil.policy import read_policy


def written(folder: Path, text: str = PLAIN, name: str = "p.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_policy_is_explained_and_its_fingerprint_comes_last(tmp_path: Path) -> None:
    path = written(tmp_path)
    done = zveil("policy", "check", path)
    assert (done.returncode, done.stderr) == (0, b"")
    said = done.stdout.decode()
    assert "at least 2 users showed it within 1 hour" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 88
    assert said.splitlines()[-1] == f"policy {read_policy(path).fingerprint}"
    assert zveil("policy", "check", path, "-q").stdout.decode() == said.splitlines()[-1] + "\n"


def test_all_mistakes_are_told_at_once_with_their_places(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN.replace("z = 2", "z = 0").replace('"ts"', "7") + "colour = 1\n")
    done = zveil("policy", "check", path)
    assert (done.returncode, done.stdout) == (2, b"")
    lines = done.stderr.decode().splitlines()
    assert [each.split(": ")[0] for each in lines] == [f"{path}:3:9", f"{path}:8:5", f"{path}:10:1"]
    found = json.loads(zveil("policy", "check", path, "--json").stdout)
    assert found["valid"] is False
    assert [(each["line"], each["column"], each["key"]) for each in found["problems"]] == [
        (3, 9, "time.field"),
        (8, 5, "attribute.z"),
        (10, 1, "attribute"),
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = zveil("policy", "check", tmp_path / "none.toml")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"none.toml: no such file" in done.stderr
    done = zveil("policy", "check", written(tmp_path), "--against", tmp_path / "old.toml")
    assert (done.returncode, done.stdout) == (1, b"")
    assert zveil("policy", "check").returncode == 2


def test_as_json(tmp_path: Path) -> None:
    old = written(tmp_path, name="old.toml")
    new = written(tmp_path, PLAIN.replace("z = 2", "z = 3"))
    found = json.loads(zveil("policy", "check", new, "--json").stdout)
    assert found["valid"] is True
    assert found["fingerprint"] == read_policy(new).fingerprint
    assert found["explanation"][0]["about"] == "Who counts as a user"
    assert "changes" not in found
    found = json.loads(zveil("policy", "check", new, "--against", old, "--json").stdout)
    assert found["against"] == read_policy(old).fingerprint
    [change] = found["changes"]
    assert (change["attribute"], change["fate"]) == ("host", "lost")


def test_what_a_change_keeps_is_said(tmp_path: Path) -> None:
    old = written(tmp_path, PLAIN.replace("z = 2", "z = 5"), "old.toml")
    said = zveil("policy", "check", written(tmp_path), "--against", old).stdout.decode()
    assert f"What of the state of policy {read_policy(old).fingerprint} can be kept" in said
    assert "  - 'host' keeps its state. z goes from 5 to 2; the state remembers 5 users" in said


DATA = b"".join(line(T + n, f"u{n % 40}", f"v{n * n % 97}") for n in range(4_000))
NOISY = PLAIN.replace("z = 2", "z = 8\nnoise = 6").replace('"uid"', '"uid"\npseudonym = "raw"')


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    assert zveil("key", path).returncode == 0
    return path


def test_a_rerun_under_the_same_key_draws_the_same_noise(tmp_path: Path, key: Path) -> None:
    other = tmp_path / "other"
    zveil("key", other)
    by_file = ("run", "-q", "--policy", written(tmp_path, NOISY), "--key-file")
    by_options = (
        "run", "-q", "--time", "ts", "--user", "uid", "--attribute", "host", "-z", "8",
        "--window", "1h", "--noise", "6", "--raw-users", "--key-file",
    )  # fmt: skip
    first = zveil(*by_file, key, stdin=DATA).stdout
    assert first
    assert zveil(*by_file, key, stdin=DATA).stdout == first
    assert zveil(*by_options, key, stdin=DATA).stdout == first
    assert zveil(*by_options, key, "--threads", "2", stdin=DATA).stdout == first
    assert zveil(*by_file, other, stdin=DATA).stdout != first


def test_the_key_of_the_noise_may_come_from_the_environment(tmp_path: Path, key: Path) -> None:
    noisy = written(tmp_path, NOISY.replace('pseudonym = "raw"', ""))
    by_file = zveil("run", "-q", "--policy", noisy, "--key-file", key, stdin=DATA).stdout
    environment = os.environ | {"ZVEIL_KEY": key.read_text()}
    assert zveil("run", "-q", "--policy", noisy, stdin=DATA, env=environment).stdout == by_file
    assert by_file
    tried = zveil(
        "run", "--dry-run", "--json", "--policy", noisy, "--key-file", key, stdin=DATA
    ).stdout
    [own] = [rung for rung in json.loads(tried)["rungs"] if rung["z"] == 8]
    assert own["released"] == by_file.count(b"\n")


def test_a_chain_of_keys_has_none_for_the_noise(tmp_path: Path) -> None:
    chain = tmp_path / "chain"
    assert zveil("key", "--chain", chain).returncode == 0
    noisy = written(tmp_path, NOISY.replace('pseudonym = "raw"', 'rotate = "24h"'))
    done = zveil("run", "-q", "--policy", noisy, "--key-file", chain, stdin=DATA)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout


def test_noise_only_takes_away(tmp_path: Path, key: Path) -> None:
    plain = written(tmp_path, NOISY.replace("noise = 6", ""), "plain.toml")
    without = zveil("run", "-q", "--policy", plain, stdin=DATA).stdout.splitlines()
    noisy = zveil(
        "run", "-q", "--policy", written(tmp_path, NOISY), "--key-file", key, stdin=DATA
    ).stdout.splitlines()
    assert set(noisy) < set(without)
    assert len(noisy) > len(without) / 2
