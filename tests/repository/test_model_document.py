"""The document of the model: what it prints is what the program prints, and it names everything."""

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

import zveil.model
from zveil.cli import main

ROOT = Path(__file__).resolve().parents[2]


def test_the_plan_in_the_documents_is_what_is_printed() -> None:
    text = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```console\n\$ zveil (plan .+)\n([^`]+)^```$", text, re.MULTILINE)
    assert CliRunner().invoke(main, shlex.split(block[0])).stdout == block[1]


def test_every_public_name_of_the_model_is_documented() -> None:
    text = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    results = {"Anonymity", "ClassAnonymity", "Option", "Plan", "Utility"}
    words = set(re.findall(r"\w+", text))
    assert set(zveil.model.__all__) - results <= words
    for name in zveil.model.__all__:
        assert getattr(zveil.model, name).__doc__
