"""Real purchases, where the data set is at hand: the trace speaks against the model."""

import json

from program import zveil
from test_retail import DATA  # skips where it is missing


def test_the_measured_answer_is_recommended() -> None:
    fields = ["--time", "time", "--user", "user", "--attribute", "item"]
    done = zveil("plan", DATA, *fields, "--window", "7d", "--horizon", "4", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    measured = found["measured"]
    assert (measured["observations"], measured["users"]) == (406_829, 4_372)
    assert measured["attributes"] == 3_684
    assert measured["model_holds"] is False
    proposed = {each["rotate_every"]: each for each in measured["model"]}
    # People buy many things at once, and alike only in the commonest.
    assert proposed[4]["p_k"] >= 0.95 > 0.5 > proposed[4]["measured"]["p_k"]
    assert found["z"] > proposed[4]["z"]
    assert all(option["p_k"] >= 0.95 for option in found["options"])
