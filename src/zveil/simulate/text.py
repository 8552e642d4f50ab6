"""Events as lines of text: NDJSON, CSV and TSV."""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zveil.io.formats import Format
from zveil.io.lines import to_csv
from zveil.simulate.events import Events
from zveil.simulate.rows import Rows
from zveil.simulate.scenario import Scenario


class Lines:
    r"""Writes the events of a scenario, a line each.

    Times are Unix seconds with milliseconds. Names are those of `Scenario.batches`.

    Parameters
    ----------
    scenario
        Whose events they are.
    format
        NDJSON, CSV or TSV.
    fields
        Names of time, user and attribute.

    Examples
    --------
    >>> lines = Lines(Scenario(users=10), Format.CSV)
    >>> lines.header
    b'ts,user,site\n'
    >>> lines.text(Events.of([1_577_836_800_250], [7], [42])).tobytes()
    b'1577836800.250,user-00007,site-00042.example\n'
    """

    def __init__(
        self,
        scenario: Scenario,
        format: Format = Format.NDJSON,  # noqa: A002  # the same thing has the same name everywhere
        fields: Sequence[str] = ("ts", "user", "site"),
    ) -> None:
        self.header = b""
        """What comes before the first line."""
        if format is Format.NDJSON:
            ts, user, site = (json.dumps(name) for name in fields)
            glue = f'{{{ts}:', f',{user}:"', f'",{site}:"', '"}\n'  # fmt: skip
        else:
            delimiter = "," if format is Format.CSV else "\t"
            names = pa.schema([(name, pa.string()) for name in fields])
            self.header = to_csv(pa.RecordBatch.from_pylist([], names), delimiter)
            glue = "", delimiter, delimiter, "\n"
        self._rows = Rows(
            *(glue[0], 10, ".", 3),
            *(glue[1] + "user-", scenario.user_digits),
            *(glue[2] + "site-", scenario.attribute_digits, ".example" + glue[3]),
        )

    def text(self, events: Events) -> NDArray[np.uint8]:
        """Write a block of events; gives the bytes of its lines."""
        seconds = events.time_ms // 1000
        return self._rows.text(seconds, events.time_ms - seconds * 1000, events.user, events.rank)
