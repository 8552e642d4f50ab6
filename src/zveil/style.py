"""How pictures look: one ink, one font, lines that differ without colour too."""

from typing import Any

INK = "#1b1f24"
GRID = "#d0d7de"
FILLS = ("#1f3a5f", "#3f6c9b", "#7fa6c9", "#bcd3e6", "#dde9f3", "#ffffff")
"""Dark to light, so that areas differ in grey too."""

LINES: tuple[tuple[str, Any, str], ...] = (
    ("#1f3a5f", "-", "o"),
    ("#d55e00", (0, (5, 1.6)), "s"),
    ("#4a9bd4", (0, (1, 1.2)), "^"),
    ("#7b3f8c", (0, (6, 1.4, 1, 1.4)), "D"),
    ("#8a8f98", (0, (3, 1, 1, 1, 1, 1)), "v"),
)
"""Colour, dashes and marker of lines: any one of the three tells them apart."""

STYLE: Any = {
    # Letters as outlines and names from a fixed salt: the same picture is the same file everywhere.
    "svg.fonttype": "path",
    "svg.hashsalt": "zveil",
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "hatch.linewidth": 0.6,
    "axes.edgecolor": INK,
    "legend.framealpha": 1,
    "legend.edgecolor": "white",
    "legend.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def require_matplotlib(name: str) -> None:
    """Find out that pictures can be drawn, before anything is worked out for them.

    Parameters
    ----------
    name
        The parameter that asks for pictures.

    Raises
    ------
    ValueError
        If Matplotlib is missing; it names the command that installs it.
    """
    import logging

    # Its words about fonts and folders are not for those who ask for a picture.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError(
            f"{name}: the pictures need Matplotlib; install it with: pip install 'zveil[report]'"
        ) from None
