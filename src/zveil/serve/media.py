"""Kinds of bodies."""

NDJSON = "application/x-ndjson"
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

KINDS = {
    NDJSON: NDJSON,
    "application/ndjson": NDJSON,
    "application/jsonl": NDJSON,
    JSON: JSON,
    ARROW: ARROW,
}
"""What a body may be called, and what it then is."""
