"""The jars of Apache Kafka: resolved by Maven once, kept in a cache folder."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

POM = Path(__file__).parent / "pom.xml"
JAVA_AT_LEAST = 17


class MissingError(Exception):
    """Something is missing that the tests of engines need; the message says what to install."""


def java() -> str:
    """Find a Java that the broker runs on."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None:
        raise MissingError(
            f"no Java: the broker needs Java {JAVA_AT_LEAST} or later, "
            "for example from `apt-get install openjdk-17-jdk-headless`"
        )
    asked = subprocess.run([found, "-XshowSettings:properties", "-version"],
                           capture_output=True, text=True, check=True)  # fmt: skip
    (version,) = re.findall(r"java\.specification\.version = (\S+)", asked.stderr)
    if float(version) < JAVA_AT_LEAST:
        raise MissingError(f"Java {version}: the broker needs Java {JAVA_AT_LEAST} or later")
    return found


def maven() -> str:
    """Find Maven."""
    found = shutil.which("mvn")
    if found is None:
        raise MissingError(
            "no Maven: the broker's jars are resolved by `mvn`, "
            "for example from `apt-get install maven`"
        )
    return found


def cache() -> Path:
    """Give the folder for what is fetched once."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zveil"


def jars(pom: Path = POM) -> Path:
    """Give the folder of the jars that a pom asks for; the first time they are fetched."""
    folder = cache() / f"jars-{hashlib.sha256(pom.read_bytes()).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: a folder that is there is never half full.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as fetching:
        fetched = Path(fetching) / "jars"
        done = subprocess.run(
            [maven(), "--batch-mode", "--quiet", "--file", pom, "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={fetched}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if done.returncode:
            raise MissingError(f"Maven could not fetch the broker's jars:\n{done.stdout[-4000:]}")
        try:
            fetched.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another run was quicker
                raise
    return folder


if __name__ == "__main__":
    try:
        java()
        print(jars())
    except MissingError as error:
        raise SystemExit(f"test-engines: {error}") from None
