"""A policy in sentences, for those who answer for it and read no TOML.

One function for each thing that is asked about a policy. A key that none of them knows is said as
it is written: nothing that a policy states is left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from zveil.durations import duration_ns
from zveil.policy.hold import Hold
from zveil.policy.parts import EVERYTHING, Attribute, Limits, Record, Time, User
from zveil.policy.policy import Policy
from zveil.policy.wording import bound, every, listed, quoted, span, users

_UNITS = {
    "s": "seconds since 1970",
    "ms": "milliseconds since 1970",
    "us": "microseconds since 1970",
    "ns": "nanoseconds since 1970",
    "iso": "dates and times as ISO 8601 writes them",
}
_FORMS = {
    "base32": "20 letters and digits",
    "hex": "hexadecimal digits",
    "uuid": "the form of a UUID",
    "crypto-pan": "an IP address by Crypto-PAn: addresses of one network stay in one",
}


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a policy says about one thing."""

    about: str
    """Such as ``"Who counts as a user"``."""
    sentences: tuple[str, ...]


def explain(policy: Policy) -> list[Answer]:
    """Say in sentences what a policy means.

    Examples
    --------
    >>> policy = Policy.of(time="ts", user="uid", attributes=["host"], z=20, window="1h")
    >>> for answer in explain(policy)[:2]:
    ...     print(answer.about, "...", answer.sentences[0])
    Who counts as a user ... A user is an id in the field 'uid': records with the same id are of \
one person.
    What is decided about 'host' ... A value leaves if at least 20 users showed it within 1 hour: \
the record's own user, and 19 others before.
    """
    answers = [Answer("Who counts as a user", tuple(_who(policy.user)))]
    for each in policy.attributes:
        about = f"What is decided about {quoted(each.field)}"
        answers.append(Answer(about, tuple(_decision(each, policy.hold))))
    if policy.hold is not None:
        answers.append(
            Answer("The level that is held", tuple(_hold(policy.hold, policy.rotate_ns)))
        )
    answers += [
        Answer("What leaves", tuple(_leaving(policy))),
        Answer("What never leaves", tuple(_staying(policy))),
        Answer("Times", tuple(_times(policy.time))),
        Answer("User ids that leave", tuple(_ids(policy.user, policy.rotate_ns))),
        Answer("Limits", tuple(_limits(policy))),
    ]
    return answers


def _who(user: User) -> Iterator[str]:
    yield (
        f"A user is an id in the field {quoted(user.field)}: records with the same id are of "
        "one person."
    )
    yield (
        "Somebody with two ids counts as two, and releases too early; several people behind one "
        "id count as one."
    )


def _decision(attribute: Attribute, hold: Hold | None) -> Iterator[str]:
    if attribute.fields:
        yield (
            f"It is made of the position in {listed(attribute.fields)}, which never leave "
            "themselves."
        )
    yield from _lists(attribute)
    if hold is not None:
        yield (
            f"A value leaves if z users showed it within {span(attribute.window_ns)}, the record's "
            f"own user among them. z is chosen while the stream runs, from {attribute.z:,} to "
            f"{hold.z_max:,}: as many as the level that is held needs."
        )
    elif attribute.z == 1:
        yield "z is 1: every value leaves, whoever showed it. This protects nobody."
    else:
        others = "1 other" if attribute.z == 2 else f"{attribute.z - 1:,} others"
        yield (
            f"A value leaves if at least {users(attribute.z)} showed it within "
            f"{span(attribute.window_ns)}: the record's own user, and {others} before."
        )
    yield from _noise(attribute)
    yield from _swap(attribute)
    yield from _levels(attribute)
    if attribute.veiled is None:
        yield "A value that does not leave is null where its record leaves for another reason."
    else:
        yield (
            f"A value that does not leave becomes the text {quoted(attribute.veiled)} where its "
            "record leaves for another reason."
        )
    if hold is None and attribute.most_z > attribute.z + attribute.noise:
        yield (
            f"z can be raised to {attribute.most_z - attribute.noise:,} later without losing what "
            "was counted."
        )
    known = {"field", "z", "window", "z_max", "veiled", "noise", "noise_period", "swap"}
    known |= {"hierarchy", "rule", "level", "fields", "only", "except_"}
    yield from _others(attribute, known)


def _hold(hold: Hold, rotate_ns: int | None) -> Iterator[str]:
    yield (
        f"Of the users with something released, a share of {hold.p:g} or more is to have the same "
        f"set of values released as {users(hold.k - 1).replace('user', 'other user')} or more, "
        f"over {span(rotate_ns or 0)}: as long as a pseudonym lasts."
    )
    yield (
        "z goes up at once where the measured share falls short of that, and down only when "
        "pseudonyms change. Where no z is enough, nothing more leaves until they do."
    )
    yield (
        "It is a target that is measured, and no guarantee: of the set of values, not of their "
        "times, and not of what else is known about somebody."
    )
    yield "Nothing leaves in the beginning, until one window has been seen."


def _lists(attribute: Attribute) -> Iterator[str]:
    if attribute.only is not None:
        yield (
            f"Only values in the list {quoted(attribute.only.file)}, or below a name in it, count; "
            "all others never leave."
        )
    if attribute.except_ is not None:
        yield (
            f"Values in the list {quoted(attribute.except_.file)}, or below a name in it, do not "
            "count and never leave."
        )


def _noise(attribute: Attribute) -> Iterator[str]:
    if not attribute.noise:
        return
    how = "for good"
    if attribute.noise_period is not None:
        how = f"anew {every(duration_ns(attribute.noise_period, 'noise_period'))}"
    yield (
        f"Each value needs 0 to {attribute.noise:,} users more, drawn for it under the key, {how}: "
        "never fewer, and how many nobody outside knows. This is no differential privacy."
    )


def _swap(attribute: Attribute) -> Iterator[str]:
    if not attribute.swap:
        return
    yield (
        f"About {100 * attribute.swap:.3g}% of the values that leave do so as another one, which "
        "was released shortly before and has enough users at that moment: no single record is "
        "proof. This is no differential privacy."
    )


def _levels(attribute: Attribute) -> Iterator[str]:
    hierarchy = attribute.hierarchy
    if hierarchy is None:
        return
    names = ", then ".join(hierarchy.names)
    if attribute.rule == "fixed" and attribute.level is not None:
        yield (
            f"What leaves is always one level: {hierarchy.names[attribute.level]}. It counts all "
            "who showed it, and no other level ever leaves."
        )
        return
    yield f"Of these levels the finest that enough users share leaves: {names}."
    if attribute.rule == "authors":
        yield (
            "Levels count by the authors' rule: whoever showed a fine value counts for the coarse "
            "one too, also where the fine one left. A coarse label can then point at one person: "
            "do not publish by it."
        )
    else:
        yield "For a coarser level only those count for whom nothing finer left."


def _leaving(policy: Policy) -> Iterator[str]:
    names = list(policy.names)
    yield (
        f"Of a record leave its time, its user id and {listed(names)}, each value only if it was "
        "released."
    )
    kept = [name for name in policy.record.keep if name != EVERYTHING]
    if policy.keeps_all:
        yield (
            "Every other field leaves too, as it is and undecided, whatever it holds. Nothing "
            "protects those who are told apart by it."
        )
    elif kept:
        how = "the field {}, as it is" if len(kept) == 1 else "the fields {}, as they are"
        yield (
            f"Besides {how.format(listed(kept))} and undecided: whatever stands there is seen, "
            "shared or not."
        )
    yield from _empty(policy.record)


def _empty(record: Record) -> Iterator[str]:
    if record.empty == "drop":
        yield "A record with nothing released does not leave at all."
    else:
        yield (
            "A record with nothing released leaves all the same, without values: it shows that "
            "its user was active at that time."
        )
    yield from _others(record, {"keep", "empty"})


def _staying(policy: Policy) -> Iterator[str]:
    yield "A value that fewer users share than are needed."
    if not policy.keeps_all:
        yield "Any field that is not named above, known today or not."
    if policy.user.pseudonym != "raw":
        yield f"The ids in {quoted(policy.user.field)} themselves."
    if policy.time.step_ns is not None:
        yield f"The exact times in {quoted(policy.time.field)}."
    positions = [name for each in policy.attributes for name in each.fields]
    if positions:
        yield f"The exact positions in {listed(positions)}."


def _times(time: Time) -> Iterator[str]:
    form = "what they are is found out from the first records"
    if time.format is not None:
        form = f"they are {_UNITS[time.format]}"
    yield f"Times are in the field {quoted(time.field)}; {form}."
    if time.round == "none":
        yield "They leave exactly as they came. Whoever knows when somebody did something finds it."
    else:
        yield (
            f"They leave as the beginning of their {time.round}, in UTC. Decisions go by the exact "
            "time."
        )
    if time.year is not None:
        yield f"Where times have no year, the first one is of {time.year}."
    yield from _others(time, {"field", "format", "round", "year"})


def _ids(user: User, rotate_ns: int | None) -> Iterator[str]:
    if user.pseudonym == "raw":
        yield "User ids leave as they are. Whoever knows an id sees all that was released of it."
    else:
        yield (
            f"An id leaves as a pseudonym ({_FORMS.get(user.pseudonym, user.pseudonym)}), made "
            "under a secret key. Whoever has the key can find the id by trying."
        )
        yield from _rotation(user, rotate_ns)
    yield from _others(user, {"field", "pseudonym", "rotate", "keep_keys"})


def _rotation(user: User, rotate_ns: int | None) -> Iterator[str]:
    if rotate_ns is None:
        yield (
            "A user has one pseudonym for as long as the key is the same: what was released under "
            "it can be put together."
        )
        return
    yield (
        f"It changes {every(rotate_ns)}, by the time of the record and in UTC: what was "
        "released within one such period can be put together."
    )
    if user.keep_keys:
        yield "The keys of past periods can be made again: whoever has the key can link them all."
    else:
        yield (
            "The key of a period is gone once the period and its late records are over: nobody can "
            "link past periods by a key."
        )


def _limits(policy: Policy) -> Iterator[str]:
    limits: Limits = policy.limits
    yield (
        f"A record more than {span(policy.lateness_ns)} older than the newest is late: its values "
        "are veiled, and do not count."
    )
    if limits.max_future is None:
        yield (
            "Any time is taken, also one far in the future: a single wrong one makes all that "
            "follow late."
        )
    else:
        future = span(duration_ns(limits.max_future, "max_future"))
        yield (
            f"A record more than {future} past the clock of the machine is veiled, and does not "
            "count."
        )
    memory = limits.meaning().get("memory")
    if memory is None:
        yield (
            "What was seen takes half of the machine's memory at the most; when that is full, new "
            "values are veiled."
        )
    else:
        yield (
            f"What was seen takes {bound(memory)} of memory at the most; when that is full, new "
            "values are veiled."
        )
    if limits.attributes is not None:
        yield (
            f"At most {limits.attributes:,} values are remembered at a time; when there are so "
            "many, new ones are veiled."
        )
    yield from _others(limits, {"lateness", "max_future", "memory", "attributes"})
    if policy.input.id is not None:
        longest = max(each.window_ns for each in policy.attributes)
        yield (
            f"A record whose id in the field {quoted(policy.input.id)} came within "
            f"{span(longest + policy.lateness_ns)} before is a repetition, and is left out."
        )


def _others(part: Any, known: set[str]) -> Iterator[str]:
    """Say what no sentence knows as it is written, where it is not as by default."""
    for key in dataclasses.fields(part):
        value = getattr(part, key.name)
        if key.name not in known and value != key.default:
            yield f"{key.name} is {value}."
