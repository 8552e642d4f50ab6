"""Kafka: workers of a consumer group, each with a gate for every partition that it holds."""
