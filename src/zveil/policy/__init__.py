"""The policy: what is taken from a record, who decides about it, and what leaves."""

from zveil.policy.error import PolicyError
from zveil.policy.file import read_policy
from zveil.policy.hold import Hold
from zveil.policy.parts import (
    EVERYTHING,
    Attribute,
    Empty,
    Input,
    Limits,
    Pseudonym,
    Record,
    Rounding,
    Time,
    TimeFormat,
    User,
)
from zveil.policy.policy import Policy

__all__ = [
    "EVERYTHING",
    "Attribute",
    "Empty",
    "Hold",
    "Input",
    "Limits",
    "Policy",
    "PolicyError",
    "Pseudonym",
    "Record",
    "Rounding",
    "Time",
    "TimeFormat",
    "User",
    "read_policy",
]
