"""The benchmark, small: everything is measured, nothing is judged, absent peers are named."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PEERS = ("zveil_peers", "zanonymity", "orjson")


def bench(*arguments: str | Path, modules: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PYTHONPATH": str(modules)} if modules else {})}
    return subprocess.run(
        [sys.executable, BENCHMARKS / "run.py", *arguments],
        capture_output=True, text=True, encoding="utf-8", env=environment, timeout=300,
    )  # fmt: skip


def sections() -> set[str]:
    """The sections there are, as --help names them."""
    listed = re.search(r"only these sections: ([a-z,\s]+)", bench("--help").stdout)
    assert listed
    return {name.strip() for name in listed[1].split(",")}


def measured(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The sections that gave a result, as the lines of progress name them."""
    return set(re.findall(r"^ *[\d.]+ s  (\w+)", done.stderr, re.MULTILINE))


def documented() -> set[str]:
    """What the lines of the report begin with, as the README explains them."""
    text = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    table = text.partition("| lines |")[2].partition("\n\n")[0]
    lines = set(re.findall(r"^\| (\S[^|]*?) \|", table, re.MULTILINE))
    assert lines
    return lines


def require_all_shown_and_none_judged(
    done: subprocess.CompletedProcess[str], kept: dict[str, Any]
) -> None:
    assert measured(done) == sections()
    shown = {result["what"] for result in [*kept["ratios"], *kept["figures"]]}
    absent = {line for line in documented() if not any(what.startswith(line) for what in shown)}
    assert not absent, "the README explains lines that the report does not hold"
    assert all(what in done.stdout for what in shown)
    assert "not judged" in done.stdout
    assert not re.search(r"\b(met|MISSED)\b", done.stdout)
    assert kept["scale"]["judged"] is False
    assert {ratio["met"] for ratio in kept["ratios"]} == {None}


@pytest.fixture(scope="module")
def without_peers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that hides every peer from whoever imports modules from it first."""
    folder = tmp_path_factory.mktemp("modules")
    for name in PEERS:
        (folder / f"{name}.py").write_text("raise ImportError\n", encoding="utf-8")
    return folder


def test_a_quick_run_holds_every_section_and_judges_nothing(tmp_path: Path) -> None:
    done = bench("--quick", "--out", tmp_path / "run.json")
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    require_all_shown_and_none_judged(done, kept)


def test_peers_that_are_not_installed_are_named(tmp_path: Path, without_peers: Path) -> None:
    done = bench("--quick", "--out", tmp_path / "run.json", modules=without_peers)
    assert done.returncode == 0, done.stderr
    for name in PEERS:
        assert f"not measured: {name} is not installed" in done.stdout
    kept = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    require_all_shown_and_none_judged(done, kept)


def test_a_quick_run_is_not_kept_unless_told() -> None:
    before = sorted((BENCHMARKS / "runs").iterdir())
    done = bench("--quick", "--only", "tail")
    assert done.returncode == 0, done.stderr
    assert measured(done) == {"tail"}
    assert "Kept" not in done.stdout
    assert sorted((BENCHMARKS / "runs").iterdir()) == before


def test_kept_runs_have_the_form_of_a_new_one(tmp_path: Path) -> None:
    bench("--quick", "--only", "tail", "--out", tmp_path / "run.json")
    new = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    runs = [*(BENCHMARKS / "runs").glob("*.json")]
    assert runs
    for run in runs:
        kept = json.loads(run.read_text(encoding="utf-8"))
        assert kept.keys() == new.keys(), run.name
        for part in ("ratios", "figures"):
            assert {frozenset(result) for result in kept[part]} == {frozenset(new[part][0])}
        assert kept["scale"].keys() <= new["scale"].keys()
        assert kept["scale"]["judged"], f"{run.name}: only whole runs are kept"
