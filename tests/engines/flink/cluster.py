"""A real cluster of Flink for tests: a JobManager and TaskManagers, on ports of the loopback."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from broker import HOST, free_ports

from zveil.engines.flink.installation import Installation

PATIENCE_S = 120

# Little memory, and failures that are seen within seconds.
SETTINGS = {
    "jobmanager.memory.process.size": "640m",
    "jobmanager.memory.jvm-metaspace.size": "128m",
    "jobmanager.memory.jvm-overhead.min": "64m",
    "jobmanager.memory.jvm-overhead.max": "64m",
    "jobmanager.memory.off-heap.size": "64m",
    "taskmanager.memory.task.heap.size": "160m",
    "taskmanager.memory.framework.heap.size": "64m",
    "taskmanager.memory.framework.off-heap.size": "48m",
    "taskmanager.memory.task.off-heap.size": "16m",
    "taskmanager.memory.managed.size": "0m",
    "taskmanager.memory.network.min": "32m",
    "taskmanager.memory.network.max": "32m",
    "taskmanager.memory.jvm-metaspace.size": "128m",
    "taskmanager.memory.jvm-overhead.min": "64m",
    "taskmanager.memory.jvm-overhead.max": "64m",
    "taskmanager.load-balance.mode": "SLOTS",
    "heartbeat.interval": "1000 ms",
    "heartbeat.timeout": "6000 ms",
    "env.java.opts.all": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
# Java since 17 keeps its own insides closed, which parts of Flink look at.
_OPENED = ("java.net", "java.lang", "java.text", "java.time", "java.util", "java.util.concurrent",
           "java.util.concurrent.atomic", "java.util.concurrent.locks", "sun.net.util",
           "java.nio")  # fmt: skip


def _ends_with_us() -> None:
    if sys.platform == "linux":
        # The system ends it with the process that started it, however that one ends.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Cluster:
    """One JobManager and some TaskManagers, in a folder of their own."""

    def __init__(self, folder: Path, *, managers: int = 2, slots: int = 2, **settings: Any) -> None:
        """Choose ports; `start` makes it answer. Settings are Flink's own, with _ for each dot."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.flink = Installation.find()
        self.managers: list[subprocess.Popen[bytes]] = []
        self._count, self._slots = managers, slots
        rest, rpc, blob = free_ports(3)
        self.address = f"{HOST}:{rest}"
        said = SETTINGS | {
            "jobmanager.rpc.address": HOST,
            "jobmanager.rpc.port": rpc,
            "jobmanager.bind-host": HOST,
            "taskmanager.bind-host": HOST,
            "taskmanager.host": HOST,
            "blob.server.port": blob,
            "rest.address": HOST,
            "rest.bind-address": HOST,
            "rest.port": rest,
            "io.tmp.dirs": folder / "tmp",
            "taskmanager.numberOfTaskSlots": slots,
        }
        said |= {name.replace("_", "."): value for name, value in settings.items()}
        opened = " ".join(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED)
        said["env.java.opts.all"] = f"{said['env.java.opts.all']} {opened}"
        conf = folder / "conf"
        conf.mkdir()
        (folder / "tmp").mkdir()
        lines = [f'{name}: "{value}"\n' for name, value in said.items()]
        (conf / "config.yaml").write_text("".join(lines), encoding="utf-8")
        for each in (self.flink.home / "conf").glob("log*"):
            (conf / each.name).write_bytes(each.read_bytes())
        self._environment = os.environ | {
            "FLINK_CONF_DIR": str(conf), "FLINK_LOG_DIR": str(folder / "log"),
            "FLINK_PID_DIR": str(folder), "FLINK_HOME": str(self.flink.home),
        }  # fmt: skip
        self._manager: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start all, and wait until the TaskManagers have come."""
        self._manager = self._started("jobmanager.sh")
        try:
            for _ in range(self._count):
                self.managers.append(self._started("taskmanager.sh"))
            self.until(
                lambda: self.slots() == self._count * self._slots, "TaskManagers do not come"
            )
        except BaseException:
            self.stop()
            raise

    def add(self) -> None:
        """Start one more TaskManager."""
        self.managers.append(self._started("taskmanager.sh"))

    def _started(self, script: str) -> subprocess.Popen[bytes]:
        number = len(list(self.folder.glob("*.out")))
        with (self.folder / f"{script}-{number}.out").open("wb") as out:
            return subprocess.Popen(
                ["bash", self.flink.home / "bin" / script, "start-foreground"],  # noqa: S607
                env=self._environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, preexec_fn=_ends_with_us,
            )  # fmt: skip

    def get(self, path: str) -> Any:
        """Ask the JobManager."""
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return json.loads(answer.read())

    def slots(self) -> int:
        """Count the slots of all TaskManagers that have come."""
        try:
            return int(self.get("/overview")["slots-total"])
        except OSError:
            return -1

    def until(self, happened: Any, words: str) -> None:
        """Wait for something."""
        until = time.monotonic() + PATIENCE_S
        while not happened():
            if self._manager is not None and self._manager.poll() is not None:
                raise AssertionError(f"the JobManager has ended:\n{self.said()}")
            assert time.monotonic() < until, f"{words}:\n{self.said()}"
            time.sleep(0.1)

    def jobs(self) -> list[dict[str, Any]]:
        """List the jobs."""
        return list(self.get("/jobs/overview")["jobs"])

    def said(self) -> str:
        """Give the ends of all logs."""
        logs = [*self.folder.glob("*.out"), *self.folder.glob("log/*.log")]
        return "\n".join(
            f"{log.name}:\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}"
            for log in logs
        )

    def logged(self) -> str:
        """Give all that was logged."""
        logs = [*self.folder.glob("*.out"), *self.folder.glob("log/*")]
        return "".join(log.read_text(encoding="utf-8", errors="replace") for log in logs)

    def stop(self) -> None:
        """End all of it."""
        started = [*self.managers, *([] if self._manager is None else [self._manager])]
        for process in started:
            process.kill()
        for process in started:
            process.wait()

    def __enter__(self) -> "Cluster":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
