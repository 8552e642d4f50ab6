"""The document about Flink: its commands are run, on the cluster and the broker."""

import re
from pathlib import Path

from broker import Broker
from cluster import Cluster
from test_documents import ON_A_CLUSTER, check_setup, is_setup, scripts, settled
from test_engine_documents import ADDRESS, printed_by

REST = "localhost:8081"


def test_blocks_run_and_print_what_is_said(
    cluster: Cluster, broker: Broker, tmp_path: Path
) -> None:
    (document,) = ON_A_CLUSTER
    typed, wanted = [], {}
    for block, output in scripts(document):
        if is_setup(block):
            for command in block.text.splitlines():
                check_setup(command)
            continue
        typed.append(f"echo 'line {block.line}:'\n{block.text}\n")
        if output is not None:
            wanted[block.line] = output.text
    script = "".join(typed).replace(ADDRESS, broker.bootstrap).replace(REST, cluster.address)
    parts = re.split(r"^line (\d+):\n", printed_by(script, tmp_path), flags=re.MULTILINE)[1:]
    found = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    assert len(found) == len(typed)
    for line, text in wanted.items():
        assert settled(found[line]).strip() == settled(text).strip(), f"line {line}"
