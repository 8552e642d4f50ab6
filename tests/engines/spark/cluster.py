"""A standalone cluster of Spark: a master and two workers, from the jars of the PySpark package."""

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark
from jars import java

HOST = "127.0.0.1"
PATIENCE_S = 120
_JARS = Path(pyspark.__file__).parent / "jars"
# As Spark's own scripts start its processes, for a Java that guards its insides.
_OPENED = ("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect",
           "java.base/java.io", "java.base/java.net", "java.base/java.nio", "java.base/java.util",
           "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
           "java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/sun.nio.cs",
           "java.base/sun.security.action", "java.base/sun.util.calendar")  # fmt: skip

# Few threads, and little time spent on compiling what does not run for long.
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class ClusterError(Exception):
    """A process of the cluster did not come up; the message has the end of its log."""


class Cluster:
    """A master and workers of one core each, on the loopback only; a context manager."""

    def __init__(self, folder: Path, *, workers: int = 2, heap: str = "256m") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._heap = heap
        self._workers = workers
        self._processes: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def __enter__(self) -> "Cluster":
        try:
            package = "org.apache.spark.deploy"
            where = ("--host", HOST, "--port", "0", "--webui-port", "0")
            log = self._start("master", f"{package}.master.Master", *where)
            self.url = self._until(log, r"Starting Spark master at (spark://\S+)")
            for number in range(self._workers):
                name = f"worker-{number}"
                log = self._start(
                    name, f"{package}.worker.Worker", *where, "--cores", "1", "--memory", "1g",
                    "--work-dir", str(self.folder / name), self.url,
                )  # fmt: skip
                self._until(log, r"(Successfully registered with master)")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()

    def _start(self, name: str, main: str, *arguments: str) -> Path:
        log = self.folder / f"{name}.log"
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
        # What Spark's scripts say to the processes that they start.
        environment = os.environ | {
            "SPARK_LOCAL_IP": HOST, "SPARK_HOME": str(_JARS.parent), "SPARK_SCALA_VERSION": "2.13",
        }  # fmt: skip
        with log.open("wb") as errors:
            self._processes.append(
                subprocess.Popen(
                    [java(), f"-Xmx{self._heap}", *_QUICK, *opened, "-cp",
                     f"{_JARS}/*", main, *arguments],
                    stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, env=environment,
                )
            )  # fmt: skip
        return log

    def _until(self, log: Path, said: str) -> str:
        until = time.monotonic() + PATIENCE_S
        while True:
            text = log.read_text(encoding="utf-8", errors="replace")
            if found := re.search(said, text):
                return found[1]
            if self._processes[-1].poll() is not None or time.monotonic() > until:
                raise ClusterError(f"{log.stem}: did not come up:\n{text[-4000:]}")
            time.sleep(0.1)


def session(cluster: Cluster, **settings: Any) -> Any:
    """Start a session on a cluster; settings with _ for each dot."""
    from pyspark.sql import SparkSession

    # Tasks run the interpreter that has zveil.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = HOST
    said = {
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.driver.extraJavaOptions": " ".join(_QUICK),
        "spark.executor.extraJavaOptions": " ".join(_QUICK),
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.warehouse.dir": str(cluster.folder / "warehouse"),
    }
    said |= {name.replace("_", "."): str(value) for name, value in settings.items()}
    builder = SparkSession.builder.master(cluster.url).appName("zveil")
    for name, value in said.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
