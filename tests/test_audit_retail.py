"""Real purchases, where the data set is at hand: the published figures, through the program."""

import json
from pathlib import Path
from typing import Any

import pytest
from program import zveil
from test_retail import DATA  # skips where it is missing

FIELDS = ["--time", "time", "--user", "user", "--attribute", "item"]


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    released = tmp_path_factory.mktemp("retail") / "released.csv"
    done = zveil("run", DATA, *FIELDS, "-z", "20", "--window", "7d", "-o", released, "-q")
    assert done.returncode == 0, done.stderr
    done = zveil("audit", released, "--original", DATA, *FIELDS, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_published_counts(figures: dict[str, Any]) -> None:
    assert (figures["released"], figures["observed"]) == (62_639, 406_829)
    assert (figures["users"], figures["users_visible"]) == (4_372, 3_726)
    assert figures["fields"][0]["values_observed"] == 3_684


def test_the_published_shares(figures: dict[str, Any]) -> None:
    shares = {each["resolution"]: each["k_share"]["2"] for each in figures["k"]}
    assert shares["set"] == figures["k_share"]["2"]
    found = [round(shares[name], 3) for name in ("set", "week", "day", "minute")]
    assert found == [0.153, 0.049, 0.011, 0.0]


def test_no_customer_is_printed(figures: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = zveil("audit", DATA, *FIELDS, "--rotate", "30d", "--report", page)
    assert done.returncode == 0, done.stderr
    # Ids are five digits, 12346 to 18287; counts of five digits have a comma.
    assert not {n for n in range(12_346, 18_288) if f" {n} ".encode() in done.stdout}
    assert "anonymous" not in page.read_text(encoding="utf-8")
    assert figures["values"] == []
