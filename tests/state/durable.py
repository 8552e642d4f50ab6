"""Runs that keep their state, within this process, and what is left of one that is killed."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from events import KEY

from zveil._native import Keyring
from zveil.io import find
from zveil.policy import Policy
from zveil.run import Run
from zveil.state.store import Store
from zveil.summary import Summary

Watch = Callable[[Run], None]
Left = dict[Path, bytes]
"""What is in some folders: what a killed run leaves behind."""


@dataclass
class Place:
    """A folder with a state and an output in it; its runs have one key."""

    folder: Path
    policy: Policy
    output: str | None = "out.ndjson"
    reports: list[str] = field(default_factory=list)
    store: Store | None = None

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def path(self) -> Path:
        assert self.output is not None
        return self.folder / self.output

    def run(
        self,
        inputs: Sequence[Path | str],
        watch: Watch = lambda _: None,
        *,
        interval: float = 0.0,
        key: bytes | None = KEY,
        reset: bool = False,
        **options: Any,
    ) -> Summary:
        """Run to the end; by default it saves after every block."""
        self.reports.clear()
        store = Store(
            self.state, key=key, policy=self.policy, interval=interval, reset=reset,
            report=self.reports.append,
        )  # fmt: skip
        self.store = store
        try:
            given = {
                "keyring": Keyring.fixed("base32", KEY),
                "gate_key": KEY,
                "report": self.reports.append,
            }
            going = Run(
                self.policy,
                find([str(path) for path in inputs]),
                output=None if self.output is None else str(self.path),
                store=store,
                **given | options,
            )
            return going.go(watch)
        finally:
            store.close()

    def left(self) -> Left:
        """Give what a kill would leave at this moment."""
        return {
            path: path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()
        }

    def put(self, left: Left) -> None:
        """Bring back what a killed run left."""
        shutil.rmtree(self.folder)
        for path, held in left.items():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_bytes(held)
            os.chmod(path, 0o600)

    def lefts(self, inputs: Sequence[Path | str], **options: Any) -> list[Left]:
        """Run to the end, and give what was left after each block."""
        found: list[Left] = []

        def look(_: Run) -> None:
            assert self.store is not None
            self.store.wait()
            found.append(self.left())

        self.run(inputs, look, **options)
        return [*found, self.left()]


def some(lefts: list[Left], count: int) -> list[Left]:
    """Choose a few, the first and the last among them."""
    steps = max((len(lefts) - 1) // (count - 1), 1)
    return [*lefts[:-1:steps], lefts[-1]]
