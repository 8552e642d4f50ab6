"""The state of the service: saved while it runs, and found again at its next start.

What was decided between the last save and a crash is not in the state: its users do not count, and
more is veiled until they are seen again. Nothing is released that would have been veiled.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from zveil._native import EventIds, Keyring, TextWay
from zveil.gate import Gate
from zveil.meter import Meter
from zveil.policy import Policy
from zveil.serve.totals import Totals
from zveil.state.error import RESET, StateError
from zveil.state.store import Part, Store

_KIND = "service"


class Keeping:
    """Saves what the engine has, and puts back what was saved.

    Parameters
    ----------
    store
        Where to; it is closed with this.
    policy
        What holds from now on.
    threads
        Of the gates.

    Raises
    ------
    StateError
        If there is a state that cannot be gone on with.
    """

    def __init__(self, store: Store, policy: Policy, *, threads: int = 1) -> None:
        self.store = store
        self._policy = policy
        self._saved = store.load(threads=threads)
        if self._saved is not None and self._saved.note.get("kind") != _KIND:
            raise StateError(
                f"{store.path}: is the state of a run, not of a service; give this service one of "
                f"its own, or {RESET}"
            )

    @property
    def is_resumed(self) -> bool:
        """Whether there was something to go on with."""
        return self._saved is not None

    @property
    def age(self) -> float | None:
        """Seconds since the newest state on the disk was saved; None if there is none."""
        return self.store.age

    @property
    def failures(self) -> int:
        """Saves that failed."""
        return self.store.failures

    def ids(self) -> EventIds | None:
        """Give the ids of events seen lately, if they were saved and still are asked for."""
        if self._saved is None:
            return None
        was = self._saved.meaning["input"].get("id")
        return self._saved.ids if was == self._policy.meaning()["input"].get("id") else None

    def resume(
        self, gates: Sequence[Gate], way: TextWay, keyring: Keyring | None, totals: Totals
    ) -> Mapping[str, Any]:
        """Go on from what was saved; gives the note of it, empty if there is none."""
        if keyring is not None:
            keyring.hold()
        saved = self._saved
        if saved is None:
            return {}
        note = saved.note
        saved.gates_into(gates)
        # A z that was set by hand holds on, unless the policy itself says another one by now.
        for gate, (stated, was) in zip(gates, note["z"], strict=True):
            if (
                self._policy.hold is None
                and gate.z == stated
                and 1 <= was <= gate.z_max - gate.noise
            ):
                gate.z = was
        was_user, now_user = saved.meaning["user"], self._policy.meaning()["user"]
        is_same = all(
            was_user.get(key) == now_user.get(key)
            for key in ("pseudonym", "rotate_ns", "keep_keys")
        )
        if keyring is not None and note["keyring"] is not None and is_same:
            try:
                keyring.resume(unpacked(note["keyring"]))
            except ValueError as error:
                raise StateError(f"the keys of the pseudonyms: {error}") from None
        if saved.meaning["attribute"] == self._policy.meaning()["attribute"]:
            way.resume(unpacked(note["way"]))
            totals.resume(note["columns"])
        return note

    def meter_into(self, meter: Meter, gates: Sequence[Gate]) -> str | None:
        """Let a meter go on from what was saved; why it measures nothing for now, if so.

        What left between the last save and a crash was not measured.
        """
        if self._saved is None:
            return None
        is_whole = self._saved.note.get("ended", False)
        return self._saved.meter_into(meter, gates, is_whole=is_whole)

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return self.store.due()

    def save(
        self,
        gates: Sequence[Gate],
        way: TextWay,
        keyring: Keyring | None,
        totals: Totals,
        ids: EventIds | None,
        meter: Meter | None,
        more: Mapping[str, Any],
        *,
        wait: bool,
    ) -> None:
        """Save everything as it is now; nothing may be decided meanwhile.

        Raises
        ------
        OSError
            If it is waited for, and fails.
        """
        held = [gate.stats(entries=False) for gate in gates]
        stated = [each.z for each in self._policy.attributes]
        keys = None if keyring is None else keyring.state()
        note = {
            "kind": _KIND,
            "way": packed(way.state()),
            "columns": totals.state(),
            "keyring": None if keys is None else packed(keys),
            "z": [[one, gate.z] for one, gate in zip(stated, gates, strict=True)],
            "counts": {"records": way.tally()["records"] + totals.records},
            "figures": {
                "attributes": sum(each.attributes for each in held),
                "bytes": sum(each.bytes for each in held),
                "clock_ns": max((each.clock_ns or 0 for each in held), default=0) or None,
                "ids": None if ids is None else len(ids),
            },
            **more,
        }

        def move_on() -> None:
            if keyring is not None:
                keyring.move_on(keys)

        parts: list[Part] = [*gates]
        if ids is not None:
            parts.append(ids)
        if meter is not None:
            parts.append(meter)
        self.store.save(note, parts, wait=wait, then=move_on)
        if wait and self.store.last_failed:
            raise OSError("the state could not be saved")

    def close(self) -> None:
        """Let go of the folder."""
        self.store.close()


def packed(data: bytes) -> str:
    """Give bytes as text, for JSON."""
    return base64.b64encode(data).decode()


def unpacked(text: str) -> bytes:
    """Give them back."""
    return base64.b64decode(text)
