"""Documents about engines: their commands are run, on the broker."""

from pathlib import Path

import pytest
from broker import Broker
from test_documents import ON_A_BROKER, run_blocks


@pytest.mark.parametrize("document", ON_A_BROKER, ids=lambda document: document.name)
def test_blocks_run_and_print_what_is_said(
    document: Path, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(document, tmp_path, broker.bootstrap)
