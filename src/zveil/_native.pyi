"""The native module: `zveil.Gate` inherits from its gate and adds what people type."""

import builtins
from collections.abc import Sequence
from os import PathLike
from typing import Any, Self, TypeAlias, TypedDict, final, type_check_only

from typing_extensions import disjoint_base

from zveil.times import Instant

__all__ = [
    "MOST_LEVELS",
    "EventIds",
    "Gate",
    "KafkaClient",
    "KafkaReader",
    "KafkaWriter",
    "Keyring",
    "Ladder",
    "Left",
    "MessageBatch",
    "Meter",
    "NameFilter",
    "NameList",
    "Names",
    "ParquetWay",
    "Saved",
    "Saving",
    "SnapshotError",
    "Swap",
    "TextWay",
    "Witness",
    "__version__",
    "field_path",
    "load_state",
    "open_bytes",
    "open_snapshot",
    "parse_time",
    "parse_times",
    "problem_sentence",
    "read_note",
    "read_toml",
    "save_state",
    "scan_csv",
    "scan_json",
    "spell",
]

__version__: str
MOST_LEVELS: int

class SnapshotError(ValueError):
    """A snapshot that cannot be used: foreign, of another version or key, cut off or altered."""

@disjoint_base
class Gate:
    def __new__(
        cls,
        z: int,
        window_ns: int,
        *,
        z_max: int,
        lateness_ns: int,
        max_future_ns: int | None,
        unit_ns: int,
        rule: str,
        fixed_level: int | None,
        memory_limit: int | None,
        threads: int,
        noise: int,
        noise_period_ns: int | None,
        key: bytes | None,
    ) -> Self: ...
    def observe(
        self,
        t: Instant,
        user: str | bytes | int | float | None,
        attribute: str | bytes | int | float | bool | None,
        /,
    ) -> bool:
        """Decide one observation, now: True if it is released.

        A missing user, attribute or time is veiled. The same user may come as ``7``, ``"7"`` or
        ``b"7"``; values of an attribute keep their type.
        """

    def observe_levels(
        self,
        t: Instant,
        user: str | bytes | int | float | None,
        levels: list[Any],
        /,
    ) -> int | None:
        """Decide one observation that can be told more or less finely.

        ``levels`` goes from the coarsest to the finest, such as
        ``["news", "example.org", "www.example.org"]``; the answer is the number of the level to
        release (0 is the coarsest), or None. A level counts the users whose observation was veiled
        at every finer level. With ``rule="fixed"`` only one level is looked at; with
        ``rule="authors"`` every level counts everyone.
        """

    def threshold(self, t: Instant, attribute: str | bytes | int | float | bool | None, /) -> int:
        """How many users an attribute needs at time `t`: z, and what noise adds for it.

        It is secret: whoever knows it knows what the noise was to hide.
        """

    def level_thresholds(self, t: Instant, levels: list[Any], /) -> list[int]:
        """Tell how many users each level of an observation needs, coarsest first."""

    def passes(self, t: Instant, attribute: str | bytes | int | float | bool | None, /) -> bool:
        """Whether an attribute has the users it needs at time `t`, without counting anyone.

        The window ends there, or at the attribute's clock if that is later.
        """

    def levels_pass(self, t: Instant, levels: list[Any], /) -> list[bool]:
        """Tell the same of each level of an observation, coarsest first."""

    def _observe_arrays(
        self, times: Any, users: Any, attributes: Any, unit_ns: int | None
    ) -> bytearray:
        """Decide Arrow arrays of one length: one byte for each row, 1 where released."""

    def _observe_level_arrays(
        self, times: Any, users: Any, levels: list[Any], unit_ns: int | None
    ) -> bytearray:
        """Decide Arrow arrays with levels: one signed byte for each row, -1 where veiled."""

    def forget(self, user: str | bytes | int | float) -> int:
        """Erase one user from every attribute; how many they were in.

        In each of these attributes the other users seen last remain, z_max - 1 at the most. An
        attribute that loses someone may veil what it would have released, never the reverse.
        """

    def _set_z(self, z: int) -> None:
        """Set z anew, on every attribute at once."""

    def close(self) -> None:
        """Release nothing from here on, and count everyone as before; until z is set anew.

        A snapshot does not know of it: a gate that is restored is open.
        """

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, and z not set since."""

    def _clock(self) -> int | None:
        """Tell the largest time taken, in nanoseconds since 1970."""

    def _count_users(self) -> None:
        """Count the users of all observations from here on, decided or not; about."""

    def _census(self) -> bytes | None:
        """Give what that count stands on: 4 KiB that no user can be read from."""

    def _resume_census(self, registers: bytes) -> None:
        """Go on with a count of users of a gate with the same key."""

    def _users(self) -> float | None:
        """Tell how many users there were since `_count_users`, to a few percent."""

    def _crowds(self, least: int) -> tuple[bytes, bytes, bytes]:
        """Give the attributes with at least so many users in the window up to the gate's clock.

        As 64-bit numbers: what tells each apart, how many users it has, z_max at the most, and the
        nanoseconds that they were counted in: the window, or less where no more are remembered.
        Takes a pass over the state.
        """

    @property
    def key(self) -> bytes:
        """The 32 secret bytes; needed to restore a snapshot."""

    def _settings(self) -> dict[str, Any]:
        """Give what the gate was told, in nanoseconds and bytes."""

    def _counts(self, entries: bool) -> dict[str, Any]:
        """Count what `zveil.Gate.stats` shows."""

    def _resettle(
        self,
        *,
        z: int,
        lateness_ns: int,
        max_future_ns: int | None,
        memory_limit: int | None,
        noise: int,
        noise_period_ns: int | None,
    ) -> None:
        """Go on under other settings, with all that was seen."""

    def _limit_attributes(self, most: int) -> None:
        """Remember at most so many attributes at a time, from now on."""

    def _save(self, path: str | PathLike[str], note: bytes) -> None:
        """Write a snapshot with a note beside the state."""

    def _to_bytes(self, note: bytes) -> bytes:
        """Give what `_save` writes."""

    def _adopt(self, saved: Saved) -> None:
        """Become the gate that was saved."""

    def _exchange(self, other: Gate) -> None:
        """Become another gate, such as one of `load_state`; that becomes what this one was."""

@final
class Saved:
    """A gate read from a snapshot, waiting to be adopted."""

    @property
    def note(self) -> bytes: ...
    @property
    def max_future_ns(self) -> int | None: ...

def open_snapshot(path: str | PathLike[str], key: bytes, threads: int) -> Saved:
    """Read a snapshot and check all of it."""

def open_bytes(bytes: bytes, key: bytes, threads: int) -> Saved:  # noqa: A002  # as the module has it
    """Read what `Gate._to_bytes` gave, as `open_snapshot` does."""

@final
class EventIds:
    """The ids of events seen lately, so that an event that is sent twice is decided once.

    An id is remembered while the stream's clock is not past the clock that it came at by more than
    the window. The clock is the largest time so far that is not from the future. At most so many
    are held; past that the oldest go, and are counted as forgotten. Only keyed hashes are kept.

    ``7`` and ``"7"`` are one id. An event without an id is always fresh.
    """

    def __new__(
        cls, *, key: bytes, window_ns: int, most: int, max_future_ns: int | None = ...
    ) -> Self: ...
    def fresh(self, times: Any, ids: Any, time_unit_ns: int | None) -> tuple[bytes, int]:
        """Take the next events of a stream, as Arrow arrays: which to take, and how many not.

        One bit for each row, as Arrow has them: 0 where the id came before. Numbers are times in
        units of so many nanoseconds, 1 by default.
        """

    def __len__(self) -> int: ...
    @property
    def repeated(self) -> int:
        """Events so far whose id came before."""

    @property
    def forgotten(self) -> int:
        """Ids that had to go before their time."""

    @property
    def memory(self) -> int:
        """Bytes that it takes."""

@final
class Saving:
    """A state that is being saved."""

    def is_over(self) -> bool:
        """Whether it is done. Raises OSError, once, if it failed: what stood there still does."""

    def wait(self) -> None:
        """Wait until it is over. Raises OSError, once, if it failed."""

    @property
    def pause_ns(self) -> int:
        """How long the caller was held up."""

    @property
    def is_beside(self) -> bool:
        """Whether a process beside this one saves; where there can be none, the caller waited."""

def save_state(
    path: str | PathLike[str],
    key: bytes,
    note: bytes,
    parts: Sequence[Gate | EventIds | Meter],
    *,
    sync: Sequence[int] = ...,
    keep: Sequence[int] = ...,
    wait: bool = False,
) -> Saving:
    """Save parts and a note as they are at this moment, in one file that is replaced as a whole.

    A process beside this one writes it, with a copy of the memory as it is now; with `wait`, or
    where there can be none, the caller does. The descriptors of `sync` are synced first; those of
    `keep` (a lock) stay open over there as long as it works, all others are closed.

    Raises ValueError for a note that is too long (16 MiB), and with `wait` OSError if it failed;
    otherwise `Saving` tells that.
    """

def load_state(
    path: str | PathLike[str], key: bytes, *, threads: int = 1
) -> tuple[bytes, list[Gate | EventIds | Meter]]:
    """Give the note and the parts of a saved state, in their order.

    Times of these gates are in nanoseconds; `Gate._exchange` brings one to where others are. With
    the number of threads that it was saved with, a gate goes on exactly as it would have; with
    another one too, unless its memory limit is reached.

    Raises SnapshotError if the file is foreign, of another version or key, cut off or altered;
    OSError if it cannot be read.
    """

def read_note(path: str | PathLike[str], key: bytes) -> bytes:
    """Give the note of a saved state, and check no more than that."""

@final
class Swap:
    """Values of one attribute that leave as others, beside its gate.

    Of what the gate releases, a share leaves under another of the values released lately, if one of
    them passes at that moment.
    """

    def __new__(cls, gate: Gate, probability: float) -> Self: ...
    @property
    def swapped(self) -> int:
        """Observations that left under another value so far."""

    def observe_arrays(
        self, times: Any, users: Any, levels: list[Any], is_plain: bool, unit_ns: int | None
    ) -> tuple[bytearray, list[int], list[Any]]:
        """Decide Arrow arrays: one signed byte for each row, -1 where veiled.

        Beside it the rows that leave under another value, and that value of each; of levels its
        text. `is_plain` is for values that are no levels.
        """

    def state(self) -> bytes:
        """Give what decides which values leave next. Values that have left are in it: seal it."""

    def resume(self, state: bytes) -> None:
        """Go on from a state. Raises ValueError if it is none."""

    def draw(
        self,
        t: Instant,
        user: str | bytes | int | float | None,
        levels: list[Any],
        is_plain: bool,
        /,
    ) -> tuple[bool, int, int, int] | None:
        """Tell what is drawn for an observation: if it is swapped, and from where.

        The place that is looked at first, the step to the next, and the place that its own value
        takes once all are taken.

        It is secret: whoever knows it knows which records are true.
        """

@type_check_only
class _Reading(TypedDict):
    """The fields of `zveil.meter.Reading`."""

    start_ns: int | None
    users: int
    classes: int
    sizes: dict[int, int]
    pairs: int
    late: int
    is_over: bool
    is_stopped: bool

@disjoint_base
class Meter:
    """How many visible users look the same; `zveil.Meter` adds what people type.

    The key has 32 bytes. Periods are counted from 1970 in UTC; without a length there is one,
    without an end.
    """

    def __new__(
        cls,
        key: bytes,
        *,
        rotate_ns: int | None = None,
        lateness_ns: int = 0,
        memory_limit: int | None = None,
    ) -> Self: ...
    def _add_arrays(
        self,
        times: Any,
        users: Any,
        fields: Sequence[tuple[str, Any, Any]],
        unit_ns: int,
    ) -> None:
        """Take in Arrow arrays of one length: for each field its name, its values, what left.

        That is an Arrow array too, of a byte for each row, 0 where the value was veiled; or None if
        all were released.
        """

    def advance(self, time_ns: int) -> None:
        """Move the clock on, where nothing was released but time has passed."""

    def follow(self, gates: Sequence[Gate]) -> None:
        """Move the clock on to that of the gates."""

    def _present(self) -> _Reading:
        """Show the period that the clock is in."""

    def _periods(self) -> list[_Reading]:
        """Show all periods with something released, in their order."""

    @property
    def period(self) -> int:
        """The number of the present period: floor(clock / length)."""

    def counts(self, k: int) -> tuple[int, int] | None:
        """Count the visible users of the present period, and those whose k is at least this.

        At once, for k up to 4,096. None if measuring was stopped.
        """

    def before(self, k: int) -> tuple[int, int] | None:
        """Count the same of the period before, as it stands."""

    @property
    def bytes(self) -> int:
        """Memory of what is measured."""

    @property
    def key(self) -> builtins.bytes:
        """The 32 secret bytes."""

    def save(self) -> builtins.bytes:
        """Give all that it holds, but for the key: keyed hashes and counts."""

    def _load(self, saved: builtins.bytes) -> None:
        """Become the meter that was saved, if it was of the same key."""

    def _exchange(self, other: Meter) -> None:
        """Swap all that two meters are."""

    def _settings(self) -> tuple[int | None, int, int | None]:
        """Give the length of a period, the lateness and the limit on memory."""

    def _resettle(self, *, lateness_ns: int, memory_limit: int | None) -> None:
        """Go on with a lateness of no more than before, and another limit."""

    def give_up(self) -> None:
        """Let go of what is measured: periods that are not over say that they were stopped.

        One user cannot be erased: there is nothing to look up by what they have.
        """

@type_check_only
class _Tally(TypedDict):
    """What a stream of text came to so far."""

    lines: int
    records: int
    """Good ones: each was decided."""
    leaving: list[int]
    """Records with at least one value released, for each set of gates."""
    levels: list[list[int]]
    """Values released at each level, coarsest first, for each gate; none for one without levels."""
    swapped: list[int]
    """Values that left as others, for each attribute; empty where none may."""
    bad: dict[str, int]
    """Bad lines by kind, every kind."""
    passed: int
    """Lines of a log that are no records of the kind that is read."""
    filtered: list[int]
    """Values that the filter of each attribute took out; empty without filters."""
    repeated: int
    """Records whose id came before: neither decided nor written, and not among `records`."""

_Buffers: TypeAlias = tuple[int, bytes, bytes, bytes]
"""A column for Arrow: number of values, bits of those that are there, 64-bit ends, bytes."""

@final
class Ladder:
    """The steps from a value to its coarser labels, as `zveil.hierarchy` checks and names them."""

    def __new__(cls, steps: Sequence[tuple[Any, ...]]) -> Self: ...
    @property
    def levels(self) -> int:
        """How many levels a gate is given; the value itself is one, an exact position is not."""

    @property
    def takes_position(self) -> bool:
        """Whether it is of a latitude and a longitude."""

    def climb(self, values: Any) -> list[_Buffers]:
        """Give the labels of a column, finest first; none of them is the value itself."""

    def climb_position(self, latitudes: Any, longitudes: Any) -> list[_Buffers]:
        """Give the labels of two columns of degrees, finest first."""

def spell(values: Any) -> _Buffers:
    """Give the values of a column as text: numbers as they are printed, text as it is."""

@final
class Keyring:
    """The keys that user ids leave under, as pseudonyms: one, or one for each period of time.

    Pseudonyms are ``"base32"``, ``"hex"``, ``"uuid"`` or ``"crypto-pan"``. An event at t is in the
    period floor(t / length), counted from 1970 in UTC.
    """

    @staticmethod
    def fixed(pseudonym: str, key: bytes) -> Keyring:
        """Use one key of 32 bytes for all time."""

    @staticmethod
    def kept(pseudonym: str, key: bytes, period_ns: int) -> Keyring:
        """Make the key of each period from one that stays."""

    @staticmethod
    def chain(
        pseudonym: str,
        path: str | PathLike[str] | None,
        *,
        period_ns: int,
        lateness_ns: int,
        max_future_ns: int | None,
    ) -> Keyring:
        """Make the key of each period from the one before, which goes when it is not needed.

        The chain is that of a file, which moves on with it; or a new one that nobody keeps. Raises
        ValueError if the file cannot be used, OSError if reading or writing it fails.
        """

    @property
    def rotates(self) -> bool:
        """Whether the key goes by the time of a record."""

    def name(self, times: Any, unit_ns: int | None, leaves: bytes | None) -> Names:
        """Find the keys of the next records of a stream, by their times.

        `leaves` has a byte for each record, not 0 if it leaves; by default all do. If the key does
        not rotate, times may be None. A chain that has moved on is in its file when this returns.
        Raises ValueError if what leaves is from before the file's chain.
        """

    def state(self) -> bytes:
        """Give what decides about the keys to come: the clock, and the period of the oldest key.

        No key is in it, except that of a chain without a file, which nobody else has: seal it.
        """

    def resume(self, state: bytes) -> None:
        """Go on from a state, under the same key or file. Raises ValueError if that cannot be."""

    def hold(self) -> None:
        """Let the file of a chain move on by `move_on` only: its older keys may be needed again."""

    def move_on(self, state: bytes | None = None) -> None:
        """Let the file of a chain move on to where a `state` was, by default the last one.

        Once that is safe on disk. Raises OSError.
        """

@final
class Names:
    """Keys found for some records."""

    @property
    def only(self) -> int | None:
        """The number of the period that all of them are in; None if there are several."""

    def pseudonyms(self, users: Any, leaves: bytes | None) -> _Buffers:
        """Make pseudonyms of a column of users: of those records that leave.

        No value where there is no key. If all records are in one period, of any users.
        """

@final
class NameList:
    """Names, each of which stands for all below it: ``example.org`` for ``www.example.org`` too.

    The text has a name a line, or a rank, a comma and a name. Raises ValueError for a list that
    cannot be used, with the line.
    """

    def __new__(cls, text: bytes) -> Self: ...
    def __len__(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Memory that it takes."""

@final
class NameFilter:
    """Which values of an attribute count: those in a list, and not in another."""

    def __new__(cls, only: NameList | None, except_: NameList | None) -> Self: ...
    def mask(self, values: Any) -> tuple[bytes, int]:
        """Tell for each value of a column whether it counts, as bits; and how many do not."""

@final
class MessageBatch:
    """Messages as they came, one behind the other, and what was told of partitions.

    Parameters
    ----------
    messages
        Partition, offset, value and key of each.
    ends
        Partitions that were read to their end, and where that is.
    errors
        What is wrong with partitions: Kafka's number of the error, and words.
    """

    def __new__(
        cls,
        messages: list[tuple[int, int, bytes | None, bytes | None]],
        *,
        ends: list[tuple[int, int]] = ...,
        errors: list[tuple[int, str]] = ...,
    ) -> MessageBatch: ...
    def __len__(self) -> int: ...
    @property
    def ends(self) -> list[tuple[int, int]]:
        """Partitions that were read to their end, and where that is."""

    @property
    def errors(self) -> list[tuple[int, str]]:
        """What is wrong with partitions: Kafka's number of the error, and words."""

    @property
    def age_s(self) -> float:
        """How long ago the first of them was there."""

    def runs(self) -> list[tuple[int, int, int]]:
        """Give a partition, and from which number to which all are of it; one run after another."""

    def first_at(self, start: int, end: int, offset: int) -> int:
        """Find the first of a run that is at an offset or behind; its end if none is."""

    def some(self, most: int) -> MessageBatch:
        """Give so many of them at the most, from all over."""

    def offset(self, number: int) -> int:
        """Give the offset of a message; raises IndexError if there is none of that number."""

    def partition(self, number: int) -> int:
        """Give its partition."""

    def key(self, number: int) -> bytes | None:
        """Give its key."""

@final
class Left:
    """What leaves of some messages. The lists are made when they are asked for."""

    @staticmethod
    def unchanged(messages: MessageBatch) -> Left:
        """Let all of them leave as they came, without keys of their own."""

    def __len__(self) -> int: ...
    @property
    def places(self) -> list[int]:
        """Which message each record is from, by its number."""

    @property
    def records(self) -> list[bytes]:
        """The records."""

    @property
    def keys(self) -> list[bytes | None]:
        """For each the first of its values that is released, as text and as it leaves."""

    @property
    def troubles(self) -> list[tuple[int, str, int]]:
        """What is wrong with bad messages: which, what kind, and at which byte, from 1."""

    @property
    def bytes_in(self) -> int:
        """Bytes of the values of all messages."""

    @property
    def bytes_out(self) -> int:
        """Bytes of all records."""

@final
class KafkaClient:
    """A client of Kafka that Python's client library has made, as librdkafka has it."""

    @staticmethod
    def load(user: str) -> None:
        """Find librdkafka, by a file that Python has loaded and that uses it.

        Raises RuntimeError if it is not there, or lacks something.
        """

    @staticmethod
    def made() -> KafkaClient | None:
        """Take the client that this thread has made last, with this module as a plugin."""

    @property
    def failed(self) -> int | None:
        """Kafka's number of why a record could not be sent; None if all could so far."""

@final
class KafkaReader:
    """Takes the messages of a consumer by the batch, without an object for each.

    All else that a consumer is told stays with it: it has to be polled for that.

    Parameters
    ----------
    client
        The consumer.
    topic
        What is read.
    headers, timestamps
        Whether they are taken too.
    """

    def __new__(
        cls, client: KafkaClient, topic: str, *, headers: bool = False, timestamps: bool = False
    ) -> KafkaReader: ...
    def attend(self, partitions: Sequence[int]) -> None:
        """Have the messages of these partitions come here; to be said before they are assigned."""

    def batch(self, wait_s: float, most: int) -> MessageBatch | None:
        """Wait for a message, and take what has come with it; None if there was none.

        Raises RuntimeError once the consumer is closed.
        """

@final
class KafkaWriter:
    """Sends records to a topic by the batch.

    Parameters
    ----------
    client
        The producer.
    topic
        Where they go.
    key
        Of each record: ``"released"``, ``"none"``, or ``"source"`` for that of its message.
    headers
        The names of those that leave, of the message; None for all of them.
    timestamps
        Whether the message's own leaves.
    """

    QUEUE_FULL: int
    """Kafka's number of having no room for more records just now."""

    def __new__(
        cls,
        client: KafkaClient,
        topic: str,
        *,
        key: str = "released",
        headers: list[str] | None = ...,
        timestamps: bool = False,
    ) -> KafkaWriter: ...
    def send(
        self, left: Left, start: int = 0, *, sent_ms: int | None = None
    ) -> tuple[int, int | None]:
        """Send records from one number on: how many were taken, and why the next was not.

        `sent_ms`: their timestamp, where the messages' own do not leave. Raises RuntimeError once
        the producer is closed.
        """

@final
class Witness:
    """Remembers by keyed hashes which partition each value came on last.

    At most so many as it has room for: a new value takes the place of an old one.
    """

    def __new__(cls) -> Self: ...
    def found(self) -> list[tuple[int, int, int]]:
        """For each attribute how often a value came on another partition, and the last two."""

@final
class ParquetWay:
    """Plain Parquet files in, decided, the bytes of one Parquet file out.

    `fields` are time, user, the attributes, then what is kept. `veiled` is for each attribute the
    text that a veiled value becomes, or None for null. `unit`: what times that are numbers are,
    found out from the first of them by default. `most_rows` are read and decided at a time.
    """

    def __new__(
        cls,
        *,
        fields: list[str],
        veiled: list[str | None],
        blank: bool,
        unit: str | None,
        stop_at_problem: bool,
        keyring: Keyring | None,
        most_rows: int,
    ) -> Self: ...
    @staticmethod
    def names(path: str | PathLike[str]) -> list[str] | None:
        """Give the names of a file's columns; None if it cannot be opened."""

    def open(self, path: str | PathLike[str], after: int) -> bool:
        """Open a file behind so many rows.

        False if it is not plain, or has other columns than the first one.
        """

    @property
    def rows(self) -> int:
        """Rows of the present file that are decided, and passed over."""

    @property
    def rows_total(self) -> int:
        """Rows of the present file."""

    @property
    def has_numbers(self) -> bool:
        """Whether times are numbers."""

    def step(self, gates: Sequence[Gate]) -> bytes | None:
        """Decide the next rows; gives what can be written by now, None behind the last row.

        Raises EOFError if the file is damaged; nothing of these rows was decided then.
        """

    @property
    def is_begun(self) -> bool:
        """Whether rows have left since `end` was last called."""

    def end(self) -> bytes:
        """End the file that is written, with its index; what leaves next begins another one."""

    def wrote(self, index: bytes) -> bool:
        """Whether an index is of the columns that leave, written as they are here."""

    @staticmethod
    def merged(indexes: list[bytes]) -> bytes:
        """Make one index of those of several pieces: what stands at the end of the whole file."""

    def tally(self) -> tuple[int, int, int, str | None]:
        """Give the records, those with something released, those left out for their time.

        And what times are, if they are numbers and that is stated or found out.
        """

    def resume(self, records: int, leaving: int, bad: int, unit: str | None) -> None:
        """Go on from what `tally` gave."""

@final
class TextWay:
    """Text in, decided, what is released out: the native way of `zveil run`.

    `fields` are time, user, so many `attributes`, then what is kept. An attribute may have a
    ladder; one of a position has the names of the two fields that it is read from. Formats are
    ``"ndjson"`` and ``"csv"`` with a delimiter of one byte; an input may also be a log
    (``"zeek"``, ``"tstat-tcp"``, ``"tstat-http"``, ``"combined"``, ``"dnsmasq"``, ``"unbound"``),
    an output ``"columns"`` or ``"nothing"``.
    `veiled` is for each attribute the text that a veiled value becomes, or None for null. Times
    leave as the beginning of their step. `flat`: JSON as Zeek writes it, where a dot belongs to its
    name and a field without a value is left out. `year`: of the first time that is written without
    one. `id_field`: what `ids` are asked about; it leaves only if it is one of `fields`.
    """

    def __new__(
        cls,
        *,
        source: str,
        source_delimiter: str,
        to: str,
        to_delimiter: str,
        fields: Sequence[str],
        attributes: int,
        veiled: Sequence[str | None],
        ladders: Sequence[Ladder | None],
        positions: Sequence[Sequence[str] | None],
        swaps: Sequence[float],
        keep_rest: bool,
        blank: bool,
        time_format: str | None,
        step_ns: int | None,
        max_line: int,
        stop_at_problem: bool,
        keyring: Keyring | None,
        threads: int,
        flat: bool = False,
        filters: Sequence[NameFilter] = ...,
        year: int | None = None,
        id_field: str | None = None,
    ) -> Self: ...
    def start_file(self, written: int | None = None) -> None:
        """Begin another file, with its own line numbers and its own header.

        `written`: when it was, in nanoseconds since 1970, now by default; that tells the year of
        times without one.
        """

    def feed(
        self,
        gates: Sequence[Gate],
        data: bytes,
        last: bool,
        *,
        ids: EventIds | None = None,
        meter: Meter | None = None,
    ) -> list[memoryview]:
        """Take the next bytes of a file; give what leaves of the records that are complete.

        One gate for each attribute, in their order; or several sets of them one behind the other,
        where the first decides what leaves and all are counted. Without any, everything leaves. A
        chain of keys that has moved on is in its file when this returns. A record whose id is among
        `ids` is counted as repeated and nothing else. What leaves is added to the meter, values as
        the output tells them under the users' pseudonyms.

        Raises LookupError with the name of a column that a header does not have exactly once, and
        the names that it has; or with what is wrong with a header that cannot be read.
        """

    def feed_columns(
        self,
        gates: Sequence[Gate],
        data: bytes,
        last: bool,
        *,
        ids: EventIds | None = None,
        meter: Meter | None = None,
    ) -> list[list[_Buffers]]:
        """Do the same where the output is columns: parts, and in each the fields.

        The bytes of the first field are 64-bit nanoseconds, those of the others text.
        """

    def begin_messages(self, columns: Sequence[str]) -> None:
        """Take messages from here on, each of which holds one record, instead of files.

        `columns` name those of CSV, whose messages have no header. Raises LookupError as `feed`.
        """

    def decide_messages(
        self,
        gates: Sequence[Gate],
        messages: MessageBatch,
        start: int,
        end: int,
        *,
        silent: bool = False,
        ids: EventIds | None = None,
        witness: Witness | None = None,
        partition: int = 0,
    ) -> Left:
        """Decide messages from one number up to another, in their order, and give what leaves.

        `silent`: nothing leaves, it is only seen. The witness is shown all values, as such of a
        partition. Raises IndexError where there are no such messages.
        """

    def key_messages(self, messages: MessageBatch, start: int, end: int) -> Left:
        """Find the key of each message: the text of its attribute, at its coarsest level.

        Nothing is decided. A message with several attributes becomes one for each that has a
        value, without the others. One without any value has no key, and stays as it is.
        """

    @property
    def fields(self) -> list[str]:
        """Names of the fields that leave; all of them once the first header was read."""

    @property
    def time_format(self) -> str | None:
        """Stated, or found out by now."""

    @property
    def is_clean(self) -> bool:
        """Whether no line was bad so far: then there is nothing to tell or to check."""

    @property
    def stopped(self) -> bool:
        """Whether a bad line has ended it."""

    @property
    def consumed(self) -> int:
        """Bytes of the present file that are done with: those of all complete records.

        What follows was not decided, and is to be given again to a way that resumes.
        """

    def state(self) -> bytes:
        """Give all that decides what becomes of the bytes behind `consumed`.

        Beside the counters it is what headers said, and where values are swapped some that have
        left: seal it.
        """

    def resume(self, state: bytes) -> None:
        """Go on from a state of a way that was made alike, before anything was fed.

        Raises ValueError if it is none, or of a way for other records.
        """

    def take_troubles(self) -> list[tuple[int, str, int]]:
        """Give the bad lines since the last call, the first thousand: line, kind, column from 1."""

    def tally(self) -> _Tally:
        """Count what there was so far."""

def field_path(name: str) -> list[str]:
    """Cut the name of a field into the members it goes through."""

def problem_sentence(name: str) -> str | None:
    """Say what is wrong with a line, for people; None for a name that is no kind."""

def parse_times(times: Any, stated: str | None, is_guessed: bool) -> tuple[str | None, bytes, int]:
    """Read a column of text as times: the format, 64-bit nanoseconds, how many are no times.

    If the format is guessed, a number that is of another unit by its size is no time.
    """

_Place: TypeAlias = tuple[int, int]
"""Line and column, both from 1."""

_Node: TypeAlias = tuple[str, _Place, Any]
"""A value: its kind ("text", "integer", "number", "boolean", "date", "list" or "table"), where it
stands, and what it is; a list has nodes, a table what `read_toml` gives."""

def read_toml(text: str) -> list[tuple[str, _Place, _Node]]:
    """Read TOML: the keys of the document in their order, each with its place and its value.

    Raises ValueError with what is wrong and its place.
    """

def scan_json(line: bytes, paths: list[list[str]]) -> list[tuple[str, bytes]]:
    """Find the values at paths of keys in one line of JSON.

    Each is its kind ("absent", "null", "text", "integer", "number", "true", "false", "object" or
    "array") and its bytes: decoded if it is text, as they stand otherwise. Raises ValueError with
    the name of what is wrong, such as "cut-off" or "duplicate-key".
    """

def scan_csv(data: bytes, delimiter: str) -> list[list[str]]:
    """Give the fields of all records, empty lines left out.

    Raises ValueError with the name of what is wrong with the first bad record.
    """

def parse_time(text: bytes, format: str) -> int:  # noqa: A002  # what it is called everywhere
    """Read a time as nanoseconds since 1970 UTC, in the format "s", "ms", "us", "ns" or "iso".

    Digits past a nanosecond are cut off towards the past. Raises ValueError ("time") if the text
    is no such time, or lies outside of the years 1677 to 2262.
    """
