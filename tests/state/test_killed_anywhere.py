"""Killed at hundreds of random moments and started again, a run writes what it would have."""

import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from faults import NEVER, Ended, needs_faults, plain, run
from scenes import SCENES, Scene, stated
from stage import KILLS, WORKERS, each, is_save

pytestmark = needs_faults

SEED = os.environ.get("ZVEIL_SEED", "1")
# Lives in a row that may fail to bring a run to its end before it is let live.
MOST_LIVES = 60


class Lives:
    """One run, killed and started again until it ends."""

    def __init__(self, scene: Scene, place: Path) -> None:
        self.scene, self.place = scene, place
        self.folder, self.source, self.scratch = (place / n for n in ("out", "in", "scratch"))
        for made in (self.folder, self.source, self.scratch):
            made.mkdir()
        scene.begin(self.folder)
        self.inputs = scene.inputs(self.source)
        self.arguments = scene.arguments(self.folder, place, self.inputs)
        self.arguments += ["-q", *stated(self.folder)]

    def live(self, tick: int) -> Ended:
        return run(self.folder, self.scratch, self.arguments, reads=self.source, tick=tick)


def undisturbed(scene: Scene, place: Path) -> object:
    """Run without a state and without faults."""
    if scene.chain:
        scene = replace(scene, key="key")
    lives = Lives(scene, place)
    done = plain(scene.arguments(lives.folder, place, lives.inputs), lives.scratch)
    assert done.code == 0, done.said
    return scene.content(lives.folder)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(
    scene: Scene, tmp_path: Path
) -> None:
    (tmp_path / "undisturbed").mkdir()
    wanted = undisturbed(scene, tmp_path / "undisturbed")
    assert wanted
    (tmp_path / "whole").mkdir()
    whole = Lives(scene, tmp_path / "whole")
    ended = whole.live(NEVER)
    assert ended.code == 0, ended.said
    assert scene.content(whole.folder) == wanted, "a state changes what is written"
    saves = sum(is_save(step.kind, step.path) for step in ended.steps)
    assert saves >= 3, "too few saves to be killed between"

    # Far enough for a save or two at a time, so that there are many lives to a run.
    reach = ended.ticks * 3 // saves
    count = max(3, KILLS // len(SCENES) + 1)
    kills = [0] * WORKERS

    def kill(worker: int) -> None:
        random, tries = Random(f"{SEED} {scene.name} {worker}"), 0
        while sum(kills) < count:
            tries += 1
            place = tmp_path / f"try{worker}-{tries}"
            place.mkdir()
            lives, moments = Lives(scene, place), [random.randrange(1, reach)]
            while (life := lives.live(moments[-1])).is_killed:
                kills[worker] += 1
                most = reach if len(moments) < MOST_LIVES else NEVER
                moments.append(random.randrange(1, most))
            assert life.code == 0, (moments, life.said)
            assert scene.content(lives.folder) == wanted, f"killed at ticks {moments}"

    each(kill, range(WORKERS))
