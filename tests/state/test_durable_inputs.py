"""What may have changed between two runs with one state, and what may not."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from durable import Place
from test_durable_formats import INPUTS, ROWS, content, ndjson, parquet, policy

from zveil._native import Keyring
from zveil.io import SourceError
from zveil.run import Run, text
from zveil.state.error import StateError
from zveil.state.store import Store


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_BLOCK", 3_000)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place", policy())


def wanted(tmp_path: Path, data: bytes) -> bytes:
    """What leaves of all of it at once."""
    whole = tmp_path / "whole.ndjson"
    whole.write_bytes(data)
    other = Place(tmp_path / "other", policy())
    other.run([whole])
    return other.path.read_bytes()


def test_a_file_that_has_grown_is_read_on(place: Place, tmp_path: Path) -> None:
    given, data = tmp_path / "in.ndjson", INPUTS["in.ndjson"]
    for end in (0, 5_000, 5_001, 20_000, len(data)):
        given.write_bytes(data[:end])
        place.run([given])
    assert place.path.read_bytes() == wanted(tmp_path, data)


def test_a_last_line_without_an_end_is_decided_and_read_again(place: Place, tmp_path: Path) -> None:
    given, lines = tmp_path / "in.ndjson", INPUTS["in.ndjson"].splitlines(keepends=True)
    given.write_bytes(b"".join(lines[:300])[:-1])
    assert place.run([given]).records == 300
    before = place.path.read_bytes()
    assert place.run([given]).records == 300
    assert place.path.read_bytes() == before
    # Half of a line is bad, but only for as long as it is half.
    given.write_bytes(b"".join(lines[:400])[:-20])
    assert place.run([given]).bad_lines == 1
    given.write_bytes(b"".join(lines))
    summary = place.run([given])
    assert (summary.records, summary.bad_lines) == (600, 0)
    assert place.path.read_bytes() == wanted(tmp_path, b"".join(lines))


def test_new_files_behind_the_others_are_read(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        part = ndjson(ROWS[number * 200 : (number + 1) * 200])
        (folder / f"part-{number}.ndjson").write_bytes(part)
        place.run([folder])
    assert place.path.read_bytes() == wanted(tmp_path, INPUTS["in.ndjson"])
    # Those that were read to their end may go.
    (folder / "part-0.ndjson").unlink()
    (folder / "part-2.ndjson").unlink()
    before = place.path.read_bytes()
    assert place.run([folder]).records == 600
    assert place.path.read_bytes() == before


def test_files_are_gone_on_with_in_the_middle_of_one(place: Place, tmp_path: Path) -> None:
    inputs = []
    for number in range(3):
        inputs.append(tmp_path / f"part-{number}.ndjson")
        inputs[-1].write_bytes(ndjson(ROWS[number * 200 : (number + 1) * 200]))
    lefts = place.lefts(inputs)
    end = place.path.read_bytes()
    for left in lefts[::2]:
        place.put(left)
        assert place.run(inputs).records == 600
        assert place.path.read_bytes() == end


def refused(place: Place, inputs: list[Path | str], **options: Any) -> str:
    before = place.left()
    with pytest.raises(StateError) as caught:
        place.run(inputs, **options)
    after = place.left()
    for left in (before, after):
        left.pop(place.state / "lock")
    assert before == after
    return str(caught.value)


class TestRefused:
    @pytest.fixture
    def given(self, place: Place, tmp_path: Path) -> Path:
        path = tmp_path / "in.ndjson"
        path.write_bytes(INPUTS["in.ndjson"])
        place.run([path])
        return path

    def test_a_shorter_file(self, place: Place, given: Path) -> None:
        given.write_bytes(INPUTS["in.ndjson"][:-500])
        words = refused(place, [given])
        assert str(given) in words
        assert "is shorter than when the state was saved" in words
        assert "--state-reset" in words

    def test_another_file_of_that_name(self, place: Place, given: Path) -> None:
        given.write_bytes(INPUTS["in.ndjson"].replace(b'"u1"', b'"v1"'))
        assert "holds other bytes" in refused(place, [given])

    def test_a_file_that_is_not_there(self, place: Place, given: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.ndjson"
        other.write_bytes(INPUTS["in.ndjson"])
        # It was read to its end: then others may come.
        assert place.run([other]).records == 1_200
        assert "another order" in refused(place, [other, given])

    def test_an_unfinished_file_that_is_not_there(self, place: Place, tmp_path: Path) -> None:
        first, second = tmp_path / "1.ndjson", tmp_path / "2.ndjson"
        first.write_bytes(INPUTS["in.ndjson"])
        second.write_bytes(INPUTS["in.ndjson"])
        left = place.lefts([first])[4]
        place.put(left)
        words = refused(place, [second])
        assert str(first) in words
        assert "is not among the inputs" in words

    def test_a_new_file_before_the_others(self, place: Place, given: Path, tmp_path: Path) -> None:
        first = tmp_path / "a.ndjson"
        first.write_bytes(INPUTS["in.ndjson"])
        words = refused(place, [first, given])
        assert "a.ndjson: comes before inputs that were read already" in words

    def test_a_file_before_that_has_grown(self, place: Place, given: Path, tmp_path: Path) -> None:
        last = tmp_path / "last.ndjson"
        last.write_bytes(INPUTS["in.ndjson"])
        place.run([given, last])
        with given.open("ab") as file:
            file.write(INPUTS["in.ndjson"][:100])
        words = refused(place, [given, last])
        assert f"{given}: has grown since it was read to its end" in words

    def test_a_parquet_file_that_was_written_anew(self, place: Place, tmp_path: Path) -> None:
        source = tmp_path / "in.parquet"
        source.write_bytes(parquet(ROWS[:300]))
        place.run([source])
        source.write_bytes(parquet(ROWS))
        assert str(source) in refused(place, [source])

    def test_a_missing_output(self, place: Place, given: Path) -> None:
        place.path.unlink()
        words = refused(place, [given])
        assert str(place.path) in words
        assert "no such file" in words

    @pytest.mark.parametrize("change", [lambda held: held[:-10], lambda held: held[:-1] + b"x"])
    def test_a_changed_output(self, place: Place, given: Path, change: Any) -> None:
        place.path.write_bytes(change(place.path.read_bytes()))
        assert str(place.path) in refused(place, [given])

    def test_another_output(self, place: Place, given: Path) -> None:
        place.output = "other.ndjson"
        words = refused(place, [given])
        assert "-o: the state goes on with" in words
        place.output = None
        assert "-o: the state goes on with" in refused(place, [given])

    def test_another_key(self, place: Place, given: Path) -> None:
        words = refused(place, [given], key=bytes(32))
        assert "another key" in words

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"window": 61}, "The window goes from"),
            ({"z": 4}, "the state remembers no more than 3 users"),
            ({"user": "n", "keep": ["note"]}, "user.field has changed"),
            ({"attributes": ["host", "ref"]}, "'ref': The old policy does not decide"),
            ({"keep": ["n"]}, "the fields that leave are others"),
            ({"id": "n"}, "the ids of events"),
            ({"rotate": "1h", "keep_keys": True}, "how the keys of pseudonyms change"),
        ],
    )
    def test_another_policy(
        self, place: Place, given: Path, options: dict[str, Any], why: str
    ) -> None:
        place.policy = policy(**options)
        words = refused(place, [given])
        assert why in words
        assert "--state-reset" in words

    def test_a_pipe_among_files(self, place: Place, given: Path, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.ndjson")
        with pytest.raises(SourceError, match="a pipe must be the only input"):
            place.run([given, tmp_path / "pipe.ndjson"])

    def test_parquet_into_a_pipe(self, given: Path, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.parquet")
        reader = os.open(tmp_path / "pipe.parquet", os.O_RDONLY | os.O_NONBLOCK)
        other = Place(tmp_path / "piped", policy(), "../pipe.parquet")
        with pytest.raises(OSError, match="cannot be gone on with but in a file"):
            other.run([given])
        os.close(reader)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"z": 2}, "z goes from 3 to 2"),
        ({"round": "minute"}, None),
        ({"empty": "blank"}, None),
        ({"lateness": 30}, "The lateness goes from"),
        ({"memory": "64MiB"}, "The part of the memory"),
    ],
)
def test_a_changed_policy_keeps_what_it_can(
    place: Place, tmp_path: Path, options: dict[str, Any], told: str | None
) -> None:
    given, half = tmp_path / "in.ndjson", len(INPUTS["in.ndjson"]) // 2
    given.write_bytes(INPUTS["in.ndjson"][:half])
    place.run([given])
    released = place.run([given]).released
    given.write_bytes(INPUTS["in.ndjson"])
    place.policy = policy(**options)
    summary = place.run([given])
    assert summary.records == 600
    assert summary.released > released
    assert summary.outcomes[0].z == place.policy.attributes[0].z
    if told is None:
        assert place.reports == []
    else:
        assert f"the policy has changed: 'host': {told}" in place.reports[0]


def test_a_gate_goes_on_under_another_z_as_if_set_there(place: Place, tmp_path: Path) -> None:
    given, lines = tmp_path / "in.ndjson", INPUTS["in.ndjson"].splitlines(keepends=True)
    given.write_bytes(b"".join(lines[:300]))
    place.run([given])
    given.write_bytes(b"".join(lines))
    place.policy = policy(z=2)
    place.run([given])
    [gate] = policy().gates()
    kept = []
    for number, row in enumerate(ROWS):
        if number == 300:
            gate.z = 2
        if gate.observe(row["ts"] * 10**9, row["uid"], row["host"]):
            kept.append(row["n"])
    assert [json.loads(line)["n"] for line in place.path.read_bytes().splitlines()] == kept


def test_begun_anew_on_purpose(place: Place, tmp_path: Path) -> None:
    given = tmp_path / "in.ndjson"
    given.write_bytes(INPUTS["in.ndjson"])
    place.run([given])
    first = content(place.path)
    place.policy = policy(window=61)
    assert place.run([given], reset=True).records == 600
    assert len(content(place.path)) >= len(first)
    assert place.run([given]).records == 600


def test_a_save_that_fails_is_told_once_and_tried_again(place: Place, tmp_path: Path) -> None:
    given = tmp_path / "in.ndjson"
    given.write_bytes(INPUTS["in.ndjson"])
    store = Store(
        place.state, key=bytes(32), policy=place.policy, interval=0.0, report=place.reports.append
    )
    going = Run(
        place.policy, [*_found(given)], output=str(place.path), store=store,
        keyring=Keyring.fixed("base32", bytes(32)), report=place.reports.append,
    )  # fmt: skip
    path = store.path
    blocks = []

    def break_and_mend(_: Run) -> None:
        blocks.append(1)
        store.wait()
        # The state cannot be renamed onto a folder that holds something.
        if len(blocks) == 2:
            path.unlink(missing_ok=True)
            (path / "in the way").mkdir(parents=True)
        if len(blocks) == 8:
            (path / "in the way").rmdir()
            path.rmdir()

    summary = going.go(break_and_mend)
    store.close()
    assert not going.has_failed_to_save
    assert summary.state is not None
    assert summary.state.failed_saves > 2
    assert summary.state.saves > 2
    assert sum("could not be saved" in words for words in place.reports) == 1
    assert path.is_file()


def _found(path: Path) -> list[Any]:
    from zveil.io import find

    return find([str(path)])
