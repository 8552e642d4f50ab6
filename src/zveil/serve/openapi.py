"""The OpenAPI document of the service, written by hand: its addresses take raw bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zveil import __version__
from zveil.serve.media import ARROW, JSON, NDJSON
from zveil.serve.metrics import MEDIA_TYPE as METRICS
from zveil.serve.problem import KINDS
from zveil.serve.problem import MEDIA_TYPE as PROBLEM
from zveil.serve.settings import Limits

_ORDER = "Records are decided in the order of the body, across all connections as one stream."


def document(limits: Limits, most_z: Mapping[str, int], *, has_tokens: bool) -> dict[str, Any]:
    """Describe the service.

    Parameters
    ----------
    limits
        Those that it has.
    most_z
        The largest z of each attribute.
    has_tokens
        Whether tokens are asked for.
    """
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "zveil",
            "version": __version__,
            "description": "Events in, out what enough users share, decided as it arrives.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/v1/observations": {"post": _observations(limits)},
            "/v1/forget": {"post": _forget()},
            "/v1/z": {"post": _z(most_z)},
            "/v1/save": {"post": _save()},
            "/metrics": {"get": _metrics()},
            "/healthz": {"get": _status("Whether the service lives.", "ok")},
            "/readyz": {
                "get": _status("Whether it takes requests.", "ready", "broken", "ending"),
            },
            "/openapi.json": {"get": _own()},
        },
        "components": {"schemas": {"Problem": _problem()}},
    }
    if has_tokens:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in found["paths"].items():
            if path.startswith("/v1/") or path == "/metrics":
                for operation in methods.values():
                    operation["security"] = [{"token": []}]
    return found


def _observations(limits: Limits) -> dict[str, Any]:
    return {
        "operationId": "observe",
        "summary": "Hand events in; get back what is released.",
        "description": (
            f"{_ORDER} With the right to read, what is released is answered as it is decided; "
            "without it, counts are. A body may have "
            f"{limits.max_body} bytes."
        ),
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "The same key with the same body is answered as before.",
                "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                NDJSON: {"schema": {"type": "string", "description": "A JSON object a line."}},
                JSON: {"schema": {"type": "object", "description": "One event."}},
                ARROW: {"schema": {"type": "string", "format": "binary"}},
            },
        },
        "responses": {
            "200": {
                "description": "What is released.",
                "content": {
                    NDJSON: {"schema": {"type": "string"}},
                    ARROW: {"schema": {"type": "string", "format": "binary"}},
                    JSON: {
                        "schema": {
                            "type": "object",
                            "properties": {
                                "released": {"type": "boolean"},
                                "record": {"type": ["object", "null"]},
                            },
                            "required": ["released", "record"],
                        }
                    },
                },
            },
            "202": {
                "description": "What arrived; for those who may not read.",
                "content": {
                    JSON: {
                        "schema": {
                            "type": "object",
                            "properties": {
                                "accepted": {"type": "integer"},
                                "bad": {
                                    "type": "object",
                                    "additionalProperties": {"type": "integer"},
                                },
                            },
                            "required": ["accepted", "bad"],
                        }
                    }
                },
            },
            **_problems(
                "bad-request", "token-needed", "forbidden", "slow", "key-running", "too-large",
                "media-type", "bad-record", "head-too-large", "failed", "busy",
            ),
        },
    }  # fmt: skip


def _forget() -> dict[str, Any]:
    user = {"type": ["string", "integer", "number"], "minLength": 1}
    return _change(
        "forget",
        "Erase a user from the state.",
        {"type": "object", "properties": {"user": user}, "required": ["user"]},
        {"attributes": {"type": "integer", "description": "Values that had this user."}},
    )


def _z(most: Mapping[str, int]) -> dict[str, Any]:
    return _change(
        "setZ",
        "Set how many users must share a value, up to the policy's z_max.",
        {
            "type": "object",
            "properties": {
                "z": {"type": "integer", "minimum": 1, "maximum": min(most.values())},
                "attribute": {"enum": [*most, None], "description": "All, by default."},
            },
            "required": ["z"],
        },
        {"z": {"type": "integer"}},
    )


def _change(
    name: str, summary: str, body: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": body | {"additionalProperties": False}}},
        },
        "responses": {
            "200": _answer("Done.", answer),
            **_problems(
                "bad-request", "token-needed", "forbidden", "slow", "too-large", "media-type",
                "bad-parameters", "head-too-large", "failed", "busy",
            ),
        },
    }  # fmt: skip


def _save() -> dict[str, Any]:
    return {
        "operationId": "save",
        "summary": "Save the state now.",
        "responses": {
            "200": _answer("It is saved.", {"saved": {"type": "boolean"}}),
            **_problems(
                "bad-request", "token-needed", "forbidden", "no-state", "head-too-large", "failed",
                "busy",
            ),
        },
    }  # fmt: skip


def _metrics() -> dict[str, Any]:
    return {
        "operationId": "metrics",
        "summary": "Figures for Prometheus.",
        "responses": {
            "200": {
                "description": "The figures.",
                "content": {METRICS: {"schema": {"type": "string"}}},
            },
            **_problems("bad-request", "token-needed", "forbidden", "head-too-large", "failed"),
        },
    }


def _status(summary: str, status: str, *problems: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {
            "200": _answer("It does.", {"status": {"type": "string", "const": status}}),
            **_problems("bad-request", "head-too-large", *problems),
        },
    }


def _own() -> dict[str, Any]:
    return {
        "summary": "This document.",
        "responses": {
            "200": {
                "description": "The document.",
                "content": {JSON: {"schema": {"type": "object"}}},
            },
            **_problems("bad-request", "head-too-large"),
        },
    }


def _answer(description: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"description": description, "content": {JSON: {"schema": schema}}}


def _problems(*kinds: str) -> dict[str, Any]:
    """Describe problems: the kinds, and all others of the same status."""
    statuses = sorted({KINDS[kind][0] for kind in kinds})
    return {
        str(status): {
            "description": " ".join(words for code, words in KINDS.values() if code == status),
            "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def _problem() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Problem details, RFC 9457.",
        "properties": {
            "type": {"type": "string", "enum": [f"urn:zveil:problem:{kind}" for kind in KINDS]},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
        "required": ["type", "title", "status"],
    }
