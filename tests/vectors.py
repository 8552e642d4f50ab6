"""The conformance vectors as Python values; conformance/README.md describes the files."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "conformance"


def value(written: object) -> Any:  # whatever it stands for
    """Turn a user, a value, a level or a time, as the files write it, into what it stands for."""
    if isinstance(written, dict):
        ((kind, text),) = written.items()
        return {"float": float, "bytes": bytes.fromhex}[kind](text)
    if isinstance(written, list):
        return [value(item) for item in written]
    return written


def load() -> list[dict[str, Any]]:
    """Read all vectors, those of a file in their order."""
    return [
        {"file": file.stem, **vector}
        for file in sorted(FOLDER.glob("*.json"))
        for vector in json.loads(file.read_text(encoding="utf-8"))
    ]


# Decorates a test that takes `vector`: runs it once for each.
every_vector = pytest.mark.parametrize(
    "vector", load(), ids=lambda vector: f"{vector['file']}: {vector['name']}"
)
