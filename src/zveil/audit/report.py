"""The page of an audit: for those who answer for the data. It needs nothing from outside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from zveil import __version__
from zveil.audit.measure import Audit, Rotation
from zveil.audit.notes import CRITERIA, LIMITS, notes, period_words
from zveil.audit.pictures import (
    course_picture,
    crowds_picture,
    groups_picture,
    rotation_picture,
    unicity_picture,
)
from zveil.audit.points import Resolution
from zveil.audit.tables import (
    Rows,
    crowd_rows,
    field_rows,
    group_rows,
    level_rows,
    linkage_rows,
    moment,
    number,
    per_user_rows,
    percent,
    unicity_rows,
    use_rows,
    value_rows,
)
from zveil.audit.unicity import resolution_words

_STYLE = """
body { font: 16px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: #1b1f24;
  background: #fff; max-width: 46rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .5rem; padding-top: .7rem; border-top: 1px solid #8c959f; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p, ul, dl { margin: .5rem 0; }
.sub { color: #57606a; margin-top: 0; }
table { border-collapse: collapse; margin: .8rem 0; width: 100%; font-size: .86rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .28rem .5rem; border-bottom: 1px solid #d0d7de; text-align: right; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { border-bottom: 1.5px solid #1b1f24; vertical-align: bottom; font-weight: 600; }
tbody th { font-weight: 400; }
figure { margin: 1rem 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { font-size: .86rem; color: #57606a; }
.lead { border-left: 4px solid #1f3a5f; padding: .1rem 0 .1rem 1rem; margin: 1.2rem 0; }
dt { font-weight: 600; margin-top: .5rem; } dd { margin: 0 0 0 1rem; }
footer { margin-top: 2.5rem; border-top: 1px solid #8c959f; padding-top: .6rem; font-size: .86rem;
  color: #57606a; }
@page { size: A4; margin: 18mm 16mm; }
@media print { body { font-size: 10.5pt; margin: 0; max-width: none; padding: 0; }
  table, figure, .lead, li { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""


def page(audit: Audit, names: Sequence[str], day: str) -> str:
    """Give the page of an audit: one file of HTML with its pictures.

    Parameters
    ----------
    audit
        What was found.
    names
        The files that were looked at.
    day
        When that was.
    """
    parts = [
        _head(audit, names),
        _summary(audit),
        _use(audit),
        _crowds(audit),
        _unicity(audit),
        _rotation(audit.rotation),
        _values(audit),
        _list("Assumptions and remarks", notes(audit)),
        _list("What this report does not say", LIMITS),
        f"<footer>Measured on {escape(day)} with zveil {escape(__version__)}. {_policy(audit)}"
        f"{_method(audit)}</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Audit of a released stream</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _policy(audit: Audit) -> str:
    policy = audit.options.policy
    return "" if policy is None else f"Released by the policy {escape(policy)}. "


def _head(audit: Audit, names: Sequence[str]) -> str:
    use = audit.utility
    span = ""
    if use.first_ns is not None and use.last_ns is not None:
        span = f", from {moment(use.first_ns)} to {moment(use.last_ns)}"
    files = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
    return (
        "<h1>Audit of a released stream</h1>\n"
        f'<p class="sub">{escape(files)}: {number(use.released)} released observations of '
        f"{escape(', '.join(field.field for field in use.fields))}{span}.</p>"
    )


def _summary(audit: Audit) -> str:
    every = audit.crowds_at(Resolution.SET)
    daily = audit.crowds_at(Resolution.DAY)
    sentences = []
    if every.users:
        sentences = [
            f"<strong>{percent(every.shares[2])}</strong> of the {number(every.users)} visible "
            "users share their whole set of released values with at least one other; "
            f"{number(every.alone)} are alone with theirs.",
            "To an observer who also knows the day of each value, "
            f"<strong>{percent(daily.shares[2])}</strong> share theirs.",
        ]
        known = [each for each in audit.unicity if each.share is not None and each.points <= 3]
        sentences += [
            f"Of users with at least {each.points} released points (each "
            f"{resolution_words(audit.options.resolution)}), {each.points} random ones single out "
            f"<strong>{percent(each.share)}</strong>."
            for each in known[-1:]
        ]
    else:
        sentences = ["Nothing was released: there is nobody to single out."]
    answers = "".join(f"<dt>{name}</dt><dd>{escape(words)}</dd>" for name, words in CRITERIA)
    return (
        f'<div class="lead"><p>{" ".join(sentences)}</p></div>'
        "<h2>What was measured</h2>"
        "<p>The stream was looked at as an observer would who has all of it. A user is "
        "<em>visible</em> if something of theirs was released. For each visible user, "
        "<em>k</em> is the number of visible users, that one included, whose released data are "
        "exactly the same in what the observer knows. k = 1 means singled out.</p>"
        f"<dl>{answers}</dl>"
    )


def _use(audit: Audit) -> str:
    use = audit.utility
    parts = [
        "<h2>What is left of the data</h2>",
        _table("Observations and users", use_rows(use)),
        _table("By field", field_rows(use)),
    ]
    if audit.levels:
        parts.append(_table("What was released, by level", level_rows(audit.levels)))
    if use.per_user:
        parts.append(_table("Released observations of a visible user", per_user_rows(use)))
    if use.course is not None:
        caption = f"Observations in steps of {period_words(use.course.step_ns)}."
        parts.append(_figure(course_picture(use.course), caption))
    return "\n".join(parts)


def _crowds(audit: Audit) -> str:
    if not audit.utility.users_visible:
        return ""
    return "\n".join(
        [
            "<h2>Singling out: who looks like whom</h2>",
            "<p>The observer is assumed to have all released data of a user, with times as finely "
            "as the first column says, and nothing else.</p>",
            _table("Share of visible users with at least k alike", crowd_rows(audit.crowds)),
            _figure(
                crowds_picture(audit.crowds),
                "Share of visible users who share what the observer knows with at least k - 1 "
                "others.",
            ),
            _table("Number of visible users by k", group_rows(audit.crowds)),
            _figure(
                groups_picture(audit.crowds),
                "Visible users by k. The darkest part, k = 1, is singled out.",
            ),
            "<p>Entropy is what the knowledge says about who it is, in bits, beside what would "
            "name one user among all. The difference is what remains uncertain: one bit stands for "
            "a choice between two.</p>",
        ]
    )


def _unicity(audit: Audit) -> str:
    if not audit.utility.users_visible:
        return ""
    return "\n".join(
        [
            "<h2>Singling out: by a few points</h2>",
            "<p>The observer is assumed to know a few random points of a user, each "
            f"{resolution_words(audit.options.resolution)}, and looks for users who have them all. "
            "A user is singled out if there is no other.</p>",
            _table("Users singled out", unicity_rows(audit.unicity)),
            _figure(unicity_picture(audit.unicity), "Users singled out, with 95% intervals."),
        ]
    )


def _rotation(rotation: Rotation | None) -> str:
    if rotation is None or not rotation.periods:
        return ""
    length = period_words(rotation.length_ns)
    parts = [
        f"<h2>With pseudonyms that change every {length}</h2>",
        f"<p>{len(rotation.periods):,} periods have something released. A user counts once in "
        "every period they are visible in, and is compared with the users of that period.</p>",
        _table("Share of visible users with at least k alike", crowd_rows(rotation.crowds)),
        _figure(
            rotation_picture(rotation),
            "By all values of a period, without times: share of its visible users in crowds of k.",
        ),
        "<h3>Linkability: from each period to the next</h3>",
    ]
    if rotation.linkage is None:
        parts.append("<p>It cannot be known from this stream: no id is seen in two periods.</p>")
    else:
        parts += [
            "<p>Would an observer find a user again under the new pseudonym? By equal sets: the "
            "set of values is the same and nobody else has it in either period. By likeness: the "
            "set with most in common, rare values weighing more.</p>",
            _table("Users found again", linkage_rows(rotation.linkage)),
        ]
    return "\n".join(parts)


def _values(audit: Audit) -> str:
    if not audit.values:
        return ""
    least = number(audit.options.show_values)
    title = f"Values that at least {least} users released"
    return f"<h2>{title}</h2>" + _table("The most frequent", value_rows(audit.values))


def _method(audit: Audit) -> str:
    return (
        "Sets are compared by fingerprints of 128 bits. Points are drawn with seed "
        f"{audit.options.seed}, for at most {number(audit.options.sample)} users; intervals are "
        "Wilson's. No user and no history of a user is in this report."
    )


def _list(title: str, sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<h2>{title}</h2><ul>{items}</ul>"


def _figure(drawing: str, caption: str) -> str:
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(caption: str, rows: Rows) -> str:
    head = "".join(f'<th scope="col">{_cell(cell)}</th>' for cell in rows[0])
    body = "".join(
        f'<tr><th scope="row">{_cell(first)}</th>'
        + "".join(f"<td>{_cell(cell)}</td>" for cell in others)
        + "</tr>"
        for first, *others in rows[1:]
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(words: str) -> str:
    return escape(words).replace("&gt;= ", "\N{GREATER-THAN OR EQUAL TO}\N{NO-BREAK SPACE}")
