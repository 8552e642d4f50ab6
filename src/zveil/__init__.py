"""Zero-delay anonymization for event streams.

An observation (time, user, attribute) is released at once if at least z distinct users showed the
same attribute within the past window, and veiled otherwise.

>>> from zveil import Gate
>>> gate = Gate(z=2, window="1h")
>>> gate.observe(0, "ada", "example.org")
False
>>> gate.observe(60, "bob", "example.org")
True
"""

from typing import TYPE_CHECKING, Any

from zveil._native import SnapshotError, __version__
from zveil.gate import Gate, Stats
from zveil.meter import Meter

if TYPE_CHECKING:
    from zveil.table import anonymize

__all__ = ["Gate", "Meter", "SnapshotError", "Stats", "__version__", "anonymize"]


def __getattr__(name: str) -> Any:
    """Load what needs NumPy and Arrow when it is asked for: they take most of the start."""
    if name == "anonymize":
        from zveil.table import anonymize

        return anonymize
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
