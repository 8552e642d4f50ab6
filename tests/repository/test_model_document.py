"""The document of the model names everything that is in it."""

import re
from pathlib import Path

import zveil.model

ROOT = Path(__file__).resolve().parents[2]


def test_every_public_name_of_the_model_is_documented() -> None:
    text = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    results = {"Anonymity", "ClassAnonymity", "Option", "Plan", "Utility"}
    words = set(re.findall(r"\w+", text))
    assert set(zveil.model.__all__) - results <= words
    for name in zveil.model.__all__:
        assert getattr(zveil.model, name).__doc__
