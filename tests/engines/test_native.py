"""`zveil run` tells what the definition tells."""

from pathlib import Path

import native
import pytest
from cases import exact
from suite import CASES


@pytest.mark.parametrize("name", CASES)
def test_it_tells_what_one_gate_tells(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert exact(native.told(case, tmp_path)) == exact(case.told())


@pytest.mark.parametrize("name", ["a long stream", "several attributes", "late by the window"])
def test_threads_change_nothing(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert exact(native.told(case, tmp_path, "--threads", "2")) == exact(case.told())
