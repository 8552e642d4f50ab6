"""Users erased from a saved state, as if they had not been seen."""

from __future__ import annotations

import os
from collections.abc import Sequence

from zveil._native import Gate as NativeGate
from zveil._native import Meter, SnapshotError, load_state, save_state
from zveil.keys import derive_key
from zveil.state.error import StateError
from zveil.state.folder import STATE, Lock, open_folder, remove_leftovers


def erase(folder: str | os.PathLike[str], key: bytes, users: Sequence[bytes]) -> int:
    """Erase users from every gate of a saved state, and save it again.

    A meter in it lets go of what it measures until pseudonyms change: nobody can be found there.

    Parameters
    ----------
    folder
        Of the state; nobody else may be using it.
    key
        The run's key, or the folder's own.
    users
        Ids, as UTF-8.

    Returns
    -------
    How many entries went, over all attributes.

    Raises
    ------
    StateError
        If it is in use, or is of another key or version, cut off or altered.
    OSError
        If it cannot be read or written; it is as it was then.
    """
    place = open_folder(folder)
    lock = Lock(place)
    try:
        remove_leftovers(place)
        path, secret = place / STATE, derive_key(key, "state")
        try:
            note, parts = load_state(path, secret)
        except SnapshotError as error:
            words = str(error).removeprefix("snapshot: ").replace("the file ", "")
            raise StateError(f"{path}: {words.partition(';')[0]}") from None
        gates = [part for part in parts if isinstance(part, NativeGate)]
        entries = sum(gate.forget(user) for gate in gates for user in users)
        for part in parts:
            if isinstance(part, Meter):
                part.give_up()
        # Also where none was found: what was altered in memory may stand on the disk still.
        save_state(path, secret, note, parts, keep=[lock.descriptor], wait=True)
        return entries
    finally:
        lock.close()
