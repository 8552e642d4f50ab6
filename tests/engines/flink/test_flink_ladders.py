"""Labels that the operator makes are those of the core, whatever it is given."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from zveil._native import NameFilter
from zveil.act.levels import Levels
from zveil.engines.flink.description import Records, described
from zveil.engines.flink.installation import SOURCES, compiler
from zveil.engines.flink.properties import written
from zveil.hierarchy import Hierarchy, Step, parse
from zveil.io import Format
from zveil.names import Names
from zveil.policy import Policy
from zveil.policy.parts import Attribute, Time, User

Labels = list[str | None]
UNITS = ("s", "ms", "us", "ns", "iso")
TREE = (
    '\ufeffexample.org, news ,all\n x.co.uk ,"shops, large", all\n\nlonely\n,,,,\ncom.unknown,tld\n'
)
CLIMB = Path(__file__).with_name("java") / "Climb.java"

HIERARCHIES: dict[str, list[Step]] = {
    "domain": ["domain"],
    "icann": [{"domain": "icann"}],
    "prefix": [{"prefix": [32, 24, 9, 0], "prefix6": [128, 64, 33, 0]}],
    "prefix of IPv4": [{"prefix": [31, 1]}],
    "prefix of IPv6": [{"prefix6": [96, 95, 47, 1]}],
    "time": [{"time": ["minute", "hour", "day", "month", "year"]}],
    **{f"time in {unit}": [{"time": ["minute"], "format": unit}] for unit in UNITS},
    "bins": [{"bins": [0.25, 10, 100]}],
    "wide bins": [{"bins": [30, "6e17"]}],
    "segments": [{"segments": "/", "levels": 3}],
    "long separator": [{"segments": "::", "levels": 2}],
    "table": ["domain", {"table": "tree.csv"}],
}

TOP = (
    b"\xef\xbb\xbfrank,domain\n1,Example.ORG\n\n# none\n22,*.co.uk\r\n ,.x-1.com.\n"
    b"\xff\xfe.raw\nb\xc3\xbccher.de\n"
)
LISTS = {
    "only": {"only": TOP},
    "except": {"except_": b"*...\n7\n1.2.3.4\n::1\nEXAMPLE.org\n*\n" + b"a" * 65_535},
    "both": {"only": TOP + b"0,example.org", "except_": b"ads.example.org\n,org.ads"},
}


@dataclass(frozen=True)
class Operator:
    """The ladders of the operator, in a Java of their own."""

    folder: Path
    java: "subprocess.Popen[str]"

    def climb(self, number: int, texts: Sequence[str]) -> list[Labels]:
        return [[None if label == "-" else bytes.fromhex(label).decode() for label in line.split()]
                for line in self.ask(number, texts)]  # fmt: skip

    def ask(self, number: int, texts: Sequence[str]) -> list[str]:
        asked, answered = self.folder / "asked", self.folder / "answered"
        asked.write_text("".join(f"{text.encode().hex()}\n" for text in texts))
        assert self.java.stdin is not None
        assert self.java.stdout is not None
        self.java.stdin.write(f"{number} {asked} {answered}\n")
        self.java.stdin.flush()
        assert self.java.stdout.readline() == "written\n"
        return answered.read_text().splitlines()


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """Compile what climbs, and tell it all hierarchies: each is an attribute of one policy."""
    folder = tmp_path_factory.mktemp("ladders")
    classes, told = folder / "classes", folder / "told.properties"
    command = [compiler(), "-d", classes, "-encoding", "UTF-8", "-sourcepath", SOURCES, CLIMB]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    attributes = [Attribute(name, z=2, window="1h", hierarchy=hierarchy(name, folder))
                  for name in HIERARCHIES]  # fmt: skip
    attributes += [Attribute(name, z=2, window="1h", **lists(name, folder)) for name in LISTS]
    policy = Policy(time=Time("ts", format="s"), user=User("uid"), attributes=tuple(attributes))
    records = Records(format=Format.NDJSON, max_line=1000)
    told.write_text(written(described(policy, records, gate_key=bytes(32), user_key=bytes(32))))
    started = subprocess.Popen(
        [shutil.which("java") or "java", "-XX:+UseSerialGC", "-cp", classes, "zveil.flink.Climb",
         told], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with started:
        yield Operator(folder, started)


def hierarchy(name: str, folder: Path) -> Hierarchy:
    (folder / "tree.csv").write_text(TREE, encoding="utf-8")
    return parse(HIERARCHIES[name], folder)


def lists(name: str, folder: Path) -> dict[str, Names]:
    for key, text in LISTS[name].items():
        (folder / f"{name} {key}").write_bytes(text)
    return {key: Names.read(folder / f"{name} {key}") for key in LISTS[name]}


def of_core(name: str, texts: Sequence[str], folder: Path) -> list[Labels]:
    made = Levels(hierarchy(name, folder)).of([pa.array(texts, pa.large_string())])
    columns = [column.dictionary_decode().to_pylist() for column in reversed(made)]
    return [list(labels) for labels in zip(*columns[1:], strict=True)]


def agree(operator: Operator, name: str, texts: Sequence[str]) -> list[Labels]:
    wanted = of_core(name, texts, operator.folder)
    found = operator.climb(list(HIERARCHIES).index(name), texts)
    assert len(found) == len(wanted)
    for text, one, other in zip(texts, found, wanted, strict=True):
        assert one == other, (name, text)
    return wanted


WORDS = ["www", "a", "example", "x-1", "_srv", "ck", "kawasaki", "city", "bücher", "xn--bcher-kva",
         "公司", "ΑΣ", "ΣΑΣ", "Σ", "İ", "\u212a", "ǅ", "ß", "ẞ", "ﬀ", "😀", "Ꮳ", "𞤀", "۱۲", "0x1f",
         "7", "", " ", "a b", "a\x00b", "A.Σ'Σ", "é\u0301", "\u200d", "\ud7ff", "A" * 63,
         "ü" * 70]  # fmt: skip
ENDS = ["org", "com", "co.uk", "ck", "www.ck", "kawasaki.jp", "city.kawasaki.jp", "github.io",
        "公司.cn", "unknown", "bd", "compute.amazonaws.com", "1", "0x", "0xAF", "๏", "ΟΣ", "TEST.",
        ""]  # fmt: skip
DOTS = ["."] * 20 + ["..", "\u3002", "\uff0e", "\uff61", ":", "/"]
BEHIND = [""] * 10 + [".", "..", ":80", ":", ":8o", ":٣", ".:443", "%eth0", " "]
ODD = ["", ".", "..", ":", ":80", "::1", "[::1]:80", "127.0.0.1", "127.1", "1.5", "-1", "1e300",
       "true", "https://example.org/", "user@example.org", "localhost", "com", "uk", "*.ck",
       "!www.ck", "a" * 252, "a" * 253, "a" * 254, "a." * 126 + "b", "a." * 126 + "bc",
       "a." * 126 + "b.", "é" * 300, "é" * 506, "é" * 507, "☃" * 58 + ".org", "xn--", "xn--.org",
       "\ufeffa.org"]  # fmt: skip


def drawn(random: Random) -> str:
    """Draw letters of all scripts, many of them of two sizes, and a sigma now and then."""
    points = [random.choice((0x61, 0x41, 0x3A3, 0x3A3, 0x2E, random.randrange(0x80, 0x600),
                             random.randrange(0x1C80, 0x2E00), random.randrange(0xA640, 0xABC0),
                             random.randrange(0x10400, 0x1E960), random.randrange(0x80, 0xD800),
                             random.randrange(0xE0001, 0xE01F0), random.randrange(0x110000)))
              for _ in range(random.randint(1, 7))]  # fmt: skip
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)


@pytest.mark.parametrize("name", ["domain", "icann"])
def test_domains(name: str, operator: Operator) -> None:
    random, hosts = Random(name), list(ODD)
    for _ in range(6_000):
        labels = [random.choice(WORDS) for _ in range(random.randint(0, 3))]
        host = "".join(label + random.choice(DOTS) for label in labels)
        host += random.choice(ENDS) + random.choice(BEHIND)
        hosts.append(random.choice([host, host.upper(), host.lower()]))
        hosts.append(f"{drawn(random)}.{drawn(random)}.org")
    found = agree(operator, name, hosts)
    assert sum(label is None for (label,) in found) > 500
    assert len({label for (label,) in found}) > 3_000


def test_every_letter_has_the_small_form_that_it_has_in_the_core(operator: Operator) -> None:
    letters = [chr(point) for point in range(0x21, 0x110000) if not 0xD800 <= point < 0xE000]
    hosts = ["".join(letters[at : at + 40]) + ".example" for at in range(0, len(letters), 40)]
    agree(operator, "domain", [*hosts, *(f"x{letter}y.example" for letter in letters[:0x3000])])


GROUPS = ["", "0", "0", "0", "00", "1", "a", "A", "f", "ffff", "FFFF", "0db8", "00000", "g",
          "1.2.3.4", "255", "256", "01", "-1", "+1", "٣"]  # fmt: skip
ADDRESSES = ["", ":", "::", ":::", "::1", "1::", "::1::", "1.2.3.4", "01.2.3.4", "1.2.3",
             "1.2.3.4.5", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4/8", "256.1.1.1", "0x1.2.3.4",
             "::ffff:1.2.3.4", "::FFFF:102:304", "::1.2.3.4", "64:ff9b::1.2.3.4", "1.2.3.4::",
             "::1.2.3.4:5", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "1:2:3:4:5:6:7:8",
             "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8", "1:2:3:4:5:6:7:8::",
             "1::2:3:4:5:6:7:8", "%", "%a", "fe80::1%eth0", "fe80::1%a%b", "1.2.3.4%x",
             "fe80:0:0:1::", "1:0:0:2:0:0:0:3", "1:0:0:2:3:0:0:4", "[::1]", "::1:80", "1.2.3.4:80",
             "::ffff:1.2.3", "\u0661.2.3.4", "::ffff:0:0", "1.2.3.04", "1.2.3.", ".1.2.3", "1..2.3",
             "7", "x"]  # fmt: skip


# With zeros in many places.
RUNS = [
    2**128 - 1,
    2**128 - 2**64,
    2**64 - 1,
    2**32 - 1,
    0xFFFF << 32 | 2**32 - 1,
    2**96 - 1,
    0xFFFF_0000_0000_FFFF_FFFF_0000_0000_0000,
    0xFFFF_FFFF_0000_0000_0000_FFFF_0000_FFFF,
]


@pytest.mark.parametrize("name", ["prefix", "prefix of IPv4", "prefix of IPv6"])
def test_networks(name: str, operator: Operator) -> None:
    random, texts = Random(1), list(ADDRESSES)
    for _ in range(3_000):
        texts.append(".".join(random.choice(("0", "7", "10", "255", "256", "03", ""))
                              for _ in range(random.choice((3, 4, 4, 4, 4, 4, 5)))))  # fmt: skip
        texts.append(":".join(random.choice(GROUPS) for _ in range(random.randint(2, 9))))
        address = IPv6Address(random.getrandbits(128) & random.choice(RUNS))
        texts.append(random.choice((str(address), address.exploded, str(address).upper())))
    found = agree(operator, name, texts)
    assert sum(labels[0] is None for labels in found) > 2_000
    assert len({labels[1] for labels in found}) > 2


MOMENTS = ["", "0", "-0", "1", "-1", "1.", ".5", "1e3", "1E+3", "1e", "1e+",
           "0e99999999999999999999", "1e-99999999999999999999", "-1e-99999999999999999999",
           "1e00000000000000000001", "1e18", "9223372036.854775807", "9223372036.854775808",
           "-9223372036.854775807", "+17e8", "-9223372036.854775808", "-9223372036.8547758071",
           "99999999999", "100000000000", "0" * 5_000 + "17", "17" + "0" * 5_000 + "e-5000",
           "1." + "0" * 5_000 + "1", "2024-02-29", "2023-02-29", "2024-02-29T12:30",
           "2024-02-29 12:30:59.999999999999Z", "2024-02-29T24:00", "2024-02-29T12:30:60",
           "2024-02-29T12:30+01", "2024-02-29T12:30+0130", "2024-02-29T00:00+23:59",
           "2024-02-29T12:30-01:3", "2024-02-29T", "2024-02-29T12", "2024-02-29Z",
           "1677-09-21T00:12:44Z", "1677-09-21T00:12:43Z", "2262-04-11T23:47:16.854775807Z",
           "2262-04-12", "0000-01-01", "9999-12-31", "2024-2-29", "202a-02-29",
           "2024-02-29T12:30:00,5", "2024-02-29T12:30:00.", "1234-67-9", "2024-02-29t12:30",
           "é24-02-29", "NaN", "true", "1 ", "0x10", "1_000"]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in HIERARCHIES if name.startswith("time")])
def test_dates(name: str, operator: Operator) -> None:
    random, texts = Random(2), list(MOMENTS)
    for _ in range(1_500):
        texts.append(
            f"{random.choice(('', '-', '+'))}{random.randrange(10 ** random.randint(1, 22))}"
        )
        texts.append(f"{texts[-1]}.{random.randrange(10 ** random.randint(1, 12))}")
        texts.append(f"{random.choice(texts)}e{random.randint(-20, 20)}")
        moment = datetime(1900, 1, 1) + timedelta(seconds=random.randrange(10**10))
        zone = random.choice(("", "Z", "+05:30", "-0800", "+14", "z", "+24:00"))
        texts.append(f"{moment.isoformat(random.choice('T '))}{zone}")
    found = agree(operator, name, texts)
    assert len({labels[0] for labels in found}) > 500


@pytest.mark.parametrize("name", ["bins", "wide bins"])
def test_bins(name: str, operator: Operator) -> None:
    random, texts = (
        Random(3),
        [*MOMENTS, "1e5000", "1e5001", "0e5001", "-1e-5000", "1e05000", str(2**127 - 1)],
    )
    texts += [
        str(2**127),
        str(-(2**127)),
        str(2**127 - 25),
        f"{2**127}.0",
        "0" * 60 + "1",
        "1.0" + "0" * 40,
    ]
    for _ in range(3_000):
        texts.append(f"{random.choice(('', '-'))}{random.randrange(10 ** random.randint(1, 41))}")
        texts.append(f"{random.choice(texts)}.{random.randrange(10 ** random.randint(1, 4))}")
        texts.append(f"{random.choice(texts)}e{random.randint(-60, 60)}")
    found = agree(operator, name, texts)
    assert len({labels[0] for labels in found}) > 500


def test_segments_and_tables(operator: Operator) -> None:
    random = Random(4)
    paths = ["".join(random.choices("/:aé😀 ", k=random.randint(0, 12))) for _ in range(3_000)]
    agree(operator, "segments", paths)
    agree(operator, "long separator", paths)
    found = agree(
        operator, "table", ["www.example.org", "X.co.uk", "a.com.unknown", "lonely", "a.b", ""]
    )
    assert found[1] == ["x.co.uk", "shops, large", "all", None, None]


@pytest.mark.parametrize("name", LISTS)
def test_names(name: str, operator: Operator) -> None:
    random, texts = (
        Random(5),
        [*ODD, *ADDRESSES, "domain", "*", "a.*", "*.", "a,b", "7,1.2.3.4", "x" * 70_000 + ".co.uk"],
    )
    texts += [
        "a" * 65_535,
        "b." + "a" * 65_535,
        "a" * 65_535 + ".",
        "a" * 65_535 + ":80",
        "b\u00dccher.de",
    ]
    parts = ["www", "ads", "Example", "example", "x-1", "co", "é", "", "bücher"]
    for _ in range(3_000):
        host = ".".join(random.choice(parts) for _ in range(random.randint(0, 3)))
        host += random.choice(
            (".example.org", ".EXAMPLE.ORG", ".co.uk", ".com", "bücher.de", ".raw", "")
        )
        texts.append(host + random.choice(BEHIND))
    found = operator.ask(len(HIERARCHIES) + list(LISTS).index(name), texts)
    held = lists(name, operator.folder)
    only, except_ = (held[key].names if key in held else None for key in ("only", "except_"))
    bits, _ = NameFilter(only, except_).mask(pa.array(texts))
    wanted = [bool(bits[at // 8] >> at % 8 & 1) for at in range(len(texts))]
    assert found == [str(each).lower() for each in wanted]
    assert 300 < sum(wanted) < len(texts) - 300
