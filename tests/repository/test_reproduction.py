"""The page about the paper's figures: every number on it is in the data, and the data hold."""

import csv
import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from zveil.figures import PAPER as NAMES
from zveil.figures.contents import CONTENTS, Work
from zveil.figures.detail import FULL
from zveil.figures.rows import COLUMNS, DAY, FLAT_DAY
from zveil.model import Population, averaged, p_y, paper, smallest_z

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
Record = dict[str, str]

AXES = {"A": "attributes", "z": "z", "U": "users", "N": "horizon", "rank": "rank"}
HEADS = {
    "the model": {"source": "model"},
    "the formula": {"source": "paper"},
    "averaged": {"source": "averaged", "among": "all"},
    "averaged, visible": {"source": "averaged", "among": "visible"},
    "measured": {"source": "measured", "among": "all"},
    "measured, visible": {"source": "measured", "among": "visible"},
    "measured, day and night": {"source": "measured", "among": "all", "population": DAY},
    "measured, the same at all hours": {
        "source": "measured", "among": "all", "population": FLAT_DAY,
    },
}  # fmt: skip


def data(name: str) -> list[Record]:
    with (ROOT / f"docs/figures/{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def one(name: str, **wanted: object) -> float:
    (found,) = (
        record
        for record in data(name)
        if all(record[column] == str(value) for column, value in wanted.items())
    )
    return float(found["value"])


def as_written(value: float, written: str) -> str:
    """Round a value as a number on the page is."""
    digits = len(written.partition("e")[0].partition(".")[2])
    return f"{value:.{digits}{'e' if 'e' in written else 'f'}}"


def sections() -> list[tuple[str, str]]:
    """Give the name of each section's figure, and its text."""
    found = []
    for text in PAGE.split("\n## ")[1:]:
        if pictures := re.findall(r"\(figures/([\w-]+)\.png\)", text):
            (name,) = pictures
            found.append((name, text))
    return found


def test_every_figure_has_its_section_in_the_order_of_the_paper() -> None:
    assert [name for name, _ in sections()] == list(NAMES)
    for name in NAMES:
        size = (ROOT / f"docs/figures/{name}.png").stat().st_size
        assert 10_000 < size < 200_000, "a modest picture"
        assert tuple(data(name)[0]) == COLUMNS


def test_what_is_synthetic_says_so() -> None:
    for name, text in sections():
        is_synthetic = name.startswith("day")
        assert ("synthetic" in text.splitlines()[0]) == is_synthetic
        assert all(("SYNTHETIC" in each["population"]) == is_synthetic for each in data(name))


def test_the_tables_are_the_data() -> None:
    tables = re.findall(r"<!-- data: ([\w-]+) (\w=\d+) -->\n\n((?:\|.+\n)+)", PAGE)
    assert len(tables) == PAGE.count("<!-- data:") == 13
    for name, fixed, lines in tables:
        head, _, *rows = [
            [cell.strip() for cell in line.strip("|\n").split("|")] for line in lines.splitlines()
        ]
        column, value = fixed.split("=")
        for row in rows:
            place = {AXES[head[0]]: row[0].replace(",", ""), column: value}
            for label, written in zip(head[1:], row[1:], strict=True):
                assert as_written(one(name, **place, **HEADS[label]), written) == written, (
                    name, place, label,
                )  # fmt: skip


# Not values of a figure: a probability that is asked for, and a bound.
ASKED = {"0.95", "0.1"}


@pytest.mark.parametrize(("name", "text"), sections(), ids=NAMES)
def test_numbers_in_the_text_are_in_the_data(name: str, text: str) -> None:
    prose = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    prose = re.sub(r'"[^"]*"', "", prose)  # the paper's words
    written = set(re.findall(r"(?<![\w.,])\d\.\d+(?:e-\d+)?\b", prose)) - ASKED
    assert written
    values = [
        float(record[column])
        for record in data(name)
        for column in ("value", "low", "high")
        if record[column]
    ]
    for number in written:
        assert any(as_written(value, number) == number for value in values), number


@pytest.mark.parametrize(
    ("where", "name", "place"),
    [
        ("defaults", "z-by-k", {"z": 20, "k": 2}),
        ("z = 35", "z-by-k", {"z": 35, "k": 2}),
        ("U = 22,000", "u-by-k", {"users": 22_000, "z": 9, "k": 2}),
        ("U = 100,000", "u-by-k", {"users": 100_000, "z": 40, "k": 2}),
        ("N = 22", "n-by-k", {"horizon": 22, "k": 2}),
        ("z = 120, N = 70", "n-by-z", {"horizon": 70, "z": 120}),
    ],
)
def test_the_summary(where: str, name: str, place: dict[str, int]) -> None:
    (line,) = re.findall(rf"^\| {where}[^|]*\| \"[^|]+\|(.+)\|$", PAGE, re.MULTILINE)
    cells = [cell.strip() for cell in line.split("|")]
    for head, written in zip(("the formula", "averaged", "measured"), cells, strict=True):
        assert as_written(one(name, **place, **HEADS[head]), written) == written, head


def test_how_far_apart_they_are() -> None:
    apart, off = [], []
    for name in NAMES[1:7]:
        records = data(name)
        keys = ("among", "users", "attributes", "horizon", "z", "k")
        curves = {
            (record["source"], *(record[key] for key in keys)): float(record["value"])
            for record in records
        }
        for (source, *place), value in curves.items():
            if source == "measured":
                apart.append(abs(value - curves["averaged", *place]))
            elif source == "paper":
                off.append(value - curves["averaged", *place])
    assert f"further than {max(apart):.3f} from" in " ".join(PAGE.split())
    assert f"off by up to {max(off):.1f}." in " ".join(PAGE.split())


def test_what_is_said_beyond_the_figures() -> None:
    population = Population.power_law()
    assert smallest_z(population, k=2, probability=0.95, horizon=24)[0] == 163
    assert paper(population, 23, 2, 24) < 0.95 < paper(population, 24, 2, 24)
    measured = {"k": 2, "source": "measured", "among": "all", "population": DAY}
    assert one("day-z", z=700, **measured) < 0.95 < one("day-z", z=850, **measured)
    assert averaged(population, 20, 2, 1).visible_share == pytest.approx(0.25, abs=0.02)


def test_the_data_are_what_the_model_gives() -> None:
    """A few rows of each figure, so that neither can change without the other."""
    for name in NAMES[:7]:
        curves = [record for record in data(name) if record["source"] != "measured"]
        for record in itertools.islice(curves, 0, None, max(1, len(curves) // 7)):
            population = Population.power_law(int(record["users"]), int(record["attributes"]))
            z, horizon = int(record["z"]), int(record["horizon"])
            if record["source"] == "model":
                expected = p_y(population, z)[int(record["rank"]) - 1]
            elif record["source"] == "paper":
                expected = paper(population, z, int(record["k"]), horizon)
            else:
                found = averaged(population, z, int(record["k"]), horizon)
                expected = found.visible if record["among"] == "visible" else found.everyone
            assert float(record["value"]) == pytest.approx(expected, rel=1e-5, abs=2e-5), record


def test_what_was_measured_is_measured_again() -> None:
    detail = replace(FULL, users=(), measured_users=(5_000,))
    for row in CONTENTS["u-by-k"](Work(detail, 1, lambda _: None)):
        place = {"users": 5_000, "k": row.k, "among": row.among, "source": "measured"}
        # Another NumPy may draw another stream.
        assert row.value == pytest.approx(one("u-by-k", **place), abs=0.002)
