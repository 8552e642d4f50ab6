"""A snapshot that is damaged or another run's is refused: told, and nothing is written."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import scenes
from faults import Ended, needs_faults, plain, require_worded
from power import Tree, look, put
from program import zveil
from scenes import SMALL
from stage import Spot, Stage

from zveil._native import load_state, read_note
from zveil.keys import derive_key, read_key

pytestmark = needs_faults

STATE, KEY, LOCK = (f"{scenes.STATE}/{name}" for name in ("state", "key", "lock"))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A run that was killed between two saves."""
    return Stage.of(SMALL, tmp_path_factory.mktemp("small")).midway(5)


def require_refused(ended: Ended, spot: Spot, before: Tree) -> None:
    require_worded(ended)
    assert ended.code != 0, "it began anew without a word"
    after = look(spot.folder)
    assert {**after, LOCK: None} == {**before, LOCK: None}, "something was written"
    for shown in ("user1", "example", "only1"):
        assert shown not in ended.said


def altered(stage: Stage, name: str, change: Callable[[bytes], bytes]) -> Tree:
    content = stage.begins[0][name].content
    assert content is not None
    return stage.begins[0] | {name: replace(stage.begins[0][name], content=change(content))}


def refused(stage: Stage, tree: Tree, *more: str) -> str:
    """Start it on this folder; what it said."""
    with stage.spot(0) as spot:
        put(tree, spot.folder)
        ended = plain([*spot.arguments, *more], spot.scratch)
        require_refused(ended, spot, tree)
        return ended.said


def flip(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


@pytest.mark.parametrize("share", [0, 0.02, 0.3, 0.9])
def test_a_flipped_bit(stage: Stage, share: float) -> None:
    length = len(stage.begins[0][STATE].content or b"")
    said = refused(stage, altered(stage, STATE, flip(int(share * length))))
    assert "--state-reset" in said, said


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
def test_a_file_that_was_cut_off(stage: Stage, share: float) -> None:
    said = refused(stage, altered(stage, STATE, lambda data: data[: int(share * len(data))]))
    assert "--state-reset" in said, said


def test_a_file_with_more_behind_it(stage: Stage) -> None:
    refused(stage, altered(stage, STATE, lambda data: data + b"\0"))


def test_something_else_in_its_place(stage: Stage) -> None:
    refused(stage, altered(stage, STATE, lambda _: b'{"user1": "a.example.org"}\n'))


def test_another_key(stage: Stage) -> None:
    assert "key" in refused(stage, altered(stage, KEY, lambda _: b"ab" * 32 + b"\n"))


def test_no_key_any_more(stage: Stage) -> None:
    """A key made anew could not open it: that is said, and none is made."""
    tree = {name: node for name, node in stage.begins[0].items() if name != KEY}
    assert "key" in refused(stage, tree)


def test_a_broken_key(stage: Stage) -> None:
    assert "key" in refused(stage, altered(stage, KEY, lambda data: data[:20]))


@pytest.mark.parametrize("more", [("--window", "1d"), ("--attribute", "ref"), ("--rotate", "1h")])
def test_another_policy(stage: Stage, more: tuple[str, ...]) -> None:
    assert "--state-reset" in refused(stage, stage.begins[0], *more)


def test_another_output_or_input(stage: Stage, tmp_path: Path) -> None:
    """Going on elsewhere would leave a gap here and repeat there."""
    refused(stage, stage.begins[0], "-o", str(tmp_path / "other.ndjson"))
    assert not (tmp_path / "other.ndjson").exists()
    with stage.spot(0) as spot:
        swapped = [*stage.inputs[::-1], *spot.arguments[len(stage.inputs) :]]
        require_refused(plain(swapped, spot.scratch), spot, stage.begins[0])


def test_an_input_that_is_shorter_than_it_was(stage: Stage) -> None:
    with stage.spot(0) as spot:
        kept = stage.inputs[0].read_bytes()
        stage.inputs[0].write_bytes(kept[:10])
        try:
            require_refused(plain(spot.arguments, spot.scratch), spot, stage.begins[0])
        finally:
            stage.inputs[0].write_bytes(kept)


def test_an_output_that_was_changed(stage: Stage) -> None:
    for change in (lambda _: b"", lambda data: data[:7]):
        refused(stage, altered(stage, SMALL.output, change))


def test_begun_anew_on_purpose(stage: Stage) -> None:
    """Whatever is there, --state-reset begins anew and says so; the output is a new run's."""
    for tree in (stage.begins[0], altered(stage, STATE, flip(50))):
        with stage.spot(0) as spot:
            put(tree, spot.folder)
            (spot.folder / SMALL.output).unlink()
            done = plain([each for each in spot.arguments if each != "-q"] + ["--state-reset"],
                         spot.scratch)  # fmt: skip
            assert done.code == 0, done.said
            assert "veil" in done.said, done.said
            assert spot.found() == stage.wanted


def test_no_single_change_of_the_file_goes_unseen(stage: Stage, tmp_path: Path) -> None:
    """Each byte of its first pieces, a sample of the others, and any length."""
    data = stage.begins[0][STATE].content or b""
    key_file, file = tmp_path / "key", tmp_path / "state"
    key_file.write_bytes(stage.begins[0][KEY].content or b"")
    key_file.chmod(0o600)
    key = derive_key(read_key(key_file), "state")
    file.write_bytes(data)
    note, parts = load_state(str(file), key)
    assert json.loads(note)
    assert parts
    random = Random(6)
    places = [*range(200), *(random.randrange(len(data)) for _ in range(600)), len(data) - 1]
    lengths = [*range(300), *(random.randrange(len(data)) for _ in range(200)), len(data) - 1]
    for changed in [flip(place)(data) for place in places] + [data[:n] for n in lengths]:
        file.write_bytes(changed)
        with pytest.raises((ValueError, OSError)) as caught:
            load_state(str(file), key)
        assert "user1" not in str(caught.value)
    for other in (bytes(32), key[::-1]):
        file.write_bytes(data)
        for call in (load_state, read_note):
            with pytest.raises(ValueError):  # noqa: PT011  # one of the library's own
                call(str(file), other)


def test_what_is_shown_holds_nothing_of_the_data(stage: Stage) -> None:
    with stage.spot(0) as spot:
        for form in ((), ("--json",)):
            shown = zveil("state", "show", spot.folder / scenes.STATE, *form)
            assert shown.returncode == 0, shown.stderr
            text = shown.stdout.decode()
            for name in ("user1", "a.example.org", "only1"):
                assert name not in text
        stored = b"".join(node.content or b"" for path, node in look(spot.folder).items()
                          if path.startswith(f"{scenes.STATE}/"))  # fmt: skip
        for name in (b"user1", b"example.org", b"only1"):
            assert name not in stored
