"""`zveil figures`: the installed program."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import zveil.cli.figures
from zveil.cli import main
from zveil.figures import NAMES, PAPER, write

PROGRAM = Path(sys.executable).parent / "zveil"
QUICK = ("--quick", "--only", "z-by-k")


def figures(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "figures", *arguments], capture_output=True, text=True, encoding="utf-8",
        timeout=300, env=os.environ | variables,
    )  # fmt: skip


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with every figure, without what takes long: measuring."""
    folder = tmp_path_factory.mktemp("figures") / "not" / "there"
    done = figures(folder, "--quick", "--streams", "0")
    assert done.returncode == 0, done.stderr
    listed = [Path(word).name for line in done.stdout.splitlines() for word in line.split()]
    assert listed == [f"{name}.{form}" for name in PAPER for form in ("csv", "png", "svg")]
    return folder


def test_every_file_is_written(album: Path) -> None:
    assert len(list(album.iterdir())) == 3 * len(PAPER)
    for name in PAPER:
        assert (album / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
        assert (album / f"{name}.csv").read_text().count("\n") > 12
        drawing = (album / f"{name}.svg").read_text()
        assert drawing.rstrip().endswith("</svg>")
        assert "<dc:date>" not in drawing


@pytest.mark.parametrize("name", ["day-rank", "day-z"])
def test_what_is_synthetic_says_so(album: Path, name: str) -> None:
    lines = (album / f"{name}.csv").read_text().splitlines()[1:]
    assert all("SYNTHETIC" in line for line in lines)
    assert "<dc:title>SYNTHETIC day" in (album / f"{name}.svg").read_text()
    assert b"SYNTHETIC day" in (album / f"{name}.png").read_bytes()


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    done = figures(tmp_path / "one", *QUICK, "--seed", "7")
    assert done.returncode == 0, done.stderr
    list(write(tmp_path / "two", only=["z-by-k"], seed=7, quick=True))
    files = sorted((tmp_path / "one").iterdir())
    assert [file.name for file in files] == ["z-by-k.csv", "z-by-k.png", "z-by-k.svg"]
    for file in files:
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes(), file.name
    assert ",measured,visible,50000,5000,24,20,2,," in files[0].read_text()


def test_without_matplotlib_pictures_are_refused_and_data_are_not(tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError")
    path = {"PYTHONPATH": str(tmp_path)}
    done = figures(tmp_path / "out", *QUICK, **path)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: --format: the pictures need Matplotlib")
    assert "pip install 'zveil[report]'" in done.stderr
    assert not (tmp_path / "out").exists()
    done = figures(tmp_path / "out", *QUICK, "--format", "csv", "--streams", "0", **path)
    assert done.returncode == 0, done.stderr
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["z-by-k.csv"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "hold-z", "--streams", "0"], "--streams: expected at least 1 for hold-z"),
        (["--only", "zed"], f"--only: expected {', '.join(NAMES)}, got 'zed'"),
        (["--only", "rank,"], "--only: expected"),
        (["--format", "gif"], "--format: expected some of csv, png, svg, got 'gif'"),
        (["--streams", "-1"], "--streams"),
        (["--seed", "x"], "--seed"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(main, ["figures", str(tmp_path / "out"), *arguments])
    assert done.exit_code == 2
    assert words in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    done = CliRunner().invoke(main, ["figures", str(tmp_path / "file"), "--format", "csv"])
    assert done.exit_code == 2
    assert "expected a folder" in done.stderr
    below = CliRunner().invoke(
        main, ["figures", str(tmp_path / "file" / "below"), *QUICK, "--format", "csv"]
    )
    assert below.exit_code == 1
    assert below.stderr.startswith("Error: ")
    assert (tmp_path / "file").read_text() == "kept"


def test_progress_is_for_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [PROGRAM, "figures", tmp_path, *QUICK, "--format", "csv"]
    done = subprocess.run(command, stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "z-by-k: deciding" in shown
    rest = [*QUICK, "--format", "csv", "--streams", "0", "--quiet"]
    quiet = CliRunner().invoke(main, ["figures", str(tmp_path), *rest])
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_the_names_are_those_there_are(tmp_path: Path) -> None:
    assert zveil.cli.figures.NAMES == NAMES
    with pytest.raises(ValueError, match="only: expected rank"):
        write(tmp_path, only=["zed"])
    with pytest.raises(ValueError, match="streams: expected a whole number from 0"):
        write(tmp_path, streams=-1)
