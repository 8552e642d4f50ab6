"""What is decided goes out, and how far it is decided is kept: together, or one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zveil.engines.kafka.at_least_once import AtLeastOnce
from zveil.engines.kafka.client import Clients, Report
from zveil.engines.kafka.exactly_once import ExactlyOnce
from zveil.engines.kafka.leaving import Leaving
from zveil.engines.kafka.sending import Sending


def delivery(
    clients: Clients,
    consumer: Any,
    to: str,
    leaving: Leaving,
    *,
    every_s: float,
    report: Report,
    is_stopped: Callable[[], bool],
) -> Sending:
    """Make what sends records, for the kind of delivery that clients have; see `Sending`."""
    make: type[Sending] = ExactlyOnce if clients.delivery == "exactly-once" else AtLeastOnce
    return make(clients, consumer, to, leaving, every_s, report, is_stopped)
