"""What becomes of a record once the gates have decided: dropped, blanked, its user a pseudonym."""
