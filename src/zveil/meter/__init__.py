"""The meter: how k-anonymous visible users are in what has been released, while it runs."""

from zveil.meter.definition import Definition
from zveil.meter.meter import Meter
from zveil.meter.reading import KS, Reading

__all__ = ["KS", "Definition", "Meter", "Reading"]
