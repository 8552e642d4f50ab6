"""`zveil model` and `zveil plan`: installed, and through click's runner."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from zveil.cli import main

PROGRAM = Path(sys.executable).parent / "zveil"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def answer(*arguments: str) -> Any:
    done = call(*arguments, "--json")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def test_the_model_at_the_defaults() -> None:
    found = answer("model")
    assert found["p_q"] == pytest.approx(4.06832e-5, rel=2e-6)
    assert set(found["p_k"]) == {"paper", "averaged", "averaged_visible"}
    assert found["p_k"]["paper"] == pytest.approx(0.86921, abs=6e-6)
    assert found["p_k"]["averaged"] == pytest.approx(0.1257, abs=6e-5)
    assert found["p_k"]["averaged_visible"] == pytest.approx(0.1244, abs=6e-5)
    assert found["released"] == pytest.approx(0.603, abs=1e-3)
    assert 0 < found["error"]["averaged"] < 1e-5
    assert (found["z"], found["k"], found["horizon"]) == (20, 2, 24)
    assert any("set of values" in words for words in found["assumptions"])


def test_the_model_with_other_parameters() -> None:
    found = answer(
        "model", "-z", "150", "-k", "3", "--users", "5000", "--attributes", "20",
        "--rate", "0.2", "--window", "2", "--horizon", "1",
    )  # fmt: skip
    assert found["p_k"]["averaged"] == pytest.approx(0.95332, abs=1e-5)


def test_the_table_names_assumptions_and_what_is_wrong_with_the_formula() -> None:
    shown = call("model").stdout
    assert "independent and alike" in shown
    assert "the set of values" in shown
    assert re.search(r"paper's formula +0\.86921 +too optimistic by 0\.74356", shown)
    assert re.search(r"visible users +0\.12444", shown)
    assert max(map(len, shown.splitlines())) <= 100


def test_the_formula_may_be_the_same_or_lower() -> None:
    assert "the same here" in call("model", "-z", "60000").stdout
    assert "lower by" in call("model", "-k", "4", "--horizon", "45").stdout


def test_the_plot_is_plain_text_of_the_curve() -> None:
    done = call("model", "--plot", "--users", "2000", "--attributes", "100")
    assert done.exit_code == 0
    assert done.stdout.isascii()
    rows = re.findall(r"^ \d\.\d \|(.*)$", done.stdout, re.MULTILINE)
    assert len(rows) == 11
    # The formula is at the top first; the average follows, and falls again for the largest z.
    assert rows[0].index(".") < rows[0].index("o")
    assert rows[1].strip().endswith("o")
    curve = answer("model", "--plot", "--users", "2000", "--attributes", "100")["curve"]
    assert curve["z"][0] == 1
    assert curve["z"][-1] == 200
    assert len(curve["z"]) == len(curve["paper"]) == len(curve["averaged_visible"])


@pytest.mark.parametrize(
    ("arguments", "z"),
    [
        (["--horizon", "24"], 163),
        (["--horizon", "4"], 60),
        (["--horizon", "1"], 26),
        (["--horizon", "4", "--count", "all"], 40),
    ],
)
def test_the_plan_as_json(arguments: list[str], z: int) -> None:
    found = answer("plan", "-k", "2", "--probability", "0.95", *arguments)
    assert found["z"] == z
    assert found["p_k"] >= 0.95
    assert found["horizon"] == float(arguments[1])
    assert found["count"] == ("all" if "all" in arguments else "visible")
    assert 0 < found["released"] < 1
    for option in found["options"]:
        assert set(option) == {"rotate_every", "z", "p_k", "released"}
    assert found["options"][0]["released"] == max(each["released"] for each in found["options"])


def test_the_plan_for_reading() -> None:
    shown = call("plan", "--horizon", "4").stdout
    assert "ids that stay: z = 60" in shown
    assert re.search(r"^ +4 windows +60 +0\.95\d+ +47\.6%$", shown, re.MULTILINE)
    assert shown.count("advice:") == 1
    assert "change user ids every window and take z = 26" in shown
    assert "visible users" in shown
    assert "the set of values" in shown
    assert "\x1b" not in shown


def test_a_plan_where_ids_must_change() -> None:
    arguments = [
        "plan", "--users", "10", "--attributes", "6", "--rate", "0.0513", "--exponent", "1e-6",
        "--horizon", "12", "--probability", "0.3",
    ]  # fmt: skip
    found = answer(*arguments)
    assert (found["z"], found["p_k"], found["released"]) == (None, None, None)
    assert found["options"]
    shown = call(*arguments).stdout
    assert "with ids that stay, no z reaches it over 12 windows" in shown
    assert "advice: change user ids every 4 windows" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "-k", "5", "--users", "4"], "-k: expected at most the number of users, 4"),
        (["plan", "-k", "1"], "-k"),
        (["plan", "--probability", "1"], "--probability: expected a number above 0 and below 1"),
        (["plan", "--users", "40"], "no z reaches 0.95 for k = 2 among visible users"),
        (["plan", "--count", "some"], "--count"),
        (["model", "--horizon", "0"], "--horizon: expected a finite number above 0, got 0.0"),
        (["model", "--rate", "nan"], "--rate: expected a finite number above 0, got nan"),
        (["model", "--users", "0"], "--users"),
        (["model", "-z", "0"], "-z"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(arguments: list[str], words: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert not done.stdout
    assert words in done.stderr


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, encoding="utf-8", timeout=120
    )


@pytest.mark.parametrize("command", ["model", "plan"])
def test_the_installed_program(command: str) -> None:
    done = run(command, "--horizon", "1", "--json")
    assert done.returncode == 0
    assert not done.stderr, "progress is for terminals"
    assert json.loads(done.stdout)["horizon"] == 1
    shown = run(command, "--help")
    assert shown.returncode == 0
    assert "--horizon" in shown.stdout
    for name in ("--users", "--attributes", "--rate", "--json"):
        assert re.search(rf"^ +{name}\b", shown.stdout, re.MULTILINE), name
