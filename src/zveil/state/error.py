"""What is wrong with a saved state, or with what it is to go on from."""


class StateError(ValueError):
    """A state that cannot be gone on with; the words name the file and say what to do."""


RESET = "--state-reset starts anew"
"""What else can be done, as the end of a sentence."""
