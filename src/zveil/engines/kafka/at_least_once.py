"""Records at once, and offsets behind them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from zveil.engines.kafka.client import KafkaFailure
from zveil.engines.kafka.sending import PATIENCE_S, Sending

# For so long more is decided while records are on their way; so often it is asked whether they are.
_LATE_S = 1.0
_AGAIN_S = 0.01


class AtLeastOnce(Sending):
    """Records go out at once, and offsets behind them: after a failure some come again."""

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        self._late: float | None = None

    def commit(self, offsets: Sequence[Any], *, is_last: bool) -> bool:
        """Commit offsets once records are out; waits for them only at the end, or after long."""
        now = time.monotonic()
        if len(self.producer) and not is_last and now < (self._late or now + _LATE_S):
            self._check()
            self._late = self._late or now + _LATE_S
            self._last = now - self._every_s + _AGAIN_S
            return False
        until = now + PATIENCE_S
        while self.producer.flush(1.0):
            self._check()
            if time.monotonic() > until or self._is_stopped():
                raise KafkaFailure("records could not be sent: see whether the brokers are there")
        self._check()
        self._late = None
        if offsets and not self._keep(list(offsets), is_last=is_last):
            self._last = time.monotonic()
            return False
        self._done()
        return True

    def abandon(self) -> None:
        """Commit nothing; what was sent is out."""
        self._since = None

    def _keep(self, offsets: list[Any], *, is_last: bool) -> bool:
        """Commit offsets; false if the group is just being shared out anew."""
        from confluent_kafka import KafkaError, KafkaException

        moved = (
            KafkaError.ILLEGAL_GENERATION,
            KafkaError.UNKNOWN_MEMBER_ID,
            KafkaError.REBALANCE_IN_PROGRESS,
            KafkaError._ASSIGNMENT_LOST,
        )
        try:
            told = self._consumer.commit(offsets=offsets, asynchronous=not is_last)
            for each in told or ():
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as found:
            error = found.args[0]
            # Whoever has the partition now decides again what was not committed.
            if error.code() not in moved and not error.retriable():
                raise KafkaFailure(f"offsets could not be committed: {error.str()}") from None
            return False
        return True

    def _check(self) -> None:
        from confluent_kafka import KafkaError

        if self._native.failed is not None:
            words = KafkaError(self._native.failed).str()
            raise KafkaFailure(f"a record could not be sent: {words}")
