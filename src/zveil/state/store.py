"""The store of a state: saved as a whole, now and then, and found again."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from zveil import __version__
from zveil._native import EventIds, Meter, Saving, SnapshotError, load_state, read_note, save_state
from zveil._native import Gate as NativeGate
from zveil.gate import Gate
from zveil.keys import derive_key
from zveil.policy import Policy
from zveil.policy.changes import Change, changes
from zveil.policy.sentences import explain
from zveil.state.error import RESET, StateError
from zveil.state.folder import KEY, STATE, Lock, open_folder, own_key, remove_leftovers

FORMAT = 1
"""Of the note; a state with another one is not gone on with."""

EVERY_S = 10.0
"""Seconds between two saves, where nothing is said."""

Part: TypeAlias = NativeGate | EventIds | Meter


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A state that was found."""

    note: Mapping[str, Any]
    """What was given to `Store.save`."""
    parts: Sequence[Part]
    """In the order in which they were given; gates count nanoseconds."""
    at: float
    """When it was saved, in seconds since 1970."""
    changes: Sequence[Change] = field(default_factory=list)
    """What becomes of it under a policy that has changed since; all is kept where none has."""
    meaning: Mapping[str, Any]
    """What the policy meant under which it was saved."""
    policy: Policy
    """What holds from now on."""

    def gates_into(self, gates: Sequence[Gate]) -> None:
        """Let gates, one for each attribute of the policy, become those that were saved.

        What may change while a state is kept is as these gates were told: z, lateness, the future,
        memory, noise.
        """
        most = self.policy.attributes_part
        found = [part for part in self.parts if isinstance(part, NativeGate)]
        if len(found) != len(gates):
            raise StateError(f"the state is of {len(found)} attributes, not of {len(gates)}")
        for gate, saved in zip(gates, found, strict=True):
            told = gate._settings()
            gate._exchange(saved)
            if "hold" in self.meaning:
                # It may have been closed, and what it knows by heart be of that.
                gate.close()
            gate._resettle(
                z=told["z"],
                lateness_ns=told["lateness_ns"],
                max_future_ns=told["max_future_ns"],
                memory_limit=told["memory_limit"],
                noise=told["noise"],
                noise_period_ns=told["noise_period_ns"],
            )
            if most is not None:
                gate._limit_attributes(most)

    @property
    def ids(self) -> EventIds | None:
        """The ids of events seen lately, if they were saved."""
        return next((part for part in self.parts if isinstance(part, EventIds)), None)

    def meter_into(self, meter: Meter, gates: Sequence[Gate], *, is_whole: bool) -> str | None:
        """Let a meter become the one that was saved; why it measures nothing for now, if so.

        Parameters
        ----------
        meter
            As it is wanted from now on: its lateness and memory hold.
        gates
            As they were saved, whose clock says which periods it has missed.
        is_whole
            Whether nothing has left since it was saved that it is not going to be shown.
        """
        saved = next((part for part in self.parts if isinstance(part, Meter)), None)
        if saved is not None:
            _, lateness_ns, memory_limit = meter._settings()
            meter._exchange(saved)
            meter._resettle(lateness_ns=lateness_ns, memory_limit=memory_limit)
        meter.follow(gates)
        if saved is not None and is_whole:
            return None
        meter.give_up()
        return (
            "what left before is not known to the meter: it measures nothing until pseudonyms "
            "change"
        )


class Store:
    """A folder with a state in it: locked, and saved to now and then.

    A save is of one moment. It is written beside the stream, and replaces the one before only when
    it is whole and on the disk. What fails is told, and tried again.

    Parameters
    ----------
    folder
        Made if it is not there.
    key
        32 secret bytes that the state's key is derived from; by default the folder has one of its
        own.
    policy
        What holds from now on.
    interval
        Seconds between two saves.
    report
        Is told about a save that fails, the first time.
    reset
        Begin anew; nothing is deleted before `forget`.

    Raises
    ------
    StateError
        If the folder cannot be used, or somebody else uses it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        key: bytes | None = None,
        policy: Policy,
        interval: float = EVERY_S,
        report: Callable[[str], None] = lambda _: None,
        reset: bool = False,
    ) -> None:
        self.folder = open_folder(folder)
        self.path = self.folder / STATE
        self.policy = policy
        self.interval = interval
        self.failures = 0
        """Saves that failed."""
        self.saves = 0
        """Saves that are on the disk."""
        self.last_failed = False
        """Whether the newest save failed."""
        self._report = report
        self._reset = reset
        self._lock = Lock(self.folder)
        try:
            remove_leftovers(self.folder)
            self._has_own_key = key is None
            may_make = reset or not self.path.exists()
            self._root = own_key(self.folder, may_make=may_make) if key is None else key
            self._key = derive_key(self._root, "state")
            if not may_make:
                # Before anything is made that only another policy needs.
                with self._told():
                    self._judge(_opened(read_note(self.path, self._key), str(self.path)))
        except BaseException:
            self._lock.close()
            raise
        self._saving: Saving | None = None
        self._then: Callable[[], None] | None = None
        self._saved_at: float | None = None
        self._saving_at = 0.0
        self._due = time.monotonic() + interval

    def secret(self, label: str) -> bytes:
        """Derive 32 secret bytes for another use."""
        return derive_key(self._root, label)

    def load(self, *, threads: int = 1) -> Saved | None:
        """Give the state that is there; None if there is none, or it is to begin anew.

        Raises
        ------
        StateError
            If there is one that cannot be gone on with: why, and what to do.
        """
        if self._reset or not self.path.exists():
            return None
        with self._told():
            note, parts = load_state(self.path, self._key, threads=threads)
        envelope = _opened(note, str(self.path))
        meaning, judged = envelope["policy"]["meaning"], self._judge(envelope)
        self._saved_at = envelope["saved"]
        return Saved(
            note=envelope["note"],
            parts=parts,
            at=envelope["saved"],
            changes=judged if envelope["policy"]["fingerprint"] != self.policy.fingerprint else [],
            meaning=meaning,
            policy=self.policy,
        )

    def _judge(self, envelope: Mapping[str, Any]) -> list[Change]:
        """Say what becomes of a state under the present policy, or refuse it."""
        meaning = envelope["policy"]["meaning"]
        judged = changes(meaning, self.policy)
        for change in judged:
            if change.fate != "kept":
                raise StateError(
                    f"{self.path}: was saved under the policy {envelope['policy']['fingerprint']}, "
                    f"and does not fit this one: '{change.attribute}': {' '.join(change.why)} Give "
                    f"this run a state of its own, or {RESET}"
                )
        user = self.policy.meaning()["user"]
        for key in ("rotate_ns", "keep_keys"):
            if meaning["user"].get(key) != user.get(key):
                raise StateError(
                    f"{self.path}: how the keys of pseudonyms change is not as it was when the "
                    f"state was saved; state rotate and keep_keys as before, or {RESET}"
                )
        return judged

    def forget(self) -> None:
        """Delete the state that is there; the key stays."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise StateError(f"{self.path}: {(error.strerror or '').lower()}") from None

    @property
    def left(self) -> float:
        """Seconds until the next save is due; less than 0 if it is past that."""
        return self._due - time.monotonic()

    def due(self) -> bool:
        """Whether it is time to save, and no save is under way."""
        if time.monotonic() < self._due:
            return False
        self.poll()
        return self._saving is None

    @property
    def is_saving(self) -> bool:
        """Whether a save is under way, as far as `poll` has seen."""
        return self._saving is not None

    @property
    def age(self) -> float | None:
        """Seconds since the newest state on the disk was saved; None if there is none."""
        return None if self._saved_at is None else max(time.time() - self._saved_at, 0.0)

    def save(
        self,
        note: Mapping[str, Any],
        parts: Sequence[Part],
        *,
        sync: Sequence[int] = (),
        wait: bool = False,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Save a note and the parts as they are now.

        Parameters
        ----------
        note
            What JSON can hold.
        parts
            In the order in which they are found again.
        sync
            Descriptors of files that must be on the disk before the state is.
        wait
            Until it is on the disk, or has failed; else only until it is begun.
        then
            Is called once it is on the disk.
        """
        self.wait()
        self._due = time.monotonic() + self.interval
        self._saving_at = time.time()
        envelope = json.dumps(self._envelope(note), separators=(",", ":")).encode()
        try:
            saving = save_state(
                self.path,
                self._key,
                envelope,
                parts,
                sync=sync,
                keep=[self._lock.descriptor],
                wait=wait,
            )
        except (OSError, ValueError) as error:
            self._fail(error)
            return
        self._saving, self._then = saving, then
        if wait or not saving.is_beside:
            self.wait()

    def poll(self) -> None:
        """See whether the save under way is over, and tell if it failed."""
        self._end(wait=False)

    def wait(self) -> None:
        """Wait for the save under way."""
        self._end(wait=True)

    def close(self) -> None:
        """Wait for the save under way, and let go of the folder."""
        try:
            self.wait()
        finally:
            self._lock.close()

    def _end(self, *, wait: bool) -> None:
        saving = self._saving
        if saving is None:
            return
        try:
            if wait:
                saving.wait()
            elif not saving.is_over():
                return
        except OSError as error:
            self._saving = None
            self._fail(error)
            return
        self._saving = None
        self.last_failed = False
        self.saves += 1
        self._saved_at = self._saving_at
        if self._then is not None:
            self._then()

    def _fail(self, error: Exception) -> None:
        self.failures += 1
        self.last_failed = True
        if self.failures == 1:
            words = getattr(error, "strerror", None) or str(error)
            kept = "the one before is kept" if self._saved_at else "there is none before"
            self._report(
                f"warning: the state could not be saved to {self.path}: {words}; {kept}, and it is "
                f"tried again in {self.interval:g} s"
            )

    def _envelope(self, note: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "zveil": __version__,
            "saved": self._saving_at,
            "policy": self._told_policy,
            "note": note,
        }

    @cached_property
    def _told_policy(self) -> dict[str, Any]:
        return {
            "fingerprint": self.policy.fingerprint,
            "meaning": self.policy.meaning(),
            "words": [[each.about, list(each.sentences)] for each in explain(self.policy)],
        }

    @contextlib.contextmanager
    def _told(self) -> Any:
        """Say which file it is, and what to do."""
        hint = ""
        if not self._has_own_key and (self.folder / KEY).exists():
            hint = f"; it may be of the key in {self.folder / KEY}: leave --key-file out"
        elif self._has_own_key:
            hint = "; if it was made with a --key-file, give that"
        try:
            yield
        except SnapshotError as error:
            raise StateError(f"{self.path}: {_words(error, hint)}, or {RESET}") from None
        except OSError as error:
            raise StateError(f"{self.path}: {(error.strerror or str(error)).lower()}") from None


def read_envelope(path: str | os.PathLike[str], key: bytes) -> Mapping[str, Any]:
    """Read what a state says about itself, and none of its parts.

    Raises
    ------
    StateError
        If it cannot be read, or is of another version or key.
    """
    try:
        return _opened(read_note(path, derive_key(key, "state")), str(path))
    except SnapshotError as error:
        raise StateError(f"{path}: {_words(error, '')}") from None
    except OSError as error:
        raise StateError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _opened(note: bytes, path: str) -> dict[str, Any]:
    try:
        envelope: dict[str, Any] = json.loads(note)
    except ValueError:
        raise StateError(f"{path}: is no state of a stream") from None
    if envelope.get("format") != FORMAT:
        raise StateError(
            f"{path}: was saved by zveil {envelope.get('zveil')}, as format "
            f"{envelope.get('format')}, and this version reads format {FORMAT}; go on with the "
            f"version that wrote it, or {RESET}"
        )
    return envelope


def _words(error: SnapshotError, of_key: str) -> str:
    words = str(error).removeprefix("snapshot: ").replace("the file ", "")
    what, _, _ = words.partition(";")
    return what + (of_key if "another key" in what else "")
