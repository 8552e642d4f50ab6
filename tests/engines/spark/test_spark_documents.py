"""Documents about Spark: their scripts are run."""

from pathlib import Path

import pytest
from test_documents import IN_SPARK, run_blocks


@pytest.mark.parametrize("document", IN_SPARK, ids=lambda document: document.name)
def test_blocks_run_and_print_what_is_said(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    run_blocks(document, tmp_path)
