"""The policy: one role for each field, and nothing kept that holds what is decided."""

from typing import Any

import pytest

from zveil.policy import Policy


def policy(**options: Any) -> Policy:
    given = {"time": "ts", "user": "uid", "attributes": ("host",), "z": 2, "window": "1h"}
    return Policy(**given | options)


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
        ({"window": "soon"}, "window: expected a duration"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("\\", "\\\\")):
        policy(**options)


def test_names_that_only_look_alike_are_two() -> None:
    found = policy(attributes=("page.host",), keep=("page\\.host", "pages"))
    assert found.fields == ("ts", "uid", "page.host", "page\\.host", "pages")


def test_each_attribute_has_a_gate_and_a_secret_of_its_own() -> None:
    gates = policy(attributes=("a", "b"), z=5, lateness="2h", memory_limit="64MiB").gates()
    assert [gate.z for gate in gates] == [5, 5]
    assert gates[0].key != gates[1].key
    assert [gate.z for gate in policy(attributes=("a", "b")).gates(z=7)] == [7, 7]
