"""`zveil policy`: policy files checked, explained, compared and drafted."""

from __future__ import annotations

import json
import textwrap
from typing import Any, NoReturn

import click

from zveil.cli.inputs import BAD_INPUT, FAILED, USAGE, format_option
from zveil.policy import Policy, PolicyError, read_policy
from zveil.policy.file import PolicyFileError

_WIDTH = 88
_FATES = {
    "kept": "keeps its state",
    "lost": "begins anew",
    "new": "is new",
    "gone": "is decided about no more",
}


@click.group(short_help="Check and explain a policy file, or draft one from a sample.")
def policy() -> None:
    """Check and explain a policy file, or draft one from a sample of the data.

    \b
    zveil policy new sample.ndjson -o zveil.toml
    zveil policy check zveil.toml
    zveil policy check zveil.toml --against yesterday.toml
    """  # noqa: D301  # click's mark for text that must not be wrapped


@policy.command(short_help="Check a policy file, and say in sentences what it means.")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--against", metavar="OLD", type=click.Path(dir_okay=False),
    help="Say what of the state made under the policy OLD can be kept under this one.",
)  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="The fingerprint only, or what is wrong.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def check(file: str, against: str | None, quiet: bool, as_json: bool) -> None:
    """Check FILE, and say in sentences what it means; its fingerprint comes last.

    All that is wrong with it is told at once, with file, line, column and key.

    \b
    Exit codes:
      0    a policy
      1    a file cannot be read
      2    not a policy, or wrong usage
    """  # noqa: D301  # click's mark for text that must not be wrapped
    found = _read(file, as_json=as_json)
    old = None if against is None else _read(against, as_json=as_json)
    if as_json:
        click.echo(json.dumps(_as_dict(found, old)))
        return
    if not quiet:
        click.echo(_explained(found))
        if old is not None:
            click.echo(_compared(old, found))
    click.echo(f"policy {found.fingerprint}")


@policy.command(short_help="Draft a policy file from a sample of the data.")
@click.argument("sample", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False),
    help="Write there instead of to standard output; an existing file is not replaced.",
)  # fmt: skip
@format_option("Format of the sample, if its name and content do not tell.")
def new(sample: tuple[str, ...], output: str | None, stated: str | None) -> None:
    """Write a policy file with comments, drafted from the first 20,000 records of SAMPLE.

    SAMPLE is as for `zveil run`; - is standard input. Time, user and what is to be decided about
    are guessed from names and from how values repeat. Each choice has its reasons beside it, and
    what is not certain is marked UNSURE. No value of the sample is written.

    \b
    Exit codes:
      0    done
      1    reading or writing failed
      2    wrong usage, or FILE is there already
      3    not one record could be read
    """  # noqa: D301  # click's mark for text that must not be wrapped
    from zveil.draft import draft, guess, read_sample
    from zveil.io import Format, SourceError, UnknownFormatError, find

    try:
        records = read_sample(find(sample, Format(stated) if stated else None))
    except UnknownFormatError as error:
        _fail(str(error), USAGE)
    except SourceError as error:
        _fail(str(error), FAILED)
    if not records.records:
        lines = f", and {records.bad:,} lines are none" if records.bad else ""
        _fail(f"{sample[0]}: there is no record in it{lines}; check --format", BAD_INPUT)
    text = draft(guess(records), form=records.format.value)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with open(output, "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        _fail(f"-o: {output} is there already; a policy is never overwritten", USAGE)
    except OSError as error:
        _fail(f"-o: {output}: {(error.strerror or '').lower()}", FAILED)


def _read(file: str, *, as_json: bool) -> Policy:
    """Read a policy, or say all that is wrong with it and end."""
    try:
        return read_policy(file)
    except OSError as error:
        words = f"{file}: {(error.strerror or '').lower()}"
        code = FAILED
        problems: list[dict[str, Any]] = [{"words": words}]
    except PolicyFileError as error:
        code, words = USAGE, str(error)
        problems = [
            {"line": each.line, "column": each.column, "key": each.key, "words": each.words}
            for each in error.problems
        ]
    except PolicyError as error:
        code, words, problems = USAGE, f"{file}: {error}", [{"words": str(error)}]
    if as_json:
        click.echo(json.dumps({"file": file, "valid": False, "problems": problems}))
    else:
        click.echo(words, err=True)
    raise SystemExit(code)


def _explained(found: Policy) -> str:
    from zveil.policy.sentences import explain

    return "\n".join(
        f"{answer.about}\n{_paragraphs(answer.sentences)}" for answer in explain(found)
    )


def _compared(old: Policy, found: Policy) -> str:
    from zveil.policy.changes import changes

    lines = [f"What of the state of policy {old.fingerprint} can be kept\n"]
    for change in changes(old, found):
        sentences = (f"'{change.attribute}' {_FATES[change.fate]}.", *change.why)
        lines.append(_paragraphs((" ".join(sentences),)))
    return "".join(lines)


def _paragraphs(sentences: tuple[str, ...]) -> str:
    filled = (
        textwrap.fill(
            each, _WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False,
            break_long_words=False,
        )
        for each in sentences
    )  # fmt: skip
    return "\n".join(filled) + "\n"


def _as_dict(found: Policy, old: Policy | None) -> dict[str, Any]:
    from zveil.policy.changes import changes
    from zveil.policy.sentences import explain

    told: dict[str, Any] = {
        "valid": True,
        "fingerprint": found.fingerprint,
        "explanation": [
            {"about": each.about, "sentences": list(each.sentences)} for each in explain(found)
        ],
    }
    if old is not None:
        told["against"] = old.fingerprint
        told["changes"] = [
            {"attribute": each.attribute, "fate": each.fate, "why": list(each.why)}
            for each in changes(old, found)
        ]
    return told


def _fail(words: str, code: int) -> NoReturn:
    click.echo(f"Error: {words}", err=True)
    raise SystemExit(code)
