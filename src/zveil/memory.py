"""The memory of the machine, or of the group of programs that this one is confined to."""

import contextlib
import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_OWN = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")
_UNKNOWN = 2 << 30


def ceiling() -> int:
    """Give the bytes that the state may take where nothing is said: half of what there is.

    >>> ceiling() > 0
    True
    """
    return available() // 2


def available() -> int:
    """Give the bytes of memory that this process may have at the most."""
    found = [_UNKNOWN]
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not every system knows
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    found += [size for path in (*map(Path, _LIMITS), *_groups()) if (size := _limit(path))]
    return min(found)


def _groups() -> list[Path]:
    """Give where the limits of this process's own group, and of those around it, are written."""
    try:
        lines = _OWN.read_text().splitlines()
    except OSError:
        return []
    group = next((line[3:] for line in lines if line.startswith("0::")), "/").strip("/")
    inside = _ROOT / group
    return [each / "memory.max" for each in (inside, *inside.parents) if _ROOT in each.parents]


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() and int(text) > 0 else None
