"""What keeps the state of a run: it is saved between two blocks, and found again at the start."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from zveil._native import EventIds, Keyring
from zveil.gate import Gate
from zveil.io import ByteSource, Compression, Format, Input, SinkClosed, SinkError
from zveil.meter import Meter
from zveil.policy import Policy
from zveil.run.ending import Stop
from zveil.run.gap import Gap
from zveil.run.outlet import Outlet
from zveil.run.station import Counts
from zveil.state.error import RESET, StateError
from zveil.state.position import (
    TAIL,
    InputPosition,
    Mark,
    Marker,
    Place,
    check_output,
    full_name,
    is_stream,
    left_to_read,
    refuse_mixed,
)
from zveil.state.store import Part, Saved, Store
from zveil.summary import Keeping

if TYPE_CHECKING:
    from typing import TypeAlias

    from zveil.hold.steering import Steering
    from zveil.io.columnar import BatchSource
    from zveil.io.parquet_files import ParquetSource
    from zveil.run.columns import ColumnStream
    from zveil.run.parquet import ParquetStream
    from zveil.run.text import TextStream

    Stream: TypeAlias = TextStream | ColumnStream | ParquetStream
    Source: TypeAlias = ByteSource | BatchSource | ParquetSource

_WITHOUT_STATE = "Nothing that its state stands for has changed."
# While a save is under way it is looked after so often.
_LOOK_S = 0.05


class Keeper:
    """Keeps what a run has seen, and where it stands, in a store.

    Parameters
    ----------
    store
        Where to.
    policy, inputs, outlet, gates, keyring, meter, report, stop
        Of the run.
    threads
        Of the gates.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        inputs: Sequence[Input],
        outlet: Outlet,
        gates: Sequence[Gate],
        keyring: Keyring | None,
        meter: Meter | None,
        report: Callable[[str], None],
        stop: Stop,
        *,
        threads: int = 1,
    ) -> None:
        refuse_mixed(inputs)
        self._store = store
        self._policy = policy
        self._outlet = outlet
        self._gates = list(gates)
        self._keyring = keyring
        self._meter = meter
        self._report = report
        self._stop = stop
        self._marker = Marker(store.secret("position"))
        self._position = InputPosition()
        self._is_stream = any(map(is_stream, inputs))
        self._whole: Mark | None = None
        self._is_unsaved = False
        self._is_final = False
        self._longest_pause_ms: float | None = None
        self.left = list(inputs)
        """The inputs to read."""
        self.done: int | None = None
        """How much of the first of them is decided: bytes, or rows; None if it is new."""
        self.stream: Mapping[str, Any] | None = None
        """What `TextStream.state` or `ColumnStream.state` gave; None at a fresh start."""
        self.counts = Counts()
        """What the runs before came to."""
        self.ids: EventIds | None = None
        self._steering: Steering | None = None
        self._steered: Mapping[str, Any] | None = None
        # Of the present input the beginning of a line that is not whole: it comes again.
        self._unread = 0
        self.gap: Gap | None = None
        self._before = Keeping()
        if keyring is not None:
            keyring.hold()
        saved = store.load(threads=threads)
        if saved is not None:
            self._go_on(saved, inputs)

    def steer(self, steering: Steering) -> None:
        """Save what tunes z with the rest from now on, and let it go on from what was saved."""
        self._steering = steering
        if self._steered is not None:
            steering.resume(self._steered)

    def begin(self, source: Source) -> None:
        """Take note that an input is read from now on."""
        place, name = self._position.place, source.input.path
        if self._is_stream or name is None:
            return
        if place is not None and place.mark.name != full_name(name):
            self._position.finished.append(place.mark)
            self._position.place = None

    def end(self, source: Source, done: int) -> None:
        """Take note that an input is read to its end, and all of it is decided."""
        if not self._is_stream:
            self._position.place = self._place(source, done, is_whole=True)
        self._unread = 0
        self._is_unsaved = True

    def between(self, stream: Stream, source: Source) -> None:
        """Save if it is time, after a block that is decided and written."""
        self._is_unsaved = True
        if self._store.due():
            self.save(stream, source)

    def idle(self, stream: Stream, source: Source) -> None:
        """Save what is due while nothing arrives; ends when something has."""
        store = self._store
        while self._is_unsaved or store.is_saving:
            with self._stop.waiting():
                has_come = source.wait(_LOOK_S if store.is_saving else max(store.left, 0.0))
            if has_come:
                return
            store.poll()
            if self._is_unsaved and store.due():
                self.save(stream, source)

    def save_before_rest(self, stream: Stream, source: Source) -> None:
        """Save for the last time, before a last line is decided that has no end yet.

        It may still be written: the next start reads it again, and cuts off what left of it.
        """
        if not self._is_stream:
            self.save(stream, source, wait=True)
            self._is_final = True

    def save(
        self,
        stream: Stream | None,
        source: Source | None,
        *,
        wait: bool = False,
        ends: bool = False,
    ) -> None:
        """Save everything as it is now: nothing may be decided that is not written.

        `ends` says that nothing more is going to leave.
        """
        if self._is_final:
            return
        begun = time.monotonic()
        if source is not None and stream is not None:
            self._note_place(stream, source)
        outlet = self._outlet
        sink, output = outlet.cut(), outlet.saved
        if sink is not None and outlet.is_file and outlet.path is not None:
            mark = self._marker.whole(outlet.path, int(sink["length"]))
            output = {"mark": mark.as_dict(), "sink": sink}
        elif sink is not None:
            output = {"mark": None, "name": outlet.name, "sink": sink}
        keys = None if self._keyring is None else self._keyring.state()
        counts = self.counts if stream is None else stream.counts()
        held = [gate.stats(entries=False) for gate in self._gates]
        note = {
            "input": self._position.as_dict(),
            "output": output,
            "to": outlet.to,
            "stream": None if stream is None else stream.state(),
            "keyring": None if keys is None else _text(keys),
            "counts": asdict(counts),
            "ended": ends,
            "steering": None if self._steering is None else self._steering.state(self._unread),
            "figures": {
                "attributes": sum(stats.attributes for stats in held),
                "bytes": sum(stats.bytes for stats in held),
                "clock_ns": max((stats.clock_ns or 0 for stats in held), default=0) or None,
                "ids": None if self.ids is None else len(self.ids),
            },
        }
        self._is_unsaved = False
        parts: list[Part] = [*self._gates]
        if self.ids is not None:
            parts.append(self.ids)
        if self._meter is not None:
            parts.append(self._meter)
        then = partial(self._move_on, keys)
        self._store.save(note, parts, sync=outlet.to_sync(), wait=wait, then=then)
        if not wait:
            paused = (time.monotonic() - begun) * 1e3
            self._longest_pause_ms = max(paused, self._longest_pause_ms or 0.0)

    def leave(self, stream: Stream, source: Source) -> None:
        """Take note that an input is left before its end, while it is still open."""
        self._is_unsaved = True
        if stream.is_settled:
            self._note_place(stream, source)

    def close(self, stream: Stream | None) -> None:
        """Save for the last time, if what is decided is written; what was saved before stays."""
        # Of what nobody can send again the newest state is kept, though nobody heard the last.
        is_written = stream is None or stream.is_settled
        if not self._is_unsaved:
            pass
        elif is_written or (self._is_stream and not self._outlet.is_file):
            try:
                self.save(stream, None, wait=True, ends=True)
            except (SinkError, SinkClosed):
                self._report("the state was not saved at the end: the output cannot be written")
        self._store.wait()

    @property
    def finished_bytes(self) -> int:
        """Bytes of the inputs that are not read any more, as stored."""
        place = self._position.place
        at = place.mark.size if place is not None and self.done is not None else 0
        return self._before.bytes_before - at

    @property
    def has_failed(self) -> bool:
        """Whether what was decided last is not on the disk."""
        return self._store.last_failed

    def keeping(self) -> Keeping:
        """Give the account of it."""
        gap = self.gap
        return Keeping(
            resumed=self._before.resumed,
            records_before=self._before.records_before,
            bytes_before=self._before.bytes_before,
            saves=self._store.saves,
            failed_saves=self._store.failures,
            longest_pause_ms=self._longest_pause_ms,
            age_seconds=self._store.age,
            gap_seconds=None if gap is None else gap.seconds,
            gap_event_seconds=None if gap is None else gap.event_seconds,
        )

    def _go_on(self, saved: Saved, inputs: Sequence[Input]) -> None:
        note, now, was = saved.note, self._policy.meaning(), saved.meaning
        if "input" not in note:
            raise StateError(
                f"{self._store.path}: is the state of a service, not of a run; give this run one "
                f"of its own, or {RESET}"
            )
        self._check_fields(was, now)
        position = InputPosition.of(note["input"])
        had_files = bool(position.finished or position.place)
        if had_files == self._is_stream:
            what = "files" if had_files else "a pipe"
            raise StateError(
                f"the state goes on with {what}, not with {inputs[0].name}; name the same input, "
                f"give this run a state of its own, or {RESET}"
            )
        outlet = self._outlet
        to = note["to"]
        if to is not None and outlet.to not in (None, Format(to)):
            raise StateError(f"--to: the state goes on writing {to}; leave --to out, or {RESET}")
        check_output(outlet.path, note["output"], self._marker, is_file=outlet.wants_file)
        begun = False
        if not self._is_stream:
            self.left, begun = left_to_read(inputs, position, self._marker)
            self._position = position
            place = position.place
            if begun and place is not None:
                self.done = place.done
        saved.gates_into(self._gates)
        self.ids = saved.ids
        if self._meter is not None:
            # What nobody sends again, and left after the state was saved, was not measured.
            is_whole = note["ended"] or not self._keeps_rest
            words = saved.meter_into(self._meter, self._gates, is_whole=is_whole)
            if words is not None:
                self._report(words)
        self._steered = note["steering"] if was.get("hold") == now.get("hold") else None
        if self._keyring is not None and note["keyring"] is not None:
            try:
                self._keyring.resume(_bytes(note["keyring"]))
            except ValueError as error:
                raise StateError(f"the keys of the pseudonyms: {error}; {RESET}") from None
        self.stream = note["stream"]
        self.counts = Counts(**note["counts"])
        outlet.go_on(
            None if to is None else Format(to), note["output"], keeps_rest=self._keeps_rest
        )
        self._before = Keeping(
            resumed=True,
            records_before=self.counts.records,
            bytes_before=self._bytes_before(position, inputs),
        )
        self._tell(saved)

    @property
    def _keeps_rest(self) -> bool:
        """Whether what left since the last save is kept: nobody is going to send it again."""
        return self._is_stream and self._policy.input.id is None

    def _bytes_before(self, position: InputPosition, inputs: Sequence[Input]) -> int:
        there = {full_name(each.path) for each in inputs if each.path is not None}
        marks = [*position.finished, *([position.place.mark] if position.place else [])]
        return sum(mark.size for mark in marks if mark.name in there)

    def _check_fields(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        if (was["fields"], was["rest"]) != (now["fields"], now["rest"]):
            raise StateError(
                f"{self._store.path}: the fields that leave are others under this policy, and the "
                f"output would be of two kinds; give this run a state and an output of its own, or "
                f"{RESET}"
            )
        if was["input"].get("id") != now["input"].get("id"):
            raise StateError(
                f"{self._store.path}: the ids of events (--id, or input.id of the policy) were "
                f"taken from another field, or from none; name the same, give this run a state of "
                f"its own, or {RESET}"
            )

    def _tell(self, saved: Saved) -> None:
        for change in saved.changes:
            for words in change.why:
                if words != _WITHOUT_STATE:
                    self._report(f"the policy has changed: '{change.attribute}': {words}")
        if self._is_stream:
            can_repeat = self._policy.input.id is not None
            self.gap = Gap(saved.at, self._gates, self._report, can_repeat=can_repeat)
        elif not self._outlet.wants_file:
            ago = max(time.time() - saved.at, 0.0)
            self._report(
                f"{self._outlet.name}: what left after the state was saved, {ago:.1f} s ago, "
                "leaves again; only a file (-o) can be gone on with exactly"
            )

    def _note_place(self, stream: Stream, source: Source) -> None:
        if isinstance(source, ByteSource):
            self._unread = max(source.given - stream.done(source), 0)
        if not self._is_stream and not self._is_final:
            self._position.place = self._place(source, stream.done(source), is_whole=False)

    def _place(self, source: Source, done: int, *, is_whole: bool) -> Place:
        name = full_name(source.input.path or "")
        if isinstance(source, ByteSource):
            # Where it is packed, as much as was taken in: what is decided lies somewhere before.
            is_plain = source.compression is Compression.NONE
            at = done if is_plain else source.position
            mark = self._marker.mark(name, at, source.before(at, TAIL))
        else:
            if self._whole is None or self._whole.name != name:
                self._whole = self._marker.whole(name, source.input.size)
            mark = self._whole
        return Place(mark=mark, done=done, is_whole=is_whole)

    def _move_on(self, keys: bytes | None) -> None:
        """Let keys go that are not needed again, once a state is saved that is past them."""
        if self._keyring is not None and keys is not None:
            self._keyring.move_on(keys)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
