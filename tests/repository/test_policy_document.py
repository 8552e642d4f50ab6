"""The page on policy files: every key there is, and no other."""

import re
from pathlib import Path

from zveil.policy.schema import SCHEMA

ROOT = Path(__file__).resolve().parents[2]


def test_every_key_is_documented_and_no_other() -> None:
    text = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)\.(\w+)` \|", text, re.MULTILINE)
    keys = [(name, key) for name, section in SCHEMA.items() for key in section.keys]
    assert listed == keys
    required = re.findall(r"^\| `(\w+)\.(\w+)` \| required \|", text, re.MULTILINE)
    assert required == [(name, key) for name, s in SCHEMA.items() for key in s.required]
