"""Where a run is done over and over from the same beginning, each time with another fault."""

import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any

from faults import Ended, plain, run
from power import Shadow, Tree, look, put
from scenes import STATE, Scene, stated, unnamed

WORKERS = 2
_TRIES = 20
KILLS = int(os.environ.get("ZVEIL_KILLS", "200"))
"""So many at random moments; more than a thousand mean everything at every step."""
IS_LONG = KILLS > 1_000


def each(call: Callable[[Any], None], things: Iterable[Any]) -> None:
    """Call it for all of them, a few at a time; the first failure is raised."""
    with ThreadPoolExecutor(WORKERS) as pool:
        running = [pool.submit(call, thing) for thing in things]
        try:
            for future in running:
                future.result()
        finally:
            for future in running:
                future.cancel()


def is_save(kind: str, path: str) -> bool:
    """Whether this is the step that puts a snapshot into its place."""
    return kind == "rename" and path == f"/{STATE}/state"


@dataclass
class Stage:
    """A scene, what it ends with, and what it begins with.

    A state names its output by its whole path: so a run is always done at one of a few places,
    which have beginnings of their own.
    """

    scene: Scene
    place: Path
    inputs: list[Path]
    begins: list[Tree]
    """By place."""
    wanted: Any = None
    tried: set[object] = field(default_factory=set)
    """What was gone on from already."""
    _free: SimpleQueue[int] = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        for number in range(WORKERS):
            self._free.put(number)

    @classmethod
    def of(cls, scene: Scene, place: Path) -> "Stage":
        """Write the inputs, and run it undisturbed."""
        for name in ("in", "begins"):
            (place / name).mkdir(parents=True)
        inputs = scene.inputs(place / "in")
        scene.begin(place / "begins")
        stage = cls(scene, place, inputs, [look(place / "begins")] * WORKERS)
        with stage.spot() as spot:
            done = spot.again()
            assert done.code == 0, done.said
            stage.wanted = spot.found()
        assert stage.wanted
        return stage

    def midway(self, seed: int) -> "Stage":
        """Begin where a run was killed after its first save, within a write if there was one."""
        random = Random(seed)
        begins = [self._killed_midway(place, random) for place in range(WORKERS)]
        return Stage(self.scene, self.place, self.inputs, begins, self.wanted)

    def _killed_midway(self, place: int, random: Random) -> Tree:
        for _ in range(_TRIES):
            with self.spot(place) as spot:
                steps = spot.run().steps
            numbered = list(enumerate(steps, 1))
            first = next(n for n, step in numbered if is_save(step.kind, step.path))
            later = [n for n, step in numbered if n > first + 2 and step.who == "program"]
            writes = [n for n in later if steps[n - 1].kind == "write"
                      and steps[n - 1].path == f"/{self.scene.output}"]  # fmt: skip
            with self.spot(place) as spot:
                ended = spot.run(at=random.choice(writes or later), do="torn")
                left = look(spot.folder)
            # Saves are made beside the program: how many there are, and when, is not the same in
            # two runs, and the other may be over before that step, or not have saved.
            if ended.is_killed and f"{STATE}/state" in left:
                return left
        raise AssertionError("it was never killed midway")

    def anew(self) -> "Stage":
        """The same, of which nothing was tried."""
        return Stage(self.scene, self.place, self.inputs, self.begins, self.wanted)

    def spot(self, place: int | None = None) -> "Spot":
        """Take this place, or one that is free, and put it to the beginning."""
        if place is not None:
            return Spot(self, place, lambda: None)
        free = self._free.get()
        return Spot(self, free, lambda: self._free.put(free))


class Spot:
    """One run on a stage."""

    def __init__(self, stage: Stage, number: int, free: Callable[[], None]) -> None:
        self.stage, self.number, self._free = stage, number, free
        self.place = stage.place / f"spot{number}"
        self.folder, self.scratch = self.place / "out", self.place / "scratch"
        for each_place in (self.folder, self.scratch):
            each_place.mkdir(parents=True)
        put(self.begins, self.folder)
        self.arguments = stage.scene.arguments(self.folder, self.place, stage.inputs)
        self.arguments += ["-q", *stated(self.folder)]
        self.shadow: Shadow | None = None

    @property
    def begins(self) -> Tree:
        return self.stage.begins[self.number]

    def __enter__(self) -> "Spot":
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.place)
        self._free()

    def run(self, *, shadowed: bool = False, **told: Any) -> Ended:
        """Run with a fault, each save being over before the next input is read."""
        noted = None
        if shadowed:
            noted = self.place / "shadow"
            self.shadow = Shadow(self.folder, noted)
        return run(
            self.folder, self.scratch, self.arguments,
            reads=self.stage.place / "in", shadow=noted, **told,
        )  # fmt: skip

    def again(self) -> Ended:
        """Run without faults."""
        return plain(self.arguments, self.scratch)

    def found(self) -> Any:
        """Give what is in the output, users by number where the key is the state's own."""
        if self.stage.scene.key is None and not self.stage.scene.chain:
            return unnamed((self.folder / self.stage.scene.output).read_bytes())
        return self.stage.scene.content(self.folder)

    def require_the_end(self, why: str) -> None:
        """Start it again, and compare; once only from what looks the same."""
        looks = _looks(look(self.folder))
        if looks in self.stage.tried and not IS_LONG:
            return
        self.stage.tried.add(looks)
        done = self.again()
        assert done.code == 0, (why, done.said)
        assert self.found() == self.stage.wanted, why


def _looks(tree: Tree) -> frozenset[tuple[str, int]]:
    """Names and lengths: what is sealed under a key of chance is never the same twice."""
    return frozenset(
        (name.rstrip("0123456789"), -1 if node.content is None else len(node.content))
        for name, node in tree.items() if not name.endswith("/lock")
    )  # fmt: skip
