"""The page about a z that tunes itself: every number on it is in the data, and the data hold."""

import csv
import re
from pathlib import Path
from statistics import mean

import pytest

from zveil.figures.catalogue import TUNING
from zveil.figures.rows import TuningRow
from zveil.figures.tuning import FULL, STREAMS
from zveil.figures.tuning_drawing import draw

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/self-tuning.md").read_text(encoding="utf-8")
Record = dict[str, str]

# Not found in the data: what is asked for or set, the classes, and the paper's rate.
ASKED = {"0.8", "0.95", "0.015", "0.04", "0.9", "0.1", "0.05"}


def data(name: str) -> list[Record]:
    with (ROOT / f"docs/figures/{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tables() -> dict[str, list[Record]]:
    found = {}
    for name, lines in re.findall(r"<!-- data: ([\w-]+) -->\n\n((?:\|.+\n)+)", PAGE):
        head, _, *rows = [
            [cell.strip() for cell in line.strip("|\n").split("|")] for line in lines.splitlines()
        ]
        found[name] = [dict(zip(head, row, strict=True)) for row in rows]
    return found


def after_the_first(stream: str, source: str) -> list[Record]:
    return [
        row
        for row in data("hold-share")
        if row["stream"] == stream and row["source"] == source and row["period"] != "1"
    ]


def as_written(value: float, written: str) -> str:
    digits = len(written.partition(".")[2])
    return f"{value:.{digits}f}"


@pytest.mark.parametrize("stream", STREAMS)
def test_what_was_to_be_shown(stream: str) -> None:
    shares = [float(row["share"]) for row in after_the_first(stream, "held")]
    assert len(shares) == FULL.periods - 1 >= 10
    assert min(shares) >= FULL.hold.p == 0.8
    assert abs(mean(shares) - FULL.hold.p) <= 0.05
    assert (FULL.rotate, FULL.hold.k, FULL.users) == (24, 2, {})


def test_the_table_is_the_data() -> None:
    rows = tables()["hold-share"]
    assert [row["stream"] for row in rows] == list(STREAMS)
    for row in rows:
        held, fixed = (after_the_first(row["stream"], source) for source in ("held", "fixed"))
        expected = {
            "lowest": min(float(each["share"]) for each in held),
            "mean": mean(float(each["share"]) for each in held),
            "released": mean(float(each["released"]) for each in held),
            "best z that stays": float(fixed[0]["z"]),
            "its lowest": min(float(each["share"]) for each in fixed),
            "its released": mean(float(each["released"]) for each in fixed),
        }
        for name, value in expected.items():
            assert as_written(value, row[name]) == row[name], (row["stream"], name)


def test_the_authors_program_is_told_as_it_was_run() -> None:
    rows, found = tables()["hold-authors"], data("hold-authors")
    assert [row["stream"] for row in rows] == [each["stream"] for each in found]
    for row, each in zip(rows, found, strict=True):
        assert row["z at its end"] == each["z"]
        for name, column in (("2 alike over 24 windows", "share"), ("released", "released")):
            assert as_written(float(each[column]), row[name]) == row[name]


def test_numbers_in_the_text_are_in_the_data() -> None:
    text = PAGE.partition("## What it comes to")[2]
    prose = re.sub(r"^\|.*$|^!.*$", "", text, flags=re.MULTILINE)
    written = set(re.findall(r"(?<![\w.,/])\d\.\d+\b(?!\.)", prose)) - ASKED
    assert written
    values = [float(row["share"]) for row in data("hold-unequal") if row["share"]]
    for number in written:
        assert any(as_written(value, number) == number for value in values), number


def test_what_is_said_of_unequal_users() -> None:
    by_z = {
        (row["source"], row["z"]): float(row["share"]) for row in data("hold-unequal") if row["z"]
    }
    for z, model, measured in (("60", "0.58", "0.73"), ("140", "0.93", "0.90")):
        assert f"{by_z['model', z]:.2f}" == model
        assert f"{by_z['measured', z]:.2f}" == measured
        # The model with the classes is right.
        assert by_z["classes", z] == pytest.approx(by_z["measured", z], abs=0.02)
    within = [row for row in data("hold-unequal") if not row["z"]]
    four = [row for row in within if abs(float(row["hours"]) - 4) < 0.3]
    assert {row["source"]: f"{float(row['share']):.2f}" for row in four} == {
        "model": "0.98", "meter": "0.91",
    }  # fmt: skip
    last = {row["source"]: float(row["share"]) for row in within[-2:]}
    assert last["model"] < last["meter"]


def test_the_pictures_are_drawn_from_the_data(tmp_path: Path) -> None:
    for figure in TUNING:
        rows = [_row(each) for each in data(figure.name)]
        draw(figure, rows, [tmp_path / "a.png", tmp_path / "a.svg", tmp_path / "b.svg"])
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n")
        drawing = (tmp_path / "a.svg").read_text()
        assert drawing == (tmp_path / "b.svg").read_text()
        assert "<dc:date>" not in drawing


def _row(record: Record) -> TuningRow:
    kinds = {"hours": float, "share": float, "released": float}
    kinds |= {"z": int, "period": int, "visible": int}
    return TuningRow(
        **{name: (kinds.get(name, str)(text) if text else None) for name, text in record.items()}
    )  # type: ignore[arg-type]


def test_the_pictures_are_there_and_modest() -> None:
    for figure in TUNING:
        size = (ROOT / f"docs/figures/{figure.name}.png").stat().st_size
        assert 10_000 < size < 200_000
        assert tuple(data(figure.name)[0]) == TuningRow._fields
        assert f"(figures/{figure.name}.png)" in PAGE
