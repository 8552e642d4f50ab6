"""The public names: exactly those documented, each with its words, and one version."""

import ast
import dataclasses
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import zveil
from zveil import Gate, Stats

ROOT = Path(__file__).resolve().parents[2]
API = (ROOT / "docs/api.md").read_text(encoding="utf-8")


def headings(level: int, prefix: str) -> list[str]:
    marks = "#" * level
    return re.findall(rf"^{marks} `{re.escape(prefix)}(\w+)`$", API, re.MULTILINE)


def stub_docs() -> dict[str, str | None]:
    """Give the docstrings of the native gate, which the stub holds."""
    tree = ast.parse((ROOT / "src/zveil/_native.pyi").read_text(encoding="utf-8"))
    (gate,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Gate")
    docs: dict[str, str | None] = {}
    for node in gate.body:
        if isinstance(node, ast.FunctionDef):
            docs[node.name] = docs.get(node.name) or ast.get_docstring(node)
    return docs


def test_the_public_names_are_those_documented() -> None:
    documented = headings(2, "zveil.")
    assert sorted(documented) == sorted(zveil.__all__)
    assert len(set(documented)) == len(documented)


def test_every_public_name_is_there() -> None:
    assert not [name for name in zveil.__all__ if not hasattr(zveil, name)]


@pytest.mark.parametrize("name", sorted(set(zveil.__all__) - {"__version__"}))
def test_every_public_name_has_a_docstring(name: str) -> None:
    words = getattr(zveil, name).__doc__
    assert words
    assert words.strip()
    # A dataclass without words gets its signature for a docstring.
    assert not words.startswith(f"{name}(")


def test_the_members_of_the_gate_are_those_documented() -> None:
    members = {name for name in dir(Gate) if not name.startswith("_")}
    assert set(headings(3, "Gate.")) == members


@pytest.mark.parametrize("name", headings(3, "Gate."))
def test_every_member_of_the_gate_has_words(name: str) -> None:
    assert getattr(Gate, name).__doc__ or stub_docs()[name]


def test_the_fields_of_the_stats_are_those_documented() -> None:
    section = API.partition("## `zveil.Stats`")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    documented = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert documented == [field.name for field in dataclasses.fields(Stats)]


def test_the_options_of_the_gate_are_those_documented() -> None:
    section = API.partition("## `zveil.Gate`")[2].partition("\n### ")[0]
    documented = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    code = Gate.__new__.__code__
    options = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    assert documented == list(options)


def test_there_is_one_version() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    assert cargo["workspace"]["package"]["version"] == zveil.__version__
    assert version("zveil") == zveil.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{zveil.__version__}]" in changelog
