"""Which policies the operator for Flink can keep."""

from __future__ import annotations

from zveil.engines.flink import steps
from zveil.engines.kafka.fitness import check as check_parts
from zveil.policy import Policy, PolicyError
from zveil.policy.parts import Attribute

_ELSEWHERE = "the operator for Flink does not do this; `zveil run` and `zveil kafka` do"


def check(policy: Policy) -> None:
    """Refuse what does not partition, and what the operator does not do.

    Nothing of a policy is passed over: what it says is kept, or the job does not start.

    Raises
    ------
    PolicyError
        If the policy says such a thing.
    """
    check_parts(policy)
    if policy.time.format is None:
        raise PolicyError(
            ("time", "format"),
            "expected for Flink ('s', 'ms', 'us', 'ns' or 'iso'): tasks that find it out by "
            "themselves could come to different answers",
        )
    if policy.user.pseudonym == "crypto-pan":
        raise PolicyError(("user", "pseudonym"), f"'crypto-pan': {_ELSEWHERE}")
    if policy.input.id is not None:
        raise PolicyError(
            ("input", "id"),
            "ids that came before are remembered by no task of Flink; a sender that repeats itself "
            "has to be read by `zveil kafka`",
        )
    if policy.keeps_all:
        raise PolicyError(("record", "keep"), f"'*': {_ELSEWHERE}; name the fields")
    if policy.record.empty == "blank" and len(policy.attributes) > 1:
        raise PolicyError(
            ("record", "empty"),
            "a record with several attributes is split, and each of its parts would leave; state "
            "'drop', or one attribute",
        )
    for name in ("memory", "attributes"):
        if getattr(policy.limits, name) is not None:
            raise PolicyError(
                ("limits", name), "the state is Flink's, and so are its limits; leave it out"
            )
    for number, each in enumerate(policy.attributes):
        try:
            _check_attribute(each)
        except PolicyError as error:
            raise error.below(("attribute", number)) from None


def _check_attribute(attribute: Attribute) -> None:
    for name in ("noise", "swap"):
        if getattr(attribute, name):
            raise PolicyError((name,), _ELSEWHERE)
    for step in () if attribute.hierarchy is None else attribute.hierarchy.steps:
        if step[0] not in steps.NAMES:
            raise PolicyError(
                ("hierarchy",),
                f"{step[0]}: the operator for Flink climbs {', '.join(steps.NAMES)}; cells must be "
                "the same everywhere, to the last digit; `zveil run` and `zveil kafka` have them",
            )
