"""An audit as text for a terminal."""

from __future__ import annotations

import textwrap

from zveil.audit.measure import Audit
from zveil.audit.notes import notes, period_words
from zveil.audit.tables import (
    Rows,
    crowd_rows,
    field_rows,
    level_rows,
    linkage_rows,
    per_user_rows,
    unicity_rows,
    use_rows,
    value_rows,
)
from zveil.audit.unicity import resolution_words

_WIDE = 96


def as_text(audit: Audit) -> str:
    """Give an audit as text."""
    use = audit.utility
    parts = [_table(use_rows(use)[1:]), _table(field_rows(use))]
    if audit.levels:
        parts.append(_titled("What was released, by level", level_rows(audit.levels)))
    if use.per_user:
        parts.append(_table(per_user_rows(use)))
    parts.append(
        _titled(
            "Singling out, whole stream: visible users who share what the observer knows of them "
            "with at least k - 1 other visible users",
            crowd_rows(audit.crowds),
        )
    )
    parts.append(
        _titled(
            f"Singling out by a few points, each {resolution_words(audit.options.resolution)}",
            unicity_rows(audit.unicity),
        )
    )
    if audit.rotation is not None:
        rotation = audit.rotation
        parts.append(
            _titled(
                f"Singling out within each period of {period_words(rotation.length_ns)}; "
                f"{len(rotation.periods):,} periods have something released",
                crowd_rows(rotation.crowds),
            )
        )
        if rotation.linkage is None:
            parts.append("Linkability from period to period: cannot be known, see the notes")
        else:
            rows = linkage_rows(rotation.linkage)
            parts.append(_titled("Linkability from each period to the next", rows))
    if audit.values:
        least = audit.options.show_values
        parts.append(
            _titled(f"Values that at least {least} users released", value_rows(audit.values))
        )
    lines = [textwrap.fill(note, _WIDE, initial_indent="  - ", subsequent_indent="    ")
             for note in notes(audit)]  # fmt: skip
    parts.append("\n".join(["Notes", *lines]))
    if audit.options.policy is not None:
        parts.append(f"policy {audit.options.policy}")
    return "\n\n".join(parts)


def _titled(title: str, rows: Rows) -> str:
    return f"{textwrap.fill(title, _WIDE)}\n{_table(rows)}"


def _table(rows: Rows) -> str:
    """Set rows in columns: the first to the left, the others to the right.

    >>> print(_table([("k", "users"), ("2 or more", "7")]))
      k          users
      2 or more      7
    """
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, wide[1:], strict=True)]
        lines.append("  ".join([" ", f"{first:<{wide[0]}}", *cells])[1:].rstrip())
    return "\n".join(lines)
