"""Documents about Spark: their scripts are run."""

from pathlib import Path

import pytest
from test_documents import IN_SPARK, blocks, run_shell, scripts, settled

# A session of Spark takes its time to start, on a busy machine above all.
PATIENCE_S = 400


@pytest.mark.parametrize("document", IN_SPARK, ids=lambda document: document.name)
def test_blocks_run_and_print_what_is_said(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [block for block in blocks(document) if block.kind == "python"]
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    for block, output in scripts(document):
        printed = run_shell(block.text, tmp_path, patience_s=PATIENCE_S)
        assert output is not None, f"line {block.line}"
        assert settled(printed) == settled(output.text), f"line {output.line}"
