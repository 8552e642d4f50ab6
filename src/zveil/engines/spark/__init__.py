"""Spark: back-fill of data frames of any size, with the native gate inside its tasks."""

from zveil.engines.spark.account import Account
from zveil.engines.spark.frame import anonymize

__all__ = ["Account", "anonymize"]
