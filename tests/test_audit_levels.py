"""`zveil audit --policy`: of which level the released values are."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from program import FIELDS, zveil

START = 1_767_225_600
POLICY = """
time = {{ field = "ts" }}
user = {{ field = "uid" }}

[[attribute]]
field = "path"
z = 4
window = "10m"
hierarchy = [{{ segments = "/", levels = 2 }}]

[[attribute]]
fields = ["lat", "lon"]
name = "cell"
z = 3
window = "10m"
hierarchy = [{{ cells = [9, 5] }}]
{more}
"""


def rows(count: int = 1_500) -> list[dict[str, Any]]:
    random = Random(1)
    return [
        {
            "ts": START + 20 * number,
            "uid": f"u{random.randrange(30)}",
            "path": "/".join(random.choices("abc", k=3)),
            "lat": round(47 + random.randrange(5) / 200, 3),
            "lon": round(8 + random.randrange(5) / 200, 3),
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("kind", ["ndjson", "parquet"])
def test_the_audit_counts_levels_as_the_run_did(tmp_path: Path, kind: str) -> None:
    policy, source = tmp_path / "zveil.toml", tmp_path / f"in.{kind}"
    policy.write_text(POLICY.format(more=""))
    if kind == "ndjson":
        source.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    else:
        pq.write_table(pa.Table.from_pylist(rows()), source)
    left = tmp_path / f"out.{kind}"
    done = zveil("run", source, "--policy", policy, "-o", left, "--json")
    assert done.returncode == 0, done.stderr
    ran = {
        outcome["attribute"]: [level["released"] for level in outcome["levels"]]
        for outcome in json.loads(done.stderr)["outcomes"]
    }
    fingerprint = json.loads(done.stderr)["policy"]
    assert all(min(counts) > 0 for counts in ran.values()), ran
    done = zveil("audit", left, "--policy", policy, "--original", source, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    audited = {
        field["field"]: [level["released"] for level in field["levels"]]
        for field in found["levels"]
    }
    assert audited == ran
    assert found["policy"] == fingerprint
    assert found["observed"] == 2 * len(rows())
    report = tmp_path / "report.html"
    text = zveil("audit", left, "--policy", policy, "--report", report).stdout.decode()
    assert text.endswith(f"\npolicy {fingerprint}\n")
    assert f"Released by the policy {fingerprint}." in report.read_text()
    assert "cells of resolution 9" in text
    assert "the value itself" not in text


def test_a_policy_stands_instead_of_the_fields(tmp_path: Path) -> None:
    policy = tmp_path / "zveil.toml"
    policy.write_text(POLICY.format(more=""))
    done = zveil("audit", "--policy", policy, *FIELDS)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--time: the policy file says that" in done.stderr
    done = zveil("audit", "--time", "ts", "--user", "uid")
    assert b"--attribute: say which field, or name a --policy that does" in done.stderr
    done = zveil("audit", "--policy", tmp_path / "none.toml")
    assert b"--policy: " in done.stderr
    assert b"no such file" in done.stderr
