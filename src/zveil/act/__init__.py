"""What becomes of a record once the gates have decided: dropped, blanked, its user a pseudonym."""

from zveil.act.text import TextAct

__all__ = ["TextAct"]
