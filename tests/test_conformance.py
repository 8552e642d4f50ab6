"""The gate against the conformance vectors, by each way in."""

from typing import Any

import numpy as np
import pytest
from streams import Settings, column, gate_of
from vectors import every_vector, load, value

from zveil import Gate


def gate_for(vector: dict[str, Any]) -> Gate:
    settings = vector["settings"]
    return gate_of(Settings(**{"z_max": settings["z"], **settings}))


@every_vector
def test_one_by_one(vector: dict[str, Any]) -> None:
    gate = gate_for(vector)
    late = invalid = 0
    for step in vector["steps"]:
        if "set_z" in step:
            gate.z = step["set_z"]
        elif "forget" in step:
            gate.forget(value(step["forget"]))
        elif "observe" in step:
            assert gate.observe(*value(step["observe"])) is step["expect"], step
        else:
            assert gate.observe_levels(*value(step["observe_levels"])) == step["expect"], step
        late += step.get("counted") == "late"
        invalid += step.get("counted") == "invalid"
        stats = gate.stats()
        assert (stats.late, stats.invalid) == (late, invalid), step


def in_columns(vector: dict[str, Any]) -> list[np.ndarray] | None:
    """Make three columns of a vector, if it is observations only and each column has one type."""
    if not all("observe" in step for step in vector["steps"]):
        return None
    observations = [value(step["observe"]) for step in vector["steps"]]
    times, users, attributes = zip(*observations, strict=True)
    if {type(t) for t in times} != {int}:
        return None
    for values in (users, attributes):
        if {type(item) for item in values} not in ({int}, {str}, {str, type(None)}):
            return None
    return [np.array(times, dtype="datetime64[ns]"), column(users), column(attributes)]


IN_COLUMNS = [vector for vector in load() if in_columns(vector)]


def test_most_plain_vectors_fit_in_columns() -> None:
    assert len(IN_COLUMNS) >= 40


@pytest.mark.parametrize("vector", IN_COLUMNS, ids=lambda vector: vector["name"])
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_in_batches(vector: dict[str, Any], size: int) -> None:
    gate = gate_for(vector)
    columns = in_columns(vector)
    assert columns is not None
    found: list[bool] = []
    for start in range(0, len(vector["steps"]), size):
        found += gate.observe_many(*(each[start : start + size] for each in columns)).tolist()
    assert found == [step["expect"] for step in vector["steps"]]
    for name in ("late", "invalid"):
        expected = sum(step.get("counted") == name for step in vector["steps"])
        assert getattr(gate.stats(), name) == expected, name
