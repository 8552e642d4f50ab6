"""What topics there are, asked before anything is read."""

from __future__ import annotations

from collections.abc import Sequence

from zveil.engines.kafka.client import Clients, KafkaFailure

_ASK_S = 20.0


def partitions_of(clients: Clients, topics: Sequence[str]) -> list[int]:
    """Give how many partitions topics have.

    Raises
    ------
    KafkaFailure
        If Kafka is not there, or one of them is not.
    """
    from confluent_kafka import KafkaException

    consumer = clients.consumer(lambda _: None).steered
    found = []
    try:
        for name in topics:
            try:
                known = consumer.list_topics(name, timeout=_ASK_S).topics[name]
            except KafkaException as error:
                raise KafkaFailure(
                    f"--brokers: Kafka does not answer there ({error.args[0].str()})"
                ) from None
            if known.error is not None or not known.partitions:
                raise KafkaFailure(
                    f"{name}: there is no such topic, or no right to see it; make it with "
                    "kafka-topics.sh, with as many partitions as there are to be workers at most"
                )
            found.append(len(known.partitions))
    finally:
        consumer.close()
    return found
