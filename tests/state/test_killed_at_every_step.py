"""Killed, or without power, at every write, sync and rename, a run goes on as if nothing was."""

from pathlib import Path
from random import Random

import pytest
from faults import Ended, needs_faults
from power import look, put
from scenes import SCENES, SMALL, Scene
from stage import IS_LONG, Spot, Stage, each, is_save

pytestmark = needs_faults

KINDS = {"open", "write", "fsync", "rename"}
OTHERS = [scene for scene in SCENES if scene.name in ("gzip", "parquet", "chain in a file")]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage.of(SMALL, tmp_path_factory.mktemp("small"))


def steps_of(stage: Stage) -> Ended:
    """Run it with nothing but counting."""
    with stage.spot() as spot:
        ended = spot.run()
        assert ended.code == 0, ended.said
        assert spot.found() == stage.wanted
        return ended


def require_all_losses(spot: Spot, number: int, why: str) -> None:
    """Start again after each loss of power that may follow."""
    assert spot.shadow is not None
    for loss, tree in list(spot.shadow.losses(Random(number))):
        put(tree, spot.folder)
        spot.require_the_end(f"{why}; then the power was lost, and there is left: {loss}")


def kill_at_each(stage: Stage, steps: range) -> None:
    """Kill it at each of these steps, and start it again, also after each loss of power."""

    def kill(number: int) -> None:
        with stage.spot() as spot:
            ended = spot.run(at=number, shadowed=True, do="kill")
            assert ended.is_killed == ended.fired, (ended.code, ended.said)
            why = f"killed at {ended.hit}"
            left = look(spot.folder)
            require_all_losses(spot, number, why)
            put(left, spot.folder)
            spot.require_the_end(why)

    each(kill, steps)


def test_steps_are_what_they_are_meant_to_be(stage: Stage) -> None:
    """The harness sees the files written, those of the fork too, several saves, and no others."""
    ended = steps_of(stage)
    assert {step.kind for step in ended.steps} >= KINDS
    assert sum(is_save(step.kind, step.path) for step in ended.steps) >= 3
    assert {step.who for step in ended.steps if is_save(step.kind, step.path)} >= {"fork"}
    assert any(step.path == "/out.ndjson" and step.kind == "write" for step in ended.steps)
    again = steps_of(stage)
    assert _kinds(again) == _kinds(ended)


def _kinds(ended: Ended) -> set[tuple[str, str, str]]:
    """What was done to which file; names of chance have digits."""
    return {(step.who, step.kind, step.path.rstrip("0123456789")) for step in ended.steps}


@pytest.mark.parametrize("begins", ["nothing", "midway"])
def test_killed_or_without_power_at_every_step(stage: Stage, begins: str) -> None:
    used = stage if begins == "nothing" else stage.midway(7)
    count = len(steps_of(used).steps)
    kill_at_each(used, range(1, count + 1))


def test_every_write_torn(stage: Stage) -> None:
    used = stage.midway(8)
    writes = [n for n, step in enumerate(steps_of(used).steps, 1) if step.kind == "write"]

    def tear(number: int) -> None:
        with used.spot() as spot:
            ended = spot.run(at=writes[number], do="torn")
            spot.require_the_end(f"torn at {ended.hit}")

    each(tear, range(len(writes)))


def test_a_write_may_do_less_than_asked(stage: Stage) -> None:
    with stage.spot() as spot:
        ended = spot.run(at=1, do="short", lasting=1)
        assert (ended.code, ended.said) == (0, "")
        assert ended.fired
        assert spot.found() == stage.wanted


def test_what_was_forked_may_be_killed_alone(stage: Stage) -> None:
    """The run goes on without that snapshot, and says so."""
    steps = steps_of(stage).steps
    forked = [n for n, step in enumerate(steps, 1) if step.who == "fork"]
    assert forked

    def kill(number: int) -> None:
        with stage.spot() as spot:
            ended = spot.run(at=forked[number], do="alone")
            if ended.is_killed:  # the steps fell otherwise, and it was the run itself
                return
            assert ended.code == 0, (ended.hit, ended.said)
            assert spot.found() == stage.wanted, ended.hit
            spot.require_the_end(ended.hit)

    each(kill, range(0, len(forked), 1 if IS_LONG else 4))


@pytest.mark.parametrize("scene", SCENES if IS_LONG else OTHERS, ids=lambda scene: scene.name)
def test_other_formats_at_some_steps(scene: Scene, tmp_path: Path) -> None:
    used = Stage.of(scene, tmp_path)
    for number, begins in enumerate((used, used.midway(9))):
        count = len(steps_of(begins).steps)
        stride = 1 if IS_LONG else 37 if scene.is_slow else 23
        steps = range(Random(f"{scene.name} {number}").randrange(stride) + 1, count + 1, stride)
        kill_at_each(begins, steps)


# --- the harness itself can fail ---


@pytest.mark.parametrize("deaf", ["files", "folders"])
def test_syncs_that_do_nothing_are_found_out(stage: Stage, deaf: str) -> None:
    """A program that left out its syncs would be told by a loss of power."""
    stage = stage.anew()
    count = len(steps_of(stage).steps)
    found = 0
    for number in range(count, 0, -3):
        with stage.spot() as spot:
            spot.run(at=number, shadowed=True, do="kill", deaf=deaf)
            try:
                require_all_losses(spot, number, "deaf")
            except AssertionError:
                found += 1
                break
    assert found, "the harness would not see a missing sync"


def test_a_snapshot_newer_than_the_output_is_found_out(stage: Stage) -> None:
    """What would follow from syncing the output after the snapshot: its end is not there."""
    with stage.midway(7).spot(0) as spot:
        file = spot.folder / SMALL.output
        file.write_bytes(file.read_bytes()[:100])
        done = spot.again()
        assert done.code != 0
        assert "Error: " in done.said
