"""The streams of the conformance suite: from seeds, and the conformance vectors worked out by hand.

Few users, few values and short windows, so that every decision is close: ties, re-exposures, users
pushed out and back, crowds that thin out. The table below has to lie beside the policy file.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import ladders
from cases import FUTURE, NANO, START, Attribute, Case, Record, Told
from vectors import load, value

from zveil.reference import user_text

TABLE = "tree.csv"
TREE = {"rose": ("flower", "plant"), "tulip": ("flower", "plant"), "oak": ("tree", "plant"),
        "elm": ("tree", "plant"), "cat": ("pet", "animal"), "dog": ("pet", "animal"),
        "newt": ("amphibian", None)}  # fmt: skip
TREE_CSV = "".join(
    f"{name},{near or ''},{far or ''}\n" for name, (near, far) in sorted(TREE.items())
)

AHEAD = (0, 0, 0, 0, 1, 1, 2, 3, 9)
USERS = tuple("abcdef")
VALUES = tuple("xxxxxyyyz")
# One person under several spellings; values alike but for their type, and text to be escaped.
SPELLINGS = (7, "7", 7.0, 8, "8", "07", "u v", "ü", 2**70, str(2**70), None)
TYPED = (1, "1", True, "true", 1.5, "1.5", "", " ", 'q"q', "é€😀", "null", "a,b", "l\nl", None)
PATHS = ("/a/x/1", "/a/x/2", "/a/y/1", "/a/y", "/a", "/b/x/1", "/b/x/1", "/b/z")
NUMBERS = (3, 7, 12, 18, 37, 99, 104, 250.5, -4)


def _in_tree(name: str) -> list[str | None]:
    return list(TREE.get(name, (None, None)))


def _binned(number: float) -> list[str | None]:
    return ladders.bins("10", "100")(str(number))


def stream(
    seed: int,
    length: int,
    values: dict[str, Sequence[Any]],
    *,
    users: Sequence[Any] = USERS,
    ahead: Sequence[int] = AHEAD,
    behind: Sequence[int] = (0,),
    unit: int = NANO,
) -> tuple[Record, ...]:
    """Make up records whose time goes on, stands still and, if so asked, falls behind."""
    random, now, made = Random(seed), START, []
    for _ in range(length):
        now += random.choice(ahead) * unit
        shown = {field: random.choice(among) for field, among in values.items()}
        made.append(Record(now - random.choice(behind) * unit, random.choice(users), shown))
    return tuple(made)


def _plain(name: str, seed: int, z: int, window: int, **options: Any) -> Case:
    """Make a case of one field without a hierarchy, window in seconds."""
    lateness = options.pop("lateness", None)
    records = stream(seed, 600, {"item": options.pop("values", VALUES)}, **options)
    late_by = None if lateness is None else lateness * NANO
    return Case(name, (Attribute("item", z, window * NANO),), records, lateness=late_by)


def _levelled(name: str, seed: int, rule: str, steps: str, climb: Any, values: Any) -> Case:
    rule, _, level = rule.partition(" ")
    one = Attribute("item", 3, 30 * NANO, steps, climb, rule, int(level) if level else None)
    records = stream(seed, 800, {"item": values}, users="abcdefgh", behind=(0, 0, 0, 1, 5, 20))
    return Case(name, (one,), records, lateness=40 * NANO)


def _at_boundaries(seed: int) -> Case:
    """Times on the minute and a nanosecond off it, a window of a minute, times rounded to it."""
    random, minute, records = Random(seed), START // (60 * NANO), []
    for _ in range(600):
        minute += random.choice((0, 0, 0, 0, 1, 1, 2))
        t = (minute * 60) * NANO + random.choice((-1, 0, 0, 0, 1))
        records.append(Record(t, random.choice("abcd"), {"item": random.choice("xxy")}))
    one = Attribute("item", 2, 60 * NANO)
    return Case("times at the edge of window and rounding", (one,), tuple(records),
                lateness=3_600 * NANO, round="minute", time_format="iso")  # fmt: skip


def _from_the_future() -> Case:
    made = list(stream(31, 300, {"item": VALUES}))
    for at in (40, 41, 150):
        made[at] = replace(made[at], t=FUTURE + at * 86_400 * NANO)
    return Case("times from the future", (Attribute("item", 3, 8 * NANO),), tuple(made))


def _several(seed: int) -> Case:
    fields = {
        "item": (*VALUES, None),
        "path": (*PATHS, None),
        "agent": ("p", "p", "p", "q", None),
    }
    return Case(
        "several attributes",
        (
            Attribute("item", 3, 8 * NANO),
            Attribute("path", 2, 30 * NANO, '[{ segments = "/", levels = 2 }]',
                      ladders.segments("/", 2)),
            Attribute("agent", 4, 3 * NANO),
        ),
        stream(seed, 800, fields, behind=(0, 0, 0, 1, 5)),
    )  # fmt: skip


def _by_hand() -> list[Case]:
    """Put the vectors of one setting one after another, each with values and a time of its own.

    Those remain that records can hold: text for values, and nothing set or forgotten on the way.
    """
    kept: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for vector in load():
        steps = [step.get("observe") for step in vector["steps"]]
        if vector["file"] not in ("boundaries", "disorder", "figure1") or None in steps:
            continue
        settings = vector["settings"]
        key = settings["z"], settings["window"], settings.get("lateness")
        if settings["window"] <= 1_000:
            kept.setdefault(key, []).append(vector)
    cases = []
    for (z, window, lateness), vectors in kept.items():
        records: list[Record] = []
        answers: Told = {}
        for number, vector in enumerate(vectors):
            for step in vector["steps"]:
                t, user, item = value(step["observe"])
                shown = f"{number} {item}"
                # Far enough apart that what came before is forgotten.
                record = Record(START + number * 10**6 + t, user, {"item": shown})
                if step["expect"]:
                    fields = {"ts": record.t, "uid": user_text(user), "item": shown}
                    answers[len(records)] = fields
                records.append(record)
        behind = "" if lateness is None else f", lateness {lateness}"
        cases.append(
            Case(f"vectors: z {z}, window {window}{behind}", (Attribute("item", z, window),),
                 tuple(records), lateness, time_format="ns", answers=answers)
        )  # fmt: skip
    return cases


def _made() -> list[Case]:
    cases = [
        _plain("ties", 1, 3, 2, ahead=(0, 0, 0, 0, 0, 0, 1, 3)),
        _plain("re-exposures", 2, 2, 8, users="abc"),
        _plain("z of one", 3, 1, 8, behind=(0, 1, 5), lateness=4),
        _plain("window of nothing", 4, 2, 0, behind=(0, 0, 1, 2), lateness=10),
        _plain("disorder within the lateness", 5, 3, 8, behind=(0, 0, 0, 1, 3, 5, 12, 30),
               lateness=30),
        _plain("late by the window", 6, 3, 8, behind=(0, 0, 0, 1, 5, 12, 20)),
        _plain("late by a short lateness", 7, 2, 30, behind=(0, 0, 0, 1, 3, 5, 12), lateness=2),
        _plain("users and values of several types", 8, 2, 30, users=SPELLINGS, values=TYPED),
        _at_boundaries(9),
        _from_the_future(),
        _several(10),
    ]  # fmt: skip
    steps = {
        "paths": ('[{ segments = "/", levels = 2 }]', ladders.segments("/", 2), PATHS),
        "table": (f'[{{ table = "{TABLE}" }}]', _in_tree, (*TREE, "rock", "rose", "cat")),
        "bins": ("[{ bins = [10, 100] }]", _binned, NUMBERS),
    }  # fmt: skip
    rules = [("paths", "fall-through"), ("paths", "authors"), ("paths", "fixed 1"),
             ("paths", "fixed 2"), ("table", "fall-through"), ("bins", "fall-through")]  # fmt: skip
    for seed, (kind, rule) in enumerate(rules, 11):
        cases.append(_levelled(f"{kind} {rule}", seed, rule, *steps[kind]))
    long = {"item": [f"v{1_000 // rank}" for rank in range(1, 400)]}
    users = [f"u{number}" for number in range(200)]
    cases.append(
        Case("a long stream", (Attribute("item", 5, 600 * NANO),),
             stream(41, 20_000, long, users=users, behind=(0, 0, 0, 1, 60, 500)))
    )  # fmt: skip
    return [*cases, *_by_hand()]


CASES: dict[str, Case] = {case.name: case for case in _made()}
IN_TIME = [name for name, case in CASES.items() if not case.late()]
LATE = [name for name in CASES if name not in IN_TIME]


def of(matching: Callable[[Case], bool]) -> list[str]:
    """Name the cases that an engine can take."""
    return [name for name, case in CASES.items() if matching(case)]
