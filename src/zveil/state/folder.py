"""The folder of a state: its lock, its key, and what a killed save left behind."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from zveil.keys import read_key, write_key
from zveil.state.error import RESET, StateError

if sys.platform != "win32":
    import fcntl
else:
    import msvcrt

LOCK, KEY, CHAIN, STATE = "lock", "key", "chain", "state"

# How long to wait for a lock: the process that a killed run had started to save may still hold it.
_PATIENCE_S = 5.0
_STEP_S = 0.05


def open_folder(path: str | os.PathLike[str]) -> Path:
    """Make the folder of a state, for its owner alone, if it is not there.

    Raises
    ------
    StateError
        If it cannot be made or used.
    """
    folder = Path(path)
    made = [each for each in folder.absolute().parents if not each.exists()]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StateError(f"{folder}: {(error.strerror or '').lower()}") from None
    # Its name too must outlast a power cut; a run that made it may have been killed before this.
    for each in (folder.absolute(), *made):
        sync_folder(each.parent)
    return folder


class Lock:
    """The lock of a folder, held until `close`.

    Raises
    ------
    StateError
        If somebody else holds it, for longer than a save takes.
    """

    def __init__(self, folder: Path, patience_s: float = _PATIENCE_S) -> None:
        self._path = folder / LOCK
        try:
            self.descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StateError(f"{self._path}: {(error.strerror or '').lower()}") from None
        ends = time.monotonic() + patience_s
        while not _lock(self.descriptor):
            if time.monotonic() >= ends:
                holder = self._holder()
                os.close(self.descriptor)
                raise StateError(
                    f"{folder}: is in use by {holder}; end that first, or give this run a state of "
                    "its own"
                )
            time.sleep(_STEP_S)
        # Only so that others can name it: on a full disk they cannot.
        with contextlib.suppress(OSError):
            os.ftruncate(self.descriptor, 0)
            os.lseek(self.descriptor, 0, os.SEEK_SET)
            os.write(self.descriptor, f"{os.getpid()}\n".encode())

    def _holder(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            return f"process {int(self._path.read_text())}"
        return "another process"

    def close(self) -> None:
        """Let go of it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_leftovers(folder: Path) -> None:
    """Remove what was begun and not ended by a killed process; only under the lock."""
    for name in (STATE, KEY, CHAIN):
        for path in folder.glob(f".{name}.*"):
            with contextlib.suppress(OSError):
                path.unlink()


def _make_key(path: Path, *, chain: bool) -> None:
    """Make a key that is there whole or not at all, and outlasts a power cut."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_key(beside, chain=chain)
        descriptor = os.open(beside, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        beside.rename(path)
    except OSError as error:
        raise StateError(f"{path}: {(error.strerror or '').lower()}") from None
    sync_folder(path.parent)


def own_key(folder: Path, *, may_make: bool) -> bytes:
    """Give the folder's own key, which is made if there is none and that may be.

    Raises
    ------
    StateError
        If there is none, or it cannot be used.
    """
    path = folder / KEY
    if not path.exists() and may_make:
        _make_key(path, chain=False)
    try:
        return read_key(path)
    except FileNotFoundError:
        raise StateError(
            f"{path}: is missing, and the state cannot be read without it; put it back, or give "
            f"the --key-file that was used, or {RESET}"
        ) from None
    except OSError as error:
        raise StateError(f"{path}: {(error.strerror or '').lower()}") from None
    except ValueError as error:
        raise StateError(str(error)) from None


def own_chain(folder: Path) -> Path:
    """Give the folder's own chain of keys, which is made if there is none."""
    path = folder / CHAIN
    if not path.exists():
        _make_key(path, chain=True)
    return path


def sync_folder(folder: Path) -> None:
    """See to it that the names in a folder outlast a power cut, where the system can."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
