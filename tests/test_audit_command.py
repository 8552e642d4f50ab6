"""`zveil audit` through the installed program: every format, its JSON, its page, its errors."""

import csv
import json
import os
import pty
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from program import FIELDS, PROGRAM

START = 1_767_225_600

# Nobody but one user has these; none may be seen in anything that is printed.
PLANTED_USER = "ada-lovelace-1815"
PLANTED_VALUE = "clinic-for-rare-things.example"


def zveil(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, encoding="utf-8", timeout=120,
        **options,
    )  # fmt: skip


def events(count: int = 3_000, seed: int = 1) -> list[dict[str, Any]]:
    random = Random(seed)
    found = [
        {
            "ts": START + number * 60,
            "uid": f"user-{random.randrange(200):03}-of-many",
            "host": f"site-{min(int(random.paretovariate(0.8)), 500)}.example",
        }
        for number in range(count)
    ]
    for number in range(7, count, 100):  # users who show nothing that others do
        found[number] |= {"uid": f"quiet-{number}-of-many", "host": f"own-{number}.example"}
    found[count // 2] |= {"uid": PLANTED_USER, "host": PLANTED_VALUE}
    found[count // 3] |= {"uid": PLANTED_USER, "host": "site-1.example"}
    return found


def write(folder: Path, kind: str, rows: list[dict[str, Any]], name: str = "events") -> Path:
    path = folder / f"{name}.{kind}"
    if kind == "ndjson":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def released(folder: Path, source: Path, *options: str) -> Path:
    path = folder / f"released{source.suffix}"
    done = zveil("run", source, *FIELDS, "-z", "5", "--window", "1h", "-o", path, "-q", *options)
    assert done.returncode == 0, done.stderr
    return path


def figures(*arguments: str | Path) -> dict[str, Any]:
    done = zveil("audit", *arguments, *FIELDS, "--json")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def original(folder: Path) -> Path:
    return write(folder, "ndjson", events())


@pytest.fixture(scope="module")
def output(folder: Path, original: Path) -> Path:
    return released(folder, original)


def test_the_keys_that_stay(output: Path, original: Path) -> None:
    found = figures(output, "--original", original)
    assert found["users"] == len({row["uid"] for row in events()})
    assert 0 < found["users_visible"] < found["users"]
    assert 0 < found["released"] < found["observed"] == len(events())
    ks = {"2", "3", "5", "10"}
    assert set(found["k_share"]) == ks
    assert list(found["k_share_by_time"]) == ["week", "day", "hour"]
    assert all(set(shares) == ks for shares in found["k_share_by_time"].values())
    assert set(found["unicity"]) == {"1", "2", "3", "4", "5"}
    every = [found["k_share"], *found["k_share_by_time"].values(), found["unicity"]]
    assert all(share is None or 0 <= share <= 1 for shares in every for share in shares.values())
    assert found["ids_match"] is False
    assert found["users_silent"] == found["users"] - found["users_visible"]


@pytest.mark.parametrize("kind", ["ndjson", "csv", "parquet"])
def test_every_format_gives_the_same(kind: str, tmp_path: Path, output: Path) -> None:
    source = write(tmp_path, kind, events())
    found = figures(released(tmp_path, source), "--original", source, "--rotate", "24h")
    wanted = figures(output, "--original", source, "--rotate", "24h")
    for key in (
        "users",
        "users_visible",
        "released",
        "observed",
        "k_share",
        "k_share_by_time",
        "k",
    ):
        assert found[key] == wanted[key], key
    assert found["rotation"]["k"] == wanted["rotation"]["k"]
    assert found["rotation"]["linkage"]["same_set"] == wanted["rotation"]["linkage"]["same_set"]


def test_without_the_original_what_was_veiled_is_unknown(output: Path) -> None:
    found = figures(output)
    assert found["observed"] is found["veiled"] is found["users_silent"] is None
    assert found["users"] == found["users_visible"]
    assert "unknown" in zveil("audit", output, *FIELDS).stdout


def test_raw_ids_are_matched_with_the_original(tmp_path: Path, original: Path) -> None:
    path = released(tmp_path, original, "--raw-users")
    assert figures(path, "--original", original)["ids_match"] is True


def test_blanked_records_show_users_but_nothing_released(
    tmp_path: Path, original: Path, output: Path
) -> None:
    blanked = figures(released(tmp_path, original, "--veiled", "blank"))
    dropped = figures(output)
    assert blanked["users"] > blanked["users_visible"] == dropped["users_visible"]
    assert blanked["released"] == dropped["released"]


def test_standard_input_is_read(output: Path) -> None:
    with output.open("rb") as file:
        done = zveil("audit", *FIELDS, "--json", stdin=file)
    assert json.loads(done.stdout)["released"] == figures(output)["released"]


def test_several_fields(tmp_path: Path) -> None:
    rows = [row | {"ref": "all" if n % 2 else None} for n, row in enumerate(events(400))]
    path = write(tmp_path, "ndjson", rows)
    found = figures(path, "--attribute", "ref", "--original", path)
    assert [(each["field"], each["observed"]) for each in found["fields"]] == [
        ("ref", 200), ("host", 400)]  # fmt: skip
    assert found["released"] == 600


def test_rotation_and_linkage(output: Path) -> None:
    found = figures(output, "--rotate", "24h")["rotation"]
    assert found["period_s"] == 86_400
    assert found["periods"][0]["start"] == "2026-01-01T00:00Z"
    assert found["linkage"]["both"] > 0


def test_ids_that_changed_cannot_be_linked(tmp_path: Path) -> None:
    rows = [row | {"uid": f"{row['uid']}-{row['ts'] // 86_400}"} for row in events(3_000)]
    path = write(tmp_path, "ndjson", rows)
    assert figures(path, "--rotate", "1d")["rotation"]["linkage"] is None
    assert "cannot be known" in zveil("audit", path, *FIELDS, "--rotate", "1d").stdout


def outputs(folder: Path, output: Path, original: Path, *options: str) -> dict[str, str]:
    """Everything that the program says, in every way it can."""
    page = folder / "report.html"
    common = [output, "--original", original, *FIELDS, "--rotate", "24h", *options]
    text = zveil("audit", *common, "--report", page)
    assert text.returncode == 0, text.stderr
    return {
        "text": text.stdout + text.stderr,
        "json": zveil("audit", *common, "--json").stdout,
        "page": page.read_text(encoding="utf-8"),
    }


@pytest.mark.parametrize("options", [[], ["--show-values", "3"]])
def test_no_user_and_no_rare_value_is_printed(
    tmp_path: Path, original: Path, options: list[str]
) -> None:
    # All ids and values left in, which is the worst that can be audited.
    for name, words in outputs(tmp_path, original, original, *options).items():
        assert words, name
        assert PLANTED_USER not in words, name
        assert PLANTED_VALUE not in words, name
        assert "-of-many" not in words, name
        assert ("site-1.example" in words) is bool(options), name
        shown = set(re.findall(r"site-\d+\.example", words))
        users: dict[str, set[str]] = {}
        for row in events():
            users.setdefault(row["host"], set()).add(row["uid"])
        assert all(len(users[site]) >= 3 for site in shown), name


def test_the_word_is_never_said(tmp_path: Path, original: Path, output: Path) -> None:
    for name, words in outputs(tmp_path, output, original).items():
        assert "anonymous" not in words.lower(), name
        assert "anonymised" not in words.lower(), name
        assert re.search("singl", words, re.IGNORECASE), name
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(word in page for word in ("Singling out", "Linkability", "Inference"))


class Page(HTMLParser):
    """Reads a page and holds that every tag is closed."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag


def test_the_page_needs_nothing_from_outside(tmp_path: Path, original: Path, output: Path) -> None:
    text = outputs(tmp_path, output, original)["page"]
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open
    names = [tag for tag, _ in page.tags]
    assert names.count("svg") == 5
    assert names.count("table") >= 6
    assert not {"script", "link", "iframe", "img", "object", "embed", "image"} & set(names)
    assert not re.search(r"https?:|//\w|@import|src=", text)
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in {"href", "xlink:href"}:
                assert value is not None
                assert value.removeprefix("#") in ids, value
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]
    for target in re.findall(r"url\(([^)]*)\)", text):
        assert target.strip("'\"").removeprefix("#") in ids


def test_words_of_the_data_cannot_become_part_of_the_page(tmp_path: Path) -> None:
    rows = [{"ts": START + n, "uid": f"u{n}", "<b>host": "<script>alert(1)</script>\x1b[2J"}
            for n in range(9)]  # fmt: skip
    path = write(tmp_path, "ndjson", rows)
    page = tmp_path / "report.html"
    fields = ["--time", "ts", "--user", "uid", "--attribute", "<b>host"]
    done = zveil("audit", path, *fields, "--show-values", "2", "--report", page)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    text = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "<b>" not in text


def test_nothing_released_is_told(tmp_path: Path, original: Path) -> None:
    path = tmp_path / "empty.ndjson"
    path.write_text("")
    text = outputs(tmp_path, path, original)
    found = json.loads(text["json"])
    assert (found["released"], found["users_visible"]) == (0, 0)
    assert found["k_share"] == {"2": None, "3": None, "5": None, "10": None}
    assert "Nothing was released" in text["text"]
    assert "Nothing was released" in text["page"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--rotate", "soon"], "--rotate"),
        (["--rotate", "1s"], "--rotate"),
        (["--points", "year"], "--points"),
        (["--sample", "0"], "--sample"),
        (["--seed", "-1"], "--seed"),
        (["--show-values", "1"], "--show-values"),
        (["--report", "no/such/folder/report.html"], "--report"),
        (["--original", "nothing.csv"], "nothing.csv"),
        (["--user", "nobody"], "nobody"),
        (["--attribute", "uid"], "--attribute"),
    ],
)
def test_a_wrong_option_is_named(tmp_path: Path, options: list[str], name: str) -> None:
    path = write(tmp_path, "csv", events(10))
    done = zveil("audit", path, *FIELDS, *options)
    assert done.returncode == 2, done.stderr
    assert not done.stdout
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_never_replaces_an_input(output: Path) -> None:
    before = output.read_bytes()
    done = zveil("audit", output, *FIELDS, "--report", output)
    assert done.returncode == 2
    assert "--report" in done.stderr
    assert output.read_bytes() == before


def test_a_field_that_no_line_has(output: Path) -> None:
    done = zveil("audit", output, "--time", "ts", "--user", "nobody", "--attribute", "host")
    assert done.returncode == 3
    assert "--user" in done.stderr


def test_a_file_without_a_header_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(f"{START},{PLANTED_USER},{PLANTED_VALUE}\n" * 3)
    done = zveil("audit", path, *FIELDS)
    assert done.returncode == 2
    assert PLANTED_USER not in done.stderr
    assert PLANTED_VALUE not in done.stderr
    assert "header" in done.stderr


def test_standard_input_cannot_be_both() -> None:
    done = zveil("audit", "-", "--original", "-", *FIELDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "only once" in done.stderr


def test_bad_lines_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "ndjson", events(50))
    with path.open("a") as file:
        file.write('{"ts": broken\n{"uid": "u"}\n')
    assert figures(path)["bad"] == 2


def test_matplotlib_is_asked_for_by_name(tmp_path: Path, output: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError")
    done = zveil("audit", output, *FIELDS, "--report", tmp_path / "r.html",
                 env={**os.environ, "PYTHONPATH": str(tmp_path)})  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'zveil[report]'" in done.stderr


def test_a_reader_that_goes_away_is_no_error(output: Path) -> None:
    command = (
        f"'{PROGRAM}' audit '{output}' {' '.join(FIELDS)} --json | true; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True)
    assert done.stdout.strip() == "0"
    assert not done.stderr


def test_progress_on_a_terminal(output: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [PROGRAM, "audit", output, *FIELDS], stderr=theirs, stdout=subprocess.PIPE
    )
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "reading what was released" in shown
    assert shown.endswith("\x1b[2K"), "the line is taken away"
    assert b"\x1b" not in done.stdout


def test_the_same_seed_prints_the_same(output: Path) -> None:
    one, two = (zveil("audit", output, *FIELDS, "--rotate", "24h").stdout for _ in range(2))
    assert one == two
