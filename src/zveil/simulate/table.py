"""Events as record batches: a time, and user and attribute as text."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zveil.simulate.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zveil.simulate.events import Events
    from zveil.simulate.scenario import Scenario


class Table:
    """Makes record batches of the events of a scenario.

    Parameters
    ----------
    scenario
        Whose events they are.
    fields
        Names of time, user and attribute.

    Examples
    --------
    >>> from zveil.simulate import Events, Scenario
    >>> table = Table(Scenario(users=10))
    >>> table.batch(Events.of([1_577_836_800_250], [7], [42])).column("user")[0].as_py()
    'user-00007'
    """

    def __init__(
        self, scenario: Scenario, fields: Sequence[str] = ("time", "user", "attribute")
    ) -> None:
        kinds = pa.timestamp("us", "UTC"), pa.string(), pa.string()
        self.schema = pa.schema(
            list(zip(fields, kinds, strict=True)),
            {
                "synthetic": "made up by zveil simulate; no real person and no real event",
                "title": scenario.title,
                "scenario": json.dumps(asdict(scenario), default=str),
            },
        )
        """The columns. The metadata says that the events are synthetic, and how they were made."""
        self._users = Rows("user-", scenario.user_digits)
        self._attributes = Rows("site-", scenario.attribute_digits, ".example")

    def batch(self, events: Events) -> pa.RecordBatch:
        """Make one of a block of events."""
        columns = [
            pa.array(events.time_ms * 1000).cast(self.schema.field(0).type),
            _strings(self._users, events.user),
            _strings(self._attributes, events.rank),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _strings(rows: Rows, numbers: NDArray[Any]) -> pa.Array:
    """Cut rows of one width into values: nothing but offsets is missing."""
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(rows.width)
    text = rows.text(numbers)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))
