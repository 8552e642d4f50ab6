"""Which columns go through the stages, under names of their own.

Names of a data frame may hold dots, differ by case alone, or be anything else that a policy or
Spark reads meaning into. Between the stages columns are called by what they are: ``t`` the time,
``u`` the user, ``a0`` the first attribute (``a0x`` and ``a0y`` where it is a position), ``k0`` what
is kept, ``o0`` what ties are broken by. Made on the way: ``h0`` a hash of the first attribute by
Spark, ``p0`` the number of the shard that it belongs to, and ``s`` a time to sort by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from zveil.act.columns import ColumnsAct
from zveil.engines.spark.fitness import check_ties, check_times
from zveil.policy import Attribute, Policy, PolicyError, Record
from zveil.policy.parts import Input, Limits, User


@dataclass(frozen=True)
class Layout:
    """The columns of a frame by what they are; as `laid_out` makes it.

    Parameters
    ----------
    policy
        What is decided and what leaves, by the names of the frame.
    read
        For each column inside, the number of the frame's column that it is.
    ties
        The columns inside that rows of one time are sorted by.
    leaving
        The names of what leaves, in their order.
    """

    policy: Policy
    read: dict[str, int]
    ties: tuple[str, ...]
    leaving: tuple[str, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """What is kept, by its name inside."""
        return tuple(name for name in self.read if name.startswith("k"))

    def attribute(self, place: int) -> Attribute:
        """Give an attribute by its names inside."""
        each = self.policy.attributes[place]
        fields = tuple(f"a{place}{axis}" for axis, _ in zip("xy", each.fields, strict=False))
        return replace(each, field=f"a{place}", fields=fields)

    def reads(self, place: int) -> tuple[str, ...]:
        """Give the columns that an attribute is read from."""
        return self.attribute(place).reads

    def whole(self) -> Policy:
        """Give the policy by the names inside: for one attribute, which is decided in one stage."""
        count = len(self.policy.attributes)
        return self._policy(tuple(map(self.attribute, range(count))), self.kept)

    def deciding(self, place: int, there: Sequence[str]) -> Policy:
        """Give the policy of a stage of several: its attribute is decided, all else goes on.

        A veiled value is null behind it, a released one is not.
        """
        each = replace(self.attribute(place), veiled=None)
        beside = {"t", "u", each.field, *each.fields}
        policy = self._policy((each,), tuple(name for name in there if name not in beside))
        return replace(
            policy,
            time=replace(policy.time, round="none"),
            user=User("u", pseudonym="raw"),
            record=replace(policy.record, empty="blank"),
        )

    def leave(self) -> Policy:
        """Give the policy for what is decided already: values are labels, or null where veiled."""
        attributes = tuple(
            Attribute(f"a{place}", z=1, window=0, veiled=each.veiled)
            for place, each in enumerate(self.policy.attributes)
        )
        return self._policy(attributes, self.kept)

    def gates(self, *, is_sorted: bool) -> Policy:
        """Give the policy that gates are made from: under the names that their keys go by.

        Where all rows come in the order of their times none is late, and what is older than the
        window can be forgotten at once.
        """
        if not is_sorted:
            return self.policy
        return replace(self.policy, limits=replace(self.policy.limits, lateness=0))

    def _policy(self, attributes: tuple[Attribute, ...], keep: tuple[str, ...]) -> Policy:
        policy = self.policy
        return replace(
            policy,
            time=replace(policy.time, field="t"),
            # When pseudonyms change is the keyring's business.
            user=User("u", pseudonym=policy.user.pseudonym),
            attributes=attributes,
            record=Record(keep=keep, empty=policy.record.empty),
            limits=Limits(),
            input=Input(),
        )


def laid_out(policy: Policy, schema: pa.Schema, ties: Sequence[str]) -> Layout:
    """Find the columns of a policy in a frame, and see that they can be decided about.

    Raises
    ------
    LookupError
        If a column is missing or there twice; as for `ColumnsAct`.
    PolicyError
        If a column cannot be what it is said to be.
    """
    act = ColumnsAct(policy, policy.gates(), schema, keyring=None)
    check_times(policy, schema.field(policy.time.field).type)
    places = {name: place for place, name in enumerate(schema.names)}
    for name in ties:
        if schema.names.count(name) != 1:
            raise LookupError(name, schema.names)
    check_ties(schema, ties)
    try:
        act.act(pa.RecordBatch.from_pylist([], schema=schema))
    except (TypeError, pa.ArrowNotImplementedError):
        raise PolicyError(
            (),
            f"{policy.user.field!r} or one of {', '.join(map(repr, policy.names))} is of a type "
            "that cannot be decided about; make it text",
        ) from None
    read = {"t": places[policy.time.field], "u": places[policy.user.field]}
    for number, each in enumerate(policy.attributes):
        if each.fields:
            read |= {
                f"a{number}{axis}": places[name]
                for axis, name in zip("xy", each.fields, strict=True)
            }
        else:
            read[f"a{number}"] = places[each.field]
    kept = act.fields[2 + len(policy.attributes) :]
    read |= {f"k{number}": places[name] for number, name in enumerate(kept)}
    read |= {f"o{number}": places[name] for number, name in enumerate(ties)}
    order = tuple(f"o{number}" for number in range(len(ties)))
    return Layout(policy, read, (*order, "u"), tuple(act.fields))
