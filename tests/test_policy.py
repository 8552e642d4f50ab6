"""The policy: one role for each field, nothing kept that holds what is decided, one meaning."""

from dataclasses import replace
from typing import Any

import pytest

from zveil.policy import (
    Attribute,
    Input,
    Limits,
    Policy,
    PolicyError,
    Record,
    Time,
    User,
)


def policy(**options: Any) -> Policy:
    given = {"time": "ts", "user": "uid", "attributes": ("host",), "z": 2, "window": "1h"}
    return Policy.of(**given | options)


def test_fields_leave_in_one_order() -> None:
    assert policy(keep=("b", "a")).fields == ("ts", "uid", "host", "b", "a")
    assert policy(attributes=("y", "x")).fields == ("ts", "uid", "y", "x")


def test_a_field_is_kept_once_however_it_is_named() -> None:
    assert policy(keep=("a", "a", "uid", "host")).fields == ("ts", "uid", "host", "a")
    assert policy(keep=("a", "\\a", "\\uid")).fields == ("ts", "uid", "host", "a")
    assert policy(keep=("a.b", "a", "a.c.d")).fields == ("ts", "uid", "host", "a")
    assert policy(keep=("a.b", "a\\.b")).fields == ("ts", "uid", "host", "a.b", "a\\.b")


def test_a_star_keeps_all_and_is_no_field() -> None:
    kept = policy(keep=("*", "a"))
    assert kept.keeps_all
    assert kept.fields == ("ts", "uid", "host", "a")
    assert not policy(keep=("a",)).keeps_all


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attributes": ()}, "attribute: expected at least one"),
        ({"attributes": ("uid",)}, "attribute: 'uid' is the user already"),
        ({"attributes": ("\\uid",)}, "is the user already"),
        ({"user": "ts"}, "user: 'ts' is the time already"),
        ({"attributes": ("host", "host")}, "attribute: 'host' is the attribute already"),
        ({"attributes": ("",)}, "attribute: expected the name of a field"),
        ({"attributes": ("a..b",)}, "attribute: expected the name of a field"),
        ({"keep": ("",)}, "keep: expected the name of a field"),
        ({"user": "page", "attributes": ("page.host",)}, "user: 'page' holds 'page.host' inside"),
        ({"attributes": ("page.host",), "keep": ("page",)}, "keep: 'page' holds 'page.host'"),
        ({"user": "a.b.c", "keep": ("a.b",)}, "keep: 'a.b' holds 'a.b.c'"),
        ({"attributes": ("page",), "keep": ("page.host",)}, "keep: 'page.host' is inside 'page'"),
        ({"window": "soon"}, "attribute.window: expected a duration"),
        ({"z": 0}, "attribute.z: expected a whole number from 1, got 0"),
        ({"noise": -1}, "attribute.noise: expected a whole number from 0, got -1"),
        ({"z": True}, "attribute.z: expected a whole number"),
        ({"lateness": "x"}, "limits.lateness: expected a duration"),
        ({"max_future": "x"}, "limits.max_future: expected a duration"),
        ({"memory": "x"}, "limits.memory: expected bytes"),
        ({"round": "week"}, "round: expected 'none', 'minute', 'hour' or 'day', got 'week'"),
        ({"time_format": "h"}, "format: expected 's', "),
        ({"empty": "hide"}, "empty: expected 'drop' or 'blank'"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("\\", "\\\\")):
        policy(**options)


def test_names_that_only_look_alike_are_two() -> None:
    found = policy(attributes=("page.host",), keep=("page\\.host", "pages"))
    assert found.fields == ("ts", "uid", "page.host", "page\\.host", "pages")


def test_each_attribute_has_a_gate_and_a_secret_of_its_own() -> None:
    gates = policy(attributes=("a", "b"), z=5, lateness="2h", memory="64MiB").gates()
    assert [gate.z for gate in gates] == [5, 5]
    assert gates[0].key != gates[1].key
    assert [gate.z for gate in policy(attributes=("a", "b")).gates(z=7)] == [7, 7]


def test_noise_needs_room_and_is_drawn_under_a_key() -> None:
    noisy = policy(attributes=("a", "b"), z=5, noise=3)
    assert [each.most_z for each in noisy.attributes] == [8, 8]
    gates = noisy.gates(key=bytes(32))
    assert [(gate.z, gate.z_max, gate.noise) for gate in gates] == [(5, 8, 3)] * 2
    assert [(gate.z, gate.z_max, gate.noise) for gate in noisy.gates(z=7)] == [(7, 10, 3)] * 2
    roomy = Attribute("a", z=5, window=1, z_max=20, noise=3, noise_period="30d")
    assert of_parts(roomy).gates()[0].z_max == 20
    with pytest.raises(PolicyError, match="z_max: expected room for z and its noise"):
        Attribute("a", z=5, window=1, z_max=7, noise=3)


def test_the_secrets_of_gates_come_from_one_key_by_the_name_of_the_attribute() -> None:
    first, second = policy(attributes=("a", "b")).gates(key=bytes(32))
    assert first.key != second.key
    assert [gate.key for gate in policy(attributes=("b",)).gates(key=bytes(32))] == [second.key]
    assert policy(attributes=("\\a",)).gates(key=bytes(32))[0].key == first.key
    nested, dotted = policy(attributes=("a.b", "a\\.b")).gates(key=bytes(32))
    assert nested.key != dotted.key
    assert policy(attributes=("a",)).gates(key=b"k" * 32)[0].key != first.key
    assert policy(attributes=("a",)).gates()[0].key != policy(attributes=("a",)).gates()[0].key
    assert bytes(32) not in (first.key, second.key)


def test_what_only_a_gate_knows_names_the_key() -> None:
    with pytest.raises(PolicyError, match=r"limits\.memory: expected at least"):
        policy(memory=1000).gates()
    with pytest.raises(PolicyError, match="z_max: expected at least z"):
        Attribute("a", z=3, window=1, z_max=2)


def of_parts(*attributes: Attribute, **parts: Any) -> Policy:
    return Policy(**{"time": Time("ts"), "user": User("uid"), "attributes": attributes} | parts)


def test_each_attribute_has_a_z_and_a_window_of_its_own() -> None:
    both = of_parts(Attribute("a", z=5, window="1h", z_max=9), Attribute("b", z=2, window="2d"))
    first, second = both.gates()
    assert (first.z, first.z_max, first.window_ns) == (5, 9, 3600 * 10**9)
    assert (second.z, second.z_max, second.window_ns) == (2, 2, 2 * 86400 * 10**9)
    # The lateness is the longest window for both.
    assert first.lateness_ns == second.lateness_ns == second.window_ns == both.lateness_ns
    stated = replace(both, limits=Limits(lateness=7))
    assert [gate.lateness_ns for gate in stated.gates()] == [7 * 10**9] * 2


HOST = Attribute("host", z=2, window="1h")


def test_the_same_meaning_has_one_fingerprint() -> None:
    spelled = of_parts(
        Attribute("\\host", z=2, window=3600, z_max=2, veiled=None),
        input=Input("csv"),
        record=Record(keep=("uid", "host"), empty="drop"),
        limits=Limits(lateness="60m", max_future="24h"),
    )
    assert spelled.fingerprint == of_parts(HOST).fingerprint == policy().fingerprint
    assert len(policy().fingerprint) == 32


@pytest.mark.parametrize(
    "other",
    [
        {"attributes": (replace(HOST, z=3),)},
        {"attributes": (replace(HOST, window="2h"),)},
        {"attributes": (replace(HOST, z_max=3),)},
        {"attributes": (replace(HOST, veiled="*"),)},
        {"attributes": (replace(HOST, noise=1),)},
        {"attributes": (replace(HOST, swap=0.1),)},
        {"attributes": (replace(HOST, noise=1, z_max=4),)},
        {"attributes": (replace(HOST, noise=1, noise_period="30d"),)},
        {"attributes": (replace(HOST, field="a.host"),)},
        {"attributes": (HOST, replace(HOST, field="b"))},
        {"attributes": (replace(HOST, field="b"), HOST)},
        {"time": Time("t")},
        {"time": Time("ts", format="s")},
        {"time": Time("ts", round="hour")},
        {"user": User("u")},
        {"user": User("uid", pseudonym="raw")},
        {"record": Record(keep=("a",))},
        {"record": Record(keep=("*",))},
        {"record": Record(empty="blank")},
        {"limits": Limits(lateness="2h")},
        {"limits": Limits(max_future=None)},
        {"limits": Limits(max_future="2d")},
        {"limits": Limits(memory="1GB")},
    ],
)
def test_another_meaning_has_another_fingerprint(other: dict[str, Any]) -> None:
    every = {of_parts(HOST).fingerprint, replace(of_parts(HOST), **other).fingerprint}
    assert len(every) == 2


def test_the_fingerprint_is_what_it_was() -> None:
    # Reports hold it: a change of this value is a change for everyone who kept one.
    assert policy().fingerprint == "f54ae8fa24602d38644280b6d033ad42"


def test_windows_of_rotation_are_the_longest() -> None:
    def rotating(rotate: str, window: str = "1h", **more: Any) -> Policy:
        attributes = (Attribute("host", z=2, window="1m"), Attribute("site", z=2, window=window))
        user = User("uid", rotate=rotate, **more)
        return Policy(time=Time("ts"), user=user, attributes=attributes)

    assert rotating("4 windows").rotate_ns == rotating("4h").rotate_ns == 4 * 3_600 * 10**9
    assert rotating("4 windows").fingerprint == rotating("240m").fingerprint
    others = [rotating("3h"), rotating("4h", keep_keys=True), rotating("4 windows", "2h")]
    assert len({each.fingerprint for each in (*others, rotating("4h"))}) == 4
    for rotate in ("59s", "soon", "0 windows", "-1 windows", "4 hours", "1.5 windows"):
        with pytest.raises(PolicyError, match="rotate: expected a duration of at least 1m"):
            rotating(rotate)
    assert rotating("1 window", "0s").rotate_ns == 60 * 10**9
    with pytest.raises(PolicyError, match=r"user\.rotate: expected a duration of at least 1m"):
        policy(window="59s", rotate="1 window")
    for wrong in ({"pseudonym": "raw", "rotate": "1h"}, {"keep_keys": True}):
        with pytest.raises(PolicyError):
            User("uid", **wrong)  # type: ignore[arg-type]
    limits = Limits(lateness="365d")
    with pytest.raises(PolicyError, match=r"user\.rotate: expected at least a 100,000th"):
        replace(rotating("1m"), limits=limits)
