"""The benchmark of the engines, small: everything is measured, nothing is judged."""

import json
import subprocess
import sys
from pathlib import Path

DELIVERIES = ("exactly-once", "at-least-once")
BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "engines"


def test_a_quick_run_measures_everything_and_judges_nothing(tmp_path: Path) -> None:
    before = sorted(BENCHMARK.glob("runs/*"))
    out = tmp_path / "run.json"
    done = subprocess.run(
        [sys.executable, BENCHMARK / "run.py", "--quick", "--out", out],
        capture_output=True, text=True, timeout=1_800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "not judged" in done.stdout
    kept = json.loads(out.read_text(encoding="utf-8"))
    assert kept["versions"].keys() >= {"zveil", "confluent-kafka", "kafka", "pyspark"}
    shown = {(ratio["what"], ratio["case"].partition(",")[0], ratio["beside"], ratio["met"])
             for ratio in kept["ratios"]}  # fmt: skip
    peers = ("the same in Python", "the same in Python, one by one", "the loop without a gate")
    wanted = {("Kafka, one worker", delivery, peer, None)
              for delivery in DELIVERIES for peer in peers}  # fmt: skip
    wanted |= {("Kafka, delay, p99", "exactly-once", "200 ms", None)}
    wanted |= {("Kafka, delay, p99", "at-least-once", "20 ms", None)}
    wanted |= {("Spark, two cores", "20", "zveil run", None)}
    wanted |= {("Flink, one core", pace, "PyFlink's own operator", None)
               for pace in ("throughput", "at-once")}  # fmt: skip
    places = {"Spark": ("20",), "Flink": ("A=50 U=1e3 z=20",)}
    places |= dict.fromkeys(("Kafka, workers", "Kafka, with the broker"), DELIVERIES)
    wanted |= {(f"{engine}, cores to keep up", place, "one process of zveil run", None)
               for engine, cases in places.items() for place in cases}  # fmt: skip
    assert shown == wanted
    assert sorted(BENCHMARK.glob("runs/*")) == before


def test_one_engine_does_not_need_the_environments_of_others() -> None:
    program = "import run; print(*run.versions(['kafka']))"
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=BENCHMARK, capture_output=True, text=True
    )
    assert (told.stdout, told.stderr) == ("kafka\n", "")
