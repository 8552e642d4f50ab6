"""A disk that is full or broken at every step: the run says so, or goes on; nothing is lost."""

from pathlib import Path
from random import Random

import pytest
from faults import needs_faults, require_worded
from scenes import SCENES, SMALL, Scene
from stage import IS_LONG, Stage, each

pytestmark = needs_faults


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage.of(SMALL, tmp_path_factory.mktemp("small"))


def fail_at_each(stage: Stage, steps: range) -> None:
    def fail(number: int) -> None:
        random = Random(number)
        told = {"do": random.choice(["eio", "enospc"]), "lasting": random.choice(["", "1"])}
        with stage.spot() as spot:
            ended = spot.run(at=number, **told)
            require_worded(ended)
            for shown in ("user1", "example", "only1"):
                assert shown not in ended.said
            file = spot.folder / stage.scene.output
            if ended.code == 0:
                assert spot.found() == stage.wanted, (ended.hit, ended.said)
            elif stage.scene.key is None and file.exists():
                # Whole lines only: what was cut off within one is written anew.
                data = file.read_bytes()
                file.write_bytes(data[: data.rfind(b"\n") + 1])
                found = spot.found()
                file.write_bytes(data)
                assert found == stage.wanted[: len(found)], (ended.hit, ended.said)
            spot.require_the_end(f"{told} at {ended.hit}; it said: {ended.said}")

    each(fail, steps)


def count_of(stage: Stage) -> int:
    with stage.spot() as spot:
        return len(spot.run().steps)


@pytest.mark.parametrize("begins", ["nothing", "midway"])
def test_every_step_may_fail(stage: Stage, begins: str) -> None:
    used = stage if begins == "nothing" else stage.midway(3)
    stride = 1 if IS_LONG or begins == "nothing" else 3
    fail_at_each(used, range(1, count_of(used) + 1, stride))


@pytest.mark.parametrize("scene", SCENES if IS_LONG else [SCENES[-2]], ids=lambda scene: scene.name)
def test_other_formats_at_some_steps(scene: Scene, tmp_path: Path) -> None:
    used = Stage.of(scene, tmp_path)
    for begins in (used, used.midway(4)):
        count = count_of(begins)
        fail_at_each(begins, range(1, count + 1, 1 if IS_LONG else 40))
