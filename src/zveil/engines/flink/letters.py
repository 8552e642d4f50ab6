"""What the core takes for the small form of a letter, asked of itself.

The operator has to write names as the core does, and each version of Java has tables of Unicode of
its own. So it is told those of the core. Beside the small form of each letter they say what stands
around a capital sigma, whose small form is another one at the end of a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise

from zveil._native import Ladder

# Between these are Han, Hangul, surrogates and private use, and behind the first two planes Han
# again: they have one size. What is passed over in words is in another plane too.
_RANGES = (range(0x80, 0x3400), range(0xA000, 0xAC00), range(0xF900, 0x20000),
           range(0xE0000, 0xE1000))  # fmt: skip
_CAPITAL, _SMALL = "\u03a3", "\u03c3"


@cache
def told() -> dict[str, str]:
    """Tell what is not ASCII: code points in hexadecimal digits, or ranges of them.

    ``lower``
        each letter that has another small form, with a minus and that form behind it
    ``cased``
        letters that have two sizes, and are not passed over
    ``ignored``
        what is passed over where a word is looked for its end
    """
    letters = [chr(point) for points in _RANGES for point in points]
    small = _climbed(f"{letter}.x" for letter in letters)
    lower = []
    for letter, form in zip(letters, small, strict=True):
        found = form and _decoded(form.removesuffix(".x"))
        if found and found != letter:
            lower.append("-".join(f"{ord(each):x}" for each in letter + found))
    cased: list[int] = []
    ignored: list[int] = []
    behind, alone = _end_words("1.a", letters), _end_words("1.", letters)
    for letter, ends_behind, ends_alone in zip(letters, behind, alone, strict=True):
        if ends_behind:
            (cased if ends_alone else ignored).append(ord(letter))
    return {"lower": ",".join(lower), "cased": _spans(cased), "ignored": _spans(ignored)}


def _end_words(before: str, letters: Sequence[str]) -> Iterator[bool]:
    """Tell for each letter whether a sigma behind it is the last of a word."""
    asked = _climbed(f"{before}{letter}{_CAPITAL}" for letter in letters)
    plain = _climbed(f"{before}{letter}{_SMALL}" for letter in letters)
    return (one != other for one, other in zip(asked, plain, strict=True))


def _climbed(hosts: Iterable[str]) -> list[str | None]:
    """Give the registered domain of each host: without any rule, two labels."""
    import pyarrow as pa

    from zveil.act.levels import text_array

    (labels,) = Ladder([("domain", "", True)]).climb(pa.array(hosts))
    found: list[str | None] = text_array(labels).to_pylist()
    return found


def _decoded(label: str) -> str:
    return label[4:].encode().decode("punycode") if label.startswith("xn--") else label


def _spans(points: Iterable[int]) -> str:
    """Give numbers that rise as ranges, with both ends.

    >>> _spans([1, 2, 3, 16])
    '1-3,10-10'
    """
    held = list(points)
    edges = [at + 1 for at, (one, other) in enumerate(pairwise(held)) if other != one + 1]
    starts, ends = [0, *edges], [*edges, len(held)]
    spans = [(held[start], held[end - 1]) for start, end in zip(starts, ends, strict=True) if held]
    return ",".join(f"{first:x}-{last:x}" for first, last in spans)
