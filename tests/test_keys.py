"""Keys: where they come from, what is refused, and that nobody ever sees one."""

import base64
import os
from pathlib import Path

import pytest
from program import line, run, zveil

from zveil.keys import open_keyring, read_key, take_key, write_key

T = 1_700_000_000
KEY = bytes(range(100, 132))
DATA = line(T, "planted-u", "a") + line(T, "planted-v", "a")
DAY_NS = 86_400 * 10**9


def secret_file(path: Path, content: str = KEY.hex(), mode: int = 0o600) -> Path:
    path.write_text(content)
    os.chmod(path, mode)
    return path


def environment(key: str) -> dict[str, str]:
    return os.environ | {"ZVEIL_KEY": key}


@pytest.mark.parametrize(
    "spelled",
    [
        KEY.hex(),
        KEY.hex().upper(),
        f" {KEY.hex()}\n",
        base64.b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode().rstrip("="),
        base64.b64encode(bytes([0xFB] * 32)).decode(),
        base64.urlsafe_b64encode(bytes([0xFB] * 32)).decode(),
    ],
)
def test_a_key_in_the_environment_is_digits_or_base64(spelled: str) -> None:
    given = {"ZVEIL_KEY": spelled, "OTHER": "x"}
    assert take_key(given) in (KEY, bytes([0xFB] * 32))
    assert given == {"OTHER": "x"}, "a program started later would have it"
    assert take_key(given) is None


@pytest.mark.parametrize("spelled", ["planted", KEY.hex()[1:], KEY.hex() + "0", "é" * 64, "=" * 44])
def test_anything_else_there_is_refused_unseen(spelled: str) -> None:
    with pytest.raises(ValueError, match="64 hexadecimal digits or as base64") as error:
        take_key({"ZVEIL_KEY": spelled})
    assert spelled not in str(error.value)


def test_the_environment_and_a_file_give_the_same_names(tmp_path: Path) -> None:
    file = secret_file(tmp_path / "key")
    by_file = run("-q", "--key-file", file, stdin=DATA)
    assert by_file.stdout.count(b"\n") == 1
    for spelled in (KEY.hex(), base64.b64encode(KEY).decode()):
        done = run("-q", stdin=DATA, env=environment(spelled))
        assert done.stdout == by_file.stdout
    both = run("--key-file", file, stdin=DATA, env=environment(KEY.hex()))
    assert both.returncode == 2
    assert b"--key-file: ZVEIL_KEY is set too" in both.stderr
    raw = run("-q", "--raw-users", stdin=DATA, env=environment("no key at all"))
    assert b"planted-v" in raw.stdout, "raw ids need no key"


def test_a_new_chain_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "chain"
    assert zveil("key", "--chain", file).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().startswith("zveil chain\nkey ")
    assert zveil("key", "--chain", file).returncode == 2, "a key was overwritten"
    with pytest.raises(ValueError, match="holds a chain"):
        read_key(file)


def test_the_wrong_kind_of_key_is_refused(tmp_path: Path) -> None:
    plain, chain = tmp_path / "plain", tmp_path / "chain"
    write_key(plain)
    write_key(chain, chain=True)
    before = plain.read_bytes(), chain.read_bytes()
    day = ("--rotate", "24h")
    for arguments, words in [
        ((*day, "--key-file", plain), b"there is no chain in it; make one with: zveil key --chain"),
        (("--key-file", chain), b"holds a chain of keys"),
        ((*day, "--keep-keys", "--key-file", chain), b"holds a chain of keys"),
        ((*day, "--key-file", chain, "--max-future", "any"), b"--max-future: one wrong time"),
        ((*day, "--key-file", tmp_path / "none"), b"zveil key --chain"),
    ]:
        done = run(*arguments, stdin=DATA)
        assert done.returncode == 2, arguments
        assert words in done.stderr
        assert done.stdout == b""
    assert (plain.read_bytes(), chain.read_bytes()) == before
    done = run(*day, stdin=DATA, env=environment(KEY.hex()))
    assert done.returncode == 2
    assert b"ZVEIL_KEY: a key in the environment cannot move on" in done.stderr
    assert run(*day, "--keep-keys", stdin=DATA, env=environment(KEY.hex())).returncode == 0


@pytest.mark.parametrize(("mode", "words"), [(0o640, b"others can read"), (0o400, b"be written")])
def test_a_chain_needs_its_file_to_be_closed_to_others_and_open_to_itself(
    tmp_path: Path, mode: int, words: bytes
) -> None:
    file = tmp_path / "chain"
    write_key(file, chain=True)
    os.chmod(file, mode)
    done = run("--rotate", "24h", "--key-file", file, stdin=DATA)
    assert (done.returncode, done.stdout) == (2, b"")
    assert words in done.stderr
    assert b"chmod 600" in done.stderr


def test_a_dry_run_leaves_a_chain_alone(tmp_path: Path) -> None:
    file = tmp_path / "chain"
    write_key(file, chain=True)
    before = file.read_bytes()
    assert run("--rotate", "24h", "--key-file", file, "--dry-run", stdin=DATA).returncode == 0
    assert file.read_bytes() == before


def test_a_key_is_never_shown(tmp_path: Path) -> None:
    """Whatever goes well or wrong: not in what is written, nor in what is said."""
    digits = KEY.hex()
    chain = f"zveil chain\nkey {digits}\n"
    rotate = ("--rotate", "24h")
    cases: list[tuple[str, tuple[str, ...], int]] = [
        (digits, (), 0o600),
        (digits, ("--json", "--keep", "*"), 0o600),
        (digits, (), 0o644),
        (digits, rotate, 0o600),
        (digits, (*rotate, "--keep-keys"), 0o600),
        (digits + "0", (), 0o600),
        (chain, (), 0o600),
        (chain, rotate, 0o600),
        (chain, rotate, 0o644),
        (chain + "more\n", rotate, 0o600),
        (chain, ("--rotate", "1s"), 0o600),
    ]
    forms = [digits, digits.upper(), base64.b64encode(KEY).decode(), digits[:16], str(list(KEY))]
    for number, (content, arguments, mode) in enumerate(cases):
        file = secret_file(tmp_path / str(number), content, mode)
        done = run(*arguments, "--key-file", file, stdin=DATA + b"bad\n")
        said = (done.stdout + done.stderr).decode()
        assert said
        assert not any(form in said for form in forms), (number, said)
        assert KEY not in done.stdout + done.stderr
    for held in (digits, digits[1:], base64.b64encode(KEY).decode() + "=="):
        for arguments in ((), rotate):
            done = run(*arguments, stdin=DATA, env=environment(held))
            assert held not in (done.stdout + done.stderr).decode()
    with pytest.raises(ValueError, match="pseudonym") as error:
        open_keyring("planted", environment={"ZVEIL_KEY": digits})
    assert digits not in str(error.value)


def test_a_key_is_never_an_argument() -> None:
    done = run("--key", KEY.hex(), stdin=DATA)
    assert done.returncode == 2
    assert b"No such option" in done.stderr or b"no such option" in done.stderr.lower()
