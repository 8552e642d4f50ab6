"""What of the state a changed policy keeps, and that a kept state decides as if it always had."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from zveil import Gate
from zveil.policy import Attribute, Input, Limits, Policy, Record, Time, User
from zveil.policy.changes import Change, changes

HOST = Attribute("host", z=20, window="1h")
ROOMY = replace(HOST, z_max=50)


def policy(*attributes: Attribute, **parts: Any) -> Policy:
    given = {"time": Time("ts"), "user": User("uid"), "attributes": attributes or (HOST,)}
    return Policy(**given | parts)


@pytest.mark.parametrize(
    ("old", "new", "fate", "why"),
    [
        (policy(), policy(), "kept", "Nothing that its state stands for has changed."),
        (policy(), policy(replace(HOST, z=10)), "kept", "z goes from 20 to 10"),
        (policy(), policy(replace(HOST, z=21)), "lost", "z with its noise goes up to 21"),
        (policy(ROOMY), policy(replace(ROOMY, z=50)), "kept", "remembers 50 users of a value"),
        (policy(ROOMY), policy(replace(HOST, z=51)), "lost", "no more than 50 users"),
        (policy(ROOMY), policy(HOST), "kept", "keeps its room for 50 users"),
        (policy(), policy(ROOMY), "lost", "z_max goes up to 50"),
        (policy(), policy(replace(HOST, window="60m")), "kept", "Nothing"),
        (policy(), policy(replace(HOST, window="2h")), "lost", "forgotten already"),
        (policy(), policy(replace(HOST, window="5m")), "lost", "from 1 hour to 5 minutes"),
        (policy(), policy(replace(HOST, veiled="*")), "kept", "Nothing"),
        (policy(), policy(replace(HOST, field="\\host")), "kept", "Nothing"),
        (policy(), policy(replace(HOST, field="name")), "new", "does not decide about this field"),
        (policy(ROOMY), policy(replace(ROOMY, noise=5)), "kept", "are drawn anew"),
        (policy(), policy(replace(HOST, noise=5)), "lost", "z with its noise goes up to 25"),
        (policy(replace(HOST, noise=5)), policy(), "kept", "The noise changes"),
        (policy(), policy(replace(HOST, swap=0.1)), "kept", "Another share of the values"),
        (policy(replace(HOST, noise=5)), policy(replace(HOST, z=25)), "kept", "from 20 to 25"),
        (policy(replace(HOST, noise=5)), policy(replace(HOST, noise=5, noise_period="1d")), "kept",
         "The noise changes"),
        (policy(), policy(user=User("who")), "lost", "user.field has changed"),
        (policy(), policy(user=User("uid", pseudonym="raw")), "kept", "Nothing"),
        (policy(), policy(user=User("uid", rotate="24h", keep_keys=True)), "kept", "Nothing"),
        (policy(), policy(time=Time("t")), "lost", "time.field has changed"),
        (policy(), policy(time=Time("ts", format="ms")), "lost", "time.format has changed"),
        (policy(), policy(time=Time("ts", round="hour")), "kept", "Nothing"),
        (policy(), policy(record=Record(keep=("a",), empty="blank")), "kept", "Nothing"),
        (policy(), policy(input=Input("csv")), "kept", "Nothing"),
        (policy(), policy(limits=Limits(lateness="2h")), "lost", "from 1 hour to 2 hours"),
        (policy(), policy(limits=Limits(lateness="5m")), "kept", "holds more than is needed"),
        (policy(), policy(limits=Limits(max_future=None)), "kept", "max_future changes"),
        (policy(), policy(limits=Limits(memory="1GB")), "kept", "no limit to 1 GB: a state"),
        (policy(limits=Limits(memory="1GB")), policy(), "kept", "turned away are counted"),
    ],
)  # fmt: skip
def test_what_becomes_of_the_state(old: Policy, new: Policy, fate: str, why: str) -> None:
    change = changes(old, new)[0]
    assert change.fate == fate
    assert why in " ".join(change.why)
    assert all(sentence.endswith(".") for sentence in change.why)


def test_each_attribute_is_judged_by_itself() -> None:
    other = replace(HOST, field="other", window="2h")
    found = changes(
        policy(HOST, other, limits=Limits(lateness="2h")),
        policy(replace(other, z=5), replace(HOST, window="2h"), replace(HOST, field="third")),
    )
    assert [(each.attribute, each.fate) for each in found] == [
        ("other", "kept"),
        ("host", "lost"),
        ("third", "new"),
    ]
    [kept, gone] = changes(policy(HOST, other, limits=Limits(lateness="1h")), policy())
    assert (kept.fate, gone.attribute, gone.fate) == ("kept", "other", "gone")


def test_another_window_moves_the_lateness_of_all() -> None:
    long = replace(HOST, field="long", window="7d")
    first, second = changes(policy(), policy(HOST, long))
    assert (first.fate, second.fate) == ("lost", "new")
    assert "The lateness goes from 1 hour to 1 week" in first.why[0]


def test_memory_is_shared_by_all_attributes() -> None:
    limits = Limits(memory="1GB")
    [first, _] = changes(
        policy(limits=limits), policy(HOST, replace(HOST, field="b"), limits=limits)
    )
    assert "from 1 GB to 500 MB: a state above it" in first.why[0]


def test_a_key_that_is_not_judged_here_loses_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    meaning = Attribute.meaning
    monkeypatch.setattr(Attribute, "meaning", lambda part: meaning(part) | {"colour": part.veiled})
    [change] = changes(policy(), policy(replace(HOST, veiled="*")))
    assert change == Change(
        "host", "lost", ("colour has changed: what was counted is not what would have been.",)
    )


def test_a_kept_state_decides_as_if_the_new_z_had_always_held() -> None:
    random = np.random.default_rng(5)
    rows = 20_000
    events = (np.arange(rows), random.integers(0, 300, rows), random.integers(0, 150, rows))
    begun = [column[: rows // 2] for column in events]
    rest = [column[rows // 2 :] for column in events]
    for z in (3, 12, 20):
        was, now = Attribute("a", z=8, window=1_800, z_max=20), Attribute("a", z=z, window=1_800)
        [change] = changes(policy(was), policy(now))
        assert change.fate == "kept"
        moved, always = (Gate(n, 1_800, z_max=20, max_future=None) for n in (8, z))
        for gate in (moved, always):
            gate.observe_many(*begun)
        moved.z = z
        released = moved.observe_many(*rest)
        assert released.tolist() == always.observe_many(*rest).tolist()
        assert 0 < released.sum() < len(released)
