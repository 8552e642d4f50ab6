"""What of the gates' state a changed policy can keep, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from zveil.policy.policy import Policy
from zveil.policy.wording import bound, span, users

Fate = Literal["kept", "lost", "new", "gone"]

# What these say is about records that leave; a gate never sees it.
_OF_OUTPUT = {"time": {"round"}, "user": {"pseudonym", "rotate_ns", "keep_keys"}}
# These are judged one by one. Any other key of an attribute decides what its state means.
_JUDGED = {"field", "z", "z_max", "window_ns", "veiled", "noise", "noise_period_ns", "swap"}


@dataclass(frozen=True)
class Change:
    """What becomes of the state of one attribute."""

    attribute: str
    """The name of its field."""
    fate: Fate
    """``"kept"``; ``"lost"``: it begins anew; ``"new"``: it had none; ``"gone"``: it is no more."""
    why: tuple[str, ...]
    """Sentences, in the order of what matters."""


@dataclass(frozen=True)
class _Rule:
    """What an attribute's part of a policy's meaning says."""

    meaning: Mapping[str, Any]

    @property
    def name(self) -> str:
        parts = self.meaning["field"]
        return ".".join(part.replace("\\", "\\\\").replace(".", "\\.") for part in parts)

    @property
    def z(self) -> int:
        return int(self.meaning["z"])

    @property
    def noise(self) -> int:
        return int(self.meaning.get("noise", 0))

    @property
    def most_z(self) -> int:
        return int(self.meaning.get("z_max", self.z + self.noise))

    @property
    def window_ns(self) -> int:
        return int(self.meaning["window_ns"])


def changes(old: Policy | Mapping[str, Any], new: Policy) -> list[Change]:
    """Say for each attribute whether the state of its gate can be kept under a changed policy.

    A state is kept if all that the new decisions need is in it, and nothing that is wrong for them.
    Any other could release too early, or veil too much for no reason that a reader of the policy
    sees. The gates keep their key: without it no state is of any use.

    Parameters
    ----------
    old
        The policy that the state was made under, or what `Policy.meaning` gave of it.
    new
        The policy that is to hold from now on.

    Returns
    -------
    The attributes of the new policy in their order, then those that are gone.

    Examples
    --------
    >>> def policy(**options):
    ...     return Policy.of(time="ts", user="uid", attributes=["host"], **options)
    >>> [change] = changes(policy(z=20, window="1h"), policy(z=10, window="1h"))
    >>> change.fate, change.why
    ('kept', ('z goes from 20 to 10; the state remembers 20 users of a value.',))
    >>> [change] = changes(policy(z=20, window="1h"), policy(z=20, window="2h"))
    >>> change.fate
    'lost'
    """
    was, now = (old.meaning() if isinstance(old, Policy) else old), new.meaning()
    common = list(_common(was, now))
    notes = list(_limits(was, now))
    before = {tuple(each["field"]): _Rule(each) for each in was["attribute"]}
    found: list[Change] = []
    for attribute, meaning in zip(new.attributes, now["attribute"], strict=True):
        rule, name = _Rule(meaning), attribute.field
        earlier = before.pop(tuple(meaning["field"]), None)
        if earlier is None:
            why = "The old policy does not decide about this field: it begins with nothing seen."
            found.append(Change(name, "new", (why,)))
        elif lost := common + list(_lost(earlier, rule)):
            found.append(Change(name, "lost", tuple(lost)))
        else:
            kept = [*_kept(earlier, rule), *notes]
            kept = kept or ["Nothing that its state stands for has changed."]
            found.append(Change(name, "kept", tuple(kept)))
    for gone in before.values():
        why = "The new policy does not decide about this field: its state is to be deleted."
        found.append(Change(gone.name, "gone", (why,)))
    return found


def _common(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Give what makes the state of every attribute useless."""
    for part, what in (("user", "the users in the state"), ("time", "the times in the state")):
        for key in _differing(old[part], new[part]):
            if key not in _OF_OUTPUT[part]:
                yield f"{part}.{key} has changed: {what} may be others."
    late, later = _lateness_ns(old), _lateness_ns(new)
    if later > late:
        yield (
            f"The lateness goes from {span(late)} to {span(later)}: what the latest records "
            "would be counted with is forgotten already."
        )


def _lost(was: _Rule, now: _Rule) -> Iterator[str]:
    """Give what the state of one attribute cannot follow."""
    if was.window_ns != now.window_ns:
        longer = now.window_ns > was.window_ns
        yield (
            f"The window goes from {span(was.window_ns)} to {span(now.window_ns)}: "
            + (
                "users who count in the longer one are forgotten already."
                if longer
                else "the state knows until when a value is shared by enough, and that was for "
                "the longer one."
            )
        )
    if now.most_z > was.most_z:
        wanted = "z_max" if now.most_z > now.z + now.noise else "z with its noise"
        yield (
            f"{wanted} goes up to {now.most_z}, and the state remembers no more than "
            f"{users(was.most_z)} of a value; a larger z_max from the beginning would have "
            "left room."
        )
    for key in _differing(was.meaning, now.meaning):
        if key not in _JUDGED:
            yield f"{key} has changed: what was counted is not what would have been."


def _kept(was: _Rule, now: _Rule) -> Iterator[str]:
    """Give what changes with the state kept."""
    if was.z != now.z:
        yield (
            f"z goes from {was.z} to {now.z}; the state remembers {users(was.most_z)} of a value."
        )
    elif now.most_z < was.most_z:
        yield f"The state keeps its room for {users(was.most_z)} of a value until it begins anew."
    periods = (was.meaning.get("noise_period_ns"), now.meaning.get("noise_period_ns"))
    if was.noise != now.noise or periods[0] != periods[1]:
        yield (
            "The noise changes: it is no part of the state, but the thresholds of all values are "
            "drawn anew, and whoever compares before with after learns a little about both."
        )
    if was.meaning.get("swap") != now.meaning.get("swap"):
        yield "Another share of the values is swapped: that is no part of the state."


def _limits(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Give what changes with every state that is kept."""
    late, later = _lateness_ns(old), _lateness_ns(new)
    if later < late:
        yield (
            f"The lateness goes from {span(late)} to {span(later)}: the "
            "state holds more than is needed, and records that come later are veiled."
        )
    if old["limits"].get("max_future_ns") != new["limits"].get("max_future_ns"):
        yield (
            "max_future changes: it holds for records from now on. A time that was taken already "
            "still makes older records late."
        )
    if old.get("hold") != new.get("hold"):
        yield (
            "No level is held any more: z is what the policy says."
            if new.get("hold") is None
            else "The level that is held begins anew: nothing leaves until one window has been "
            "seen under it."
        )
    sizes = (_part(old), _part(new))
    if sizes[0] == sizes[1]:
        return
    yield f"The part of the memory that each attribute has goes from {bound(sizes[0])} to " + (
        f"{bound(sizes[1])}: "
        + (
            "a state above it stays whole, and new values are veiled until there is room."
            if _is_less(sizes[1], sizes[0])
            else "values that were turned away are counted from now on."
        )
    )


def _lateness_ns(meaning: Mapping[str, Any]) -> int:
    longest = max(each["window_ns"] for each in meaning["attribute"])
    return int(meaning["limits"].get("lateness_ns", longest))


def _part(meaning: Mapping[str, Any]) -> int | None:
    size: int | None = meaning["limits"].get("memory")
    return None if size is None else size // len(meaning["attribute"])


def _is_less(size: int | None, other: int | None) -> bool:
    return size is not None and (other is None or size < other)


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Give the keys whose meaning differs; what is not said is as it is by default."""
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
