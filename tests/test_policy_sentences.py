"""Policies in sentences: nothing that is stated is left out, nothing is said that is not so."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from test_policy_file import PLAIN, WHOLE, with_lists

from zveil.policy import Attribute, Limits, Policy, Record, Time, User
from zveil.policy.file import PolicyFileError, parse_policy
from zveil.policy.sentences import _others, explain

HOST = Attribute("host", z=20, window="1h")


def told(policy: Policy) -> str:
    return "\n".join(
        f"{answer.about}\n{sentence}" for answer in explain(policy) for sentence in answer.sentences
    )


def of(attribute: Attribute = HOST, **parts: Any) -> str:
    given = {"time": Time("ts"), "user": User("uid"), "attributes": (attribute,)}
    return told(Policy(**given | parts))


def test_every_key_that_matters_is_spoken_of(tmp_path: Path) -> None:
    folder = with_lists(tmp_path)
    whole = parse_policy(WHOLE, folder=folder)
    lines, spoken = WHOLE.splitlines(), []
    for number, line in enumerate(lines):
        if not re.match(r"\w+ =", line):
            continue
        try:
            less = parse_policy("\n".join(lines[:number] + lines[number + 1 :]), folder=folder)
        except PolicyFileError:
            continue  # it is required
        if less.fingerprint != whole.fingerprint:
            spoken.append(line)
            assert told(less) != told(whole), line
    assert len(spoken) > 10


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (of(), "A user is an id in the field 'uid'"),
        (of(), "at least 20 users showed it within 1 hour: the record's own user, and 19 others"),
        (of(dataclasses.replace(HOST, z=2)), "the record's own user, and 1 other before"),
        (of(dataclasses.replace(HOST, z=1)), "This protects nobody"),
        (of(), "is null where its record leaves"),
        (of(dataclasses.replace(HOST, veiled="*")), "becomes the text '*'"),
        (of(dataclasses.replace(HOST, z_max=50)), "raised to 50 later"),
        (of(dataclasses.replace(HOST, noise=5, z_max=50)), "raised to 45 later"),
        (of(dataclasses.replace(HOST, noise=5)), "0 to 5 users more, drawn for it under the"),
        (of(dataclasses.replace(HOST, noise=5, noise_period="30d")), "anew every 30 days"),
        (of(dataclasses.replace(HOST, swap=0.05)), "About 5% of the values that leave"),
        (of(), "does not leave at all"),
        (of(record=Record(empty="blank")), "shows that its user was active"),
        (of(record=Record(keep=("a",))), "Besides the field 'a', as it is and undecided"),
        (of(record=Record(keep=("a", "b"))), "Besides the fields 'a' and 'b', as they are and"),
        (of(record=Record(keep=("*",))), "Every other field leaves too"),
        (of(), "Any field that is not named above"),
        (of(), "The ids in 'uid' themselves."),
        (of(user=User("uid", pseudonym="raw")), "User ids leave as they are."),
        (of(), "one pseudonym for as long as the key is the same"),
        (of(user=User("uid", rotate="24h")), "It changes every day, by the time of the record"),
        (of(user=User("uid", rotate="4 windows")), "It changes every 4 hours"),
        (of(user=User("uid", rotate="24h")), "The key of a period is gone"),
        (of(user=User("uid", rotate="24h", keep_keys=True)), "past periods can be made again"),
        (of(user=User("uid", pseudonym="crypto-pan")), "addresses of one network stay in one"),
        (of(), "They leave exactly as they came."),
        (of(time=Time("ts", round="day")), "the beginning of their day, in UTC"),
        (of(time=Time("ts", round="day")), "The exact times in 'ts'."),
        (of(time=Time("ts", format="ms")), "milliseconds since 1970"),
        (of(), "found out from the first records"),
        (of(), "more than 1 hour older than the newest is late"),
        (of(limits=Limits(lateness="90s")), "more than 1 minute 30 seconds older"),
        (of(limits=Limits(max_future=None)), "Any time is taken"),
        (of(), "more than 1 day past the clock"),
        (of(), "half of the machine's memory"),
        (of(limits=Limits(memory="2GB")), "takes 2 GB of memory at the most"),
    ],
)  # fmt: skip
def test_what_is_said(said: str, wanted: str) -> None:
    assert wanted in said


@pytest.mark.parametrize(
    ("said", "unwanted"),
    [
        (of(record=Record(keep=("*",))), "Any field that is not named"),
        (of(user=User("uid", pseudonym="raw")), "ids in 'uid' themselves"),
        (of(user=User("uid", pseudonym="raw")), "pseudonym"),
        (of(), "exact times in"),
        (of(), "differential privacy"),
        (of(dataclasses.replace(HOST, noise=5)), "raised to"),
    ],
)
def test_what_is_not_so_is_not_said(said: str, unwanted: str) -> None:
    assert unwanted not in said


LEVELS = '\nhierarchy = [{ segments = "." }]\n'


def test_levels_are_named_and_their_rule_is_said() -> None:
    plain = told(parse_policy(PLAIN + LEVELS))
    assert "finest that enough users share leaves: the value itself, then 2 segments" in plain
    assert "only those count for whom nothing finer left" in plain
    fixed = told(parse_policy(PLAIN + LEVELS + 'rule = "fixed"\nlevel = 1\n'))
    assert "always one level: 2 segments" in fixed
    assert "the authors' rule" in told(parse_policy(PLAIN + LEVELS + 'rule = "authors"\n'))
    cells = PLAIN.replace('field = "host"', 'fields = ["lat", "lon"]\nname = "cell"')
    position = told(parse_policy(cells + "\nhierarchy = [{ cells = [9, 7] }]\n"))
    assert "made of the position in 'lat' and 'lon', which never leave themselves" in position
    assert "The exact positions in 'lat' and 'lon'." in position


def test_a_key_that_no_sentence_knows_is_said_as_it_is_written() -> None:
    @dataclasses.dataclass
    class Part:
        field: str
        colour: str = "none"

    assert list(_others(Part("a"), {"field"})) == []
    assert list(_others(Part("a", "blue"), {"field"})) == ["colour is blue."]


def test_a_name_cannot_break_the_lines() -> None:
    assert "What is decided about 'a\\nb\\x1b'\n" in of(Attribute("a\nb\x1b", z=2, window=1))
