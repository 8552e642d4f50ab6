import numpy as np
from numpy.typing import NDArray

class Algorithm1:
    """Algorithm 1 of the paper, as printed, over a stream in order of time."""

    def __new__(cls, z: int, window: int) -> Algorithm1: ...
    def observe_many(
        self,
        times: NDArray[np.int64],
        users: NDArray[np.int64],
        attributes: NDArray[np.int64],
        released: NDArray[np.uint8],
    ) -> None:
        """Decide a batch: ``released`` becomes 1 where released, 0 where veiled."""

    @property
    def attributes(self) -> int:
        """Attributes held; Algorithm 1 never frees one."""

    def live_pairs(self, now: int) -> int:
        """Count the pairs (attribute, user) held in the window that ends at ``now``."""

class Limit:
    """The limit: hash the attribute, touch one counter, nothing else."""

    def __new__(cls, attributes: int, prefetch: bool) -> Limit: ...
    def touch_many(self, attributes: NDArray[np.int64]) -> None:
        """Touch one counter for each attribute."""

    @property
    def total(self) -> int:
        """Sum of all counters: how many observations have been touched."""

    @property
    def hash(self) -> str:
        """Which hash runs on this machine: ``aes`` or ``siphash``."""

def allocated_bytes() -> int:
    """Bytes this extension has allocated and not freed."""
