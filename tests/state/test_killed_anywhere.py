"""Killed at hundreds of random moments and started again, a run writes what it would have."""

import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from faults import NEVER, Ended, needs_faults, plain, run
from scenes import SCENES, Scene, stated
from stage import IS_LONG, KILLS, WORKERS, each, is_save

pytestmark = needs_faults

SEED = os.environ.get("ZVEIL_SEED", "1")
SHOWN = SCENES if IS_LONG else [scene for scene in SCENES if scene.name != "parquet with swaps"]
# More than any run needs.
MOST_LIVES = 200


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

    def live(self, start: int, tick: int) -> Ended:
        """Live for some steps, and then for some ticks."""
        return run(
            self.folder,
            self.scratch,
            self.arguments,
            reads=self.source,
            tick=tick,
            **{"from": start},
        )


def undisturbed(scene: Scene, place: Path) -> object:
    """Run without a state and without faults."""
    if scene.chain:
        scene = replace(scene, key="key")
    lives = Lives(scene, place)
    done = plain(scene.arguments(lives.folder, place, lives.inputs), lives.scratch)
    assert done.code == 0, done.said
    return scene.content(lives.folder)


@pytest.mark.parametrize("scene", SHOWN, ids=lambda scene: scene.name)
def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(
    scene: Scene, tmp_path: Path
) -> None:
    (tmp_path / "undisturbed").mkdir()
    wanted = undisturbed(scene, tmp_path / "undisturbed")
    assert wanted
    (tmp_path / "whole").mkdir()
    whole = Lives(scene, tmp_path / "whole")
    ended = whole.live(1, NEVER)
    assert ended.code == 0, ended.said
    assert scene.content(whole.folder) == wanted, "a state changes what is written"
    saves = [n for n, step in enumerate(ended.steps, 1) if is_save(step.kind, step.path)]
    assert len(saves) >= 3, "too few saves to be killed between"

    # As far as to the fourth save: so there are many lives to a run, and it comes to its end.
    reach = saves[min(3, len(saves) - 1)]
    kills = [0] * WORKERS

    def kill(worker: int) -> None:
        random, tries = Random(f"{SEED} {scene.name} {worker}"), 0
        while sum(kills) < _count(scene):
            tries += 1
            place = tmp_path / f"try{worker}-{tries}"
            place.mkdir()
            lives, moments = Lives(scene, place), [_moment(random, reach)]
            while (life := lives.live(*moments[-1])).is_killed:
                kills[worker] += 1
                assert len(moments) < MOST_LIVES, "it does not get any further"
                moments.append(_moment(random, reach))
            assert life.code == 0, (moments, life.said)
            assert scene.content(lives.folder) == wanted, f"killed at {moments}"

    each(kill, range(WORKERS))


def _moment(random: Random, reach: int) -> tuple[int, int]:
    return random.randrange(1, reach), int(10 ** random.uniform(0, 3))


def _count(scene: Scene) -> int:
    """Fewer for those that are slow, and more for the others."""
    if scene.is_slow:
        return max(2, KILLS // 80)
    return -(-KILLS // sum(not one.is_slow for one in SCENES))
