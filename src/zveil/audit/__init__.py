"""What an observer of a released stream has: how many users look alike, and what is left to see."""

from zveil.audit.measure import Audit, Options, audit
from zveil.audit.observations import Observations, read

__all__ = ["Audit", "Observations", "Options", "audit", "read"]
