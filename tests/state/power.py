"""A folder as a loss of power might leave it: what was not synced is there, or not."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random


@dataclass(frozen=True)
class Node:
    """A file with its content, or a folder, which has none."""

    mode: int
    content: bytes | None


_Chance = Callable[[], bool]
Tree = dict[str, Node]
"""By path below the folder, a folder before what is in it."""


def look(folder: Path) -> Tree:
    """Take down what is in a folder."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        content = None if path.is_dir() else path.read_bytes()
        tree[str(path.relative_to(folder))] = Node(path.stat().st_mode & 0o7777, content)
    return tree


def put(tree: Tree, folder: Path) -> None:
    """Make a folder hold this and nothing else."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    for name, node in tree.items():
        path = folder / name
        if node.content is None:
            path.mkdir()
        else:
            path.write_bytes(node.content)
        path.chmod(node.mode)


class Shadow:
    """What of a folder is known to be on the disk, noted by `faults.c` while a program runs.

    Files that are there at the beginning count as synced.
    """

    def __init__(self, folder: Path, place: Path) -> None:
        self.folder, self.place = folder, place
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for path in [folder, *folder.rglob("*")]:
            inode = path.stat().st_ino
            if path.is_dir():
                names = "".join(
                    f"{'d' if entry.is_dir() else 'f'} {entry.stat().st_mode & 0o7777:o} "
                    f"{entry.stat().st_ino} {entry.name}\n"
                    for entry in path.iterdir()
                )
                (place / f"names-{inode}").write_text(names)
            else:
                shutil.copyfile(path, place / str(inode))
                os.link(path, place / f"kept-{inode}")

    def losses(self, random: Random) -> Iterator[tuple[str, Tree]]:
        """Give what might be there after a loss of power, beside all that was written.

        Names and contents are two things to a disk: a file can be found under its new name and
        be empty, or whole and under none.
        """
        yield "nothing that was not synced", self._tree(lambda: False, lambda: False)
        yield "names, and no content that was not synced", self._tree(lambda: True, lambda: False)
        yield "content, and no names that were not synced", self._tree(lambda: False, lambda: True)
        yield "some of it", self._tree(lambda: random.random() < 0.5, lambda: random.random() < 0.5)

    def _tree(self, keeps_name: _Chance, keeps_content: _Chance) -> Tree:
        tree: Tree = {}
        self._add(tree, "", self.folder.stat().st_ino, self.folder, keeps_name, keeps_content)
        return tree

    def _add(
        self, tree: Tree, prefix: str, inode: int, live: Path | None,
        keeps_name: _Chance, keeps_content: _Chance,
    ) -> None:  # fmt: skip
        now: dict[str, tuple[bool, int, int]] = {}
        if live is not None and live.is_dir():
            for entry in sorted(live.iterdir()):
                status = entry.stat()
                now[entry.name] = (entry.is_dir(), status.st_mode & 0o7777, status.st_ino)
        then = self._names(inode)
        for name in sorted({*now, *then}):
            found = (now if now.get(name) == then.get(name) or keeps_name() else then).get(name)
            if found is None:
                continue
            is_folder, mode, own = found
            path = f"{prefix}{name}"
            if is_folder:
                tree[path] = Node(mode, None)
                below = None if live is None or now.get(name) != found else live / name
                self._add(tree, f"{path}/", own, below, keeps_name, keeps_content)
            else:
                there = None if live is None or now.get(name) != found else live / name
                tree[path] = Node(mode, self._content(own, there, keeps_content))

    def _names(self, inode: int) -> dict[str, tuple[bool, int, int]]:
        try:
            lines = (self.place / f"names-{inode}").read_text().splitlines()
        except FileNotFoundError:
            return {}
        split = (line.split(" ", 3) for line in lines)
        return {name: (kind == "d", int(mode, 8), int(own)) for kind, mode, own, name in split}

    def _content(self, inode: int, live: Path | None, keeps_content: _Chance) -> bytes:
        synced, kept = self.place / str(inode), self.place / f"kept-{inode}"
        there = kept if kept.exists() else live
        if there is not None and keeps_content():
            return there.read_bytes()
        return synced.read_bytes() if synced.exists() else b""
