"""k by an independent program, pycanon, on small random tables: run by `make check-k`.

It pins its dependencies, so it gets an environment of its own, which takes minutes to make; that is
why this is no test. Ours: the sizes of the classes of users with equal sets. Theirs: a table with a
row for each user and a column for each point, all of them quasi-identifiers.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np
import pyarrow as pa

from zveil.audit import read
from zveil.audit.crowds import class_sizes
from zveil.audit.points import Points, Resolution

TABLES = 6
USERS, EVENTS, VALUES, DAYS = 60, 90, 6, 2
DAY_NS = 86_400_000_000_000

THEIRS = """
import json, sys
import pandas
from pycanon.anonymity import k_anonymity
from pycanon.anonymity.utils.aux_anonymity import get_equiv_class
for line in sys.stdin:
    table = pandas.DataFrame(json.loads(line))
    names = list(table.columns)
    sizes = sorted(len(rows) for rows in get_equiv_class(table, names))
    print(json.dumps([int(k_anonymity(table, names)), sizes]))
"""


def program(folder: Path) -> Path:
    """Give the Python of an environment with pycanon; made if it is not there."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("installing pycanon (a few minutes the first time) ...")
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "pycanon"], check=True)
        (folder / "ready").touch()
    return python


def tables() -> list[tuple[Resolution, Points]]:
    """Make up streams of few users, values and days, so that many users are alike."""
    found = []
    for seed in range(TABLES):
        random = np.random.default_rng(seed)
        times = random.integers(0, DAYS * DAY_NS, EVENTS)
        batch = pa.record_batch(
            {
                "t": pa.array(times, pa.timestamp("ns", tz="UTC")),
                "u": random.integers(0, USERS, EVENTS),
                "a": np.minimum(random.geometric(0.5, EVENTS), VALUES),
            }
        )
        points = Points.of(read([batch], user="u", attributes=["a"]))
        found += [(each, points) for each in (Resolution.SET, Resolution.DAY)]
    return found


def row_for_each_user(resolution: Resolution, points: Points) -> dict[str, list[int]]:
    """Give a column for each point, 1 where a user has it."""
    traces = points.traces(resolution)
    columns: dict[str, list[int]] = {}
    triples = zip(traces.user.tolist(), traces.value.tolist(), traces.bin.tolist(), strict=True)
    for user, value, day in triples:
        columns.setdefault(f"{value} on {day}", [0] * points.users)[user] = 1
    return columns


def main(folder: str) -> int:
    made = tables()
    lines = "".join(json.dumps(row_for_each_user(*each)) + "\n" for each in made)
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run([program(Path(folder).resolve()), "-c", THEIRS], input=lines,
                              stdout=subprocess.PIPE, text=True, check=True, cwd=empty)  # fmt: skip
    wrong = 0
    for (resolution, points), line in zip(made, done.stdout.splitlines(), strict=True):
        smallest, sizes = json.loads(line)
        k = class_sizes(points, points.traces(resolution))
        ours = sorted(size for size in np.unique(k).tolist()
                      for _ in range(np.count_nonzero(k == size) // size))  # fmt: skip
        is_same = ours == sizes and k.min() == smallest
        wrong += not is_same
        told = f"{points.users} users, {len(ours)} classes, k from {k.min()} to {k.max()}"
        print(f"{resolution.label:>4}: {told}: {'the same' if is_same else 'DIFFERENT'}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ".venv-check-k"))
