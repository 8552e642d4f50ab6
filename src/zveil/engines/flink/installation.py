"""What a job needs on this machine: Flink, Java, and the operator compiled for them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).with_name("java")
POM = Path(__file__).with_name("pom.xml")
MAIN = "zveil.flink.Job"
_KAFKA = "KafkaEnds.java"
_RELEASE = "17"
_DIST = re.compile(r"flink-dist-(\d+\.\d+)[\w.-]*\.jar")
_FITTING = "2.3"


class MissingPart(Exception):  # noqa: N818  # what is missing is the user's to add
    """Something is missing that a job needs; the words say how to add it."""


@dataclass(frozen=True)
class Installation:
    """A Flink on this machine.

    Parameters
    ----------
    home
        Its folder, with ``bin`` and ``lib``.
    version
        Such as ``2.3``.
    """

    home: Path
    version: str

    @classmethod
    def find(cls) -> Installation:
        """Find the one that ``FLINK_HOME`` names, or that of the package ``apache-flink``.

        Raises
        ------
        MissingPart
            If there is none, or another version.
        """
        named = os.environ.get("FLINK_HOME")
        found = importlib.util.find_spec("pyflink") if not named else None
        places = list(found.submodule_search_locations or ()) if found else [named]
        home = Path(places[0]) if places and places[0] else None
        matches = (
            [] if home is None else [_DIST.fullmatch(path.name) for path in home.glob("lib/*")]
        )
        versions = [match[1] for match in matches if match]
        if home is None or not versions:
            where = f"FLINK_HOME: there is no Flink in {named}" if named else "Flink is not there"
            raise MissingPart(
                f"{where}; add it with: pip install 'zveil[flink]', in an environment of its own"
            )
        if versions[0] != _FITTING:
            raise MissingPart(
                f"Flink {versions[0]}: the operator is made for Flink {_FITTING}; add it with: "
                "pip install 'zveil[flink]'"
            )
        return cls(home, versions[0])

    @property
    def program(self) -> list[str]:
        """The command that talks to clusters; by its shell, since packages may not be run."""
        return ["bash", str(self.home / "bin" / "flink")]

    def job(self, *, kafka: bool, connectors: Path | None = None) -> Path:
        """Give the jar of the operator; it is compiled the first time, and kept.

        Parameters
        ----------
        kafka
            Topics are read or written, which takes the connector for Kafka.
        connectors
            A folder with the jars of that connector; fetched by Maven by default.

        Raises
        ------
        MissingPart
            If it cannot be compiled.
        """
        folder = None
        if kafka:
            folder = connectors if connectors is not None else fetched()
        jars = [] if folder is None else sorted(folder.glob("*.jar"))
        if folder is not None and not any(jar.name.startswith("flink-connector-kafka") or
                                          jar.name.startswith("flink-sql-connector-kafka")
                                          for jar in jars):  # fmt: skip
            raise MissingPart(f"--connectors: {folder} holds no flink-connector-kafka-*.jar")
        sources = sorted(SOURCES.rglob("*.java"))
        if not kafka:
            sources = [source for source in sources if source.name != _KAFKA]
        known = hashlib.sha256(f"{self.version} {[jar.name for jar in jars]}".encode())
        for source in sources:
            known.update(source.read_bytes())
        made = cache() / f"flink-{known.hexdigest()[:16]}.jar"
        if not made.exists():
            made.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=made.parent, prefix="compiling-") as folder_made:
                whole = self._compiled(sources, jars, Path(folder_made))
                whole.replace(made)
        return made

    def _compiled(self, sources: list[Path], jars: list[Path], folder: Path) -> Path:
        classes = folder / "classes"
        path = os.pathsep.join([f"{self.home / 'lib'}/*", *map(str, jars)])
        done = subprocess.run(  # noqa: S603  # the compiler, on our own sources
            [
                compiler(), "--release", _RELEASE, "-proc:none", "-nowarn", "-encoding", "UTF-8",
                "-classpath", path, "-d", str(classes), *map(str, sources),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise MissingPart(f"the operator could not be compiled:\n{done.stderr[-4000:]}")
        whole = folder / "job.jar"
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as jar:
            for made in sorted(classes.rglob("*.class")):
                jar.write(made, made.relative_to(classes).as_posix())
            for other in jars:
                # Flink takes what lies there onto the path of the job.
                jar.write(other, f"lib/{other.name}", zipfile.ZIP_STORED)
        return whole


def compiler() -> str:
    """Find the compiler of Java."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=f"{home}/bin" if home else None)
    if found is None:
        raise MissingPart(
            f"javac is not there: the operator is compiled at its first use, by Java {_RELEASE} or "
            f"later; add it with: apt-get install openjdk-{_RELEASE}-jdk-headless, or the like"
        )
    return found


def fetched() -> Path:
    """Give the folder of the connector for Kafka; the first time Maven fetches it.

    Raises
    ------
    MissingPart
        If it cannot be fetched.
    """
    folder = cache() / f"connectors-{hashlib.sha256(POM.read_bytes()).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingPart(
            "the connector for Kafka is no part of Flink's package: put its jars "
            f"({coordinates()}) into a folder and name it with --connectors, or install Maven, "
            "which fetches them"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: a folder that is there is never half full.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as fetching:
        jars = Path(fetching) / "jars"
        done = subprocess.run(  # noqa: S603  # Maven, on our own list
            [
                maven, "--batch-mode", "--quiet", "--file", str(POM),
                "dependency:copy-dependencies", "-DincludeScope=runtime",
                f"-DoutputDirectory={jars}",
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise MissingPart(
                f"Maven could not fetch the connector for Kafka:\n{done.stdout[-4000:]}"
            )
        try:
            jars.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another was quicker
                raise
    return folder


def coordinates() -> str:
    """Name the connector as Maven does."""
    text = POM.read_text(encoding="utf-8")
    found = re.search(r"<artifactId>(flink-connector-kafka)</artifactId>\s*<version>([^<]+)", text)
    return f"org.apache.flink:{found[1]}:{found[2]}" if found else "flink-connector-kafka"


def cache() -> Path:
    """Give the folder for what is made or fetched once."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zveil"
