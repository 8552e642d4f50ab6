"""The OpenAPI document holds: whatever fits it, and whatever does not, is answered as it says."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from events import START
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from program import FIELDS, line
from service import NDJSON, Service

RULE = (*FIELDS, "-z", "1", "--window", "1h")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("-q", rule=RULE) as started:
        started.post(line(START, "ada", "a.example"))
        yield started


OPERATIONS = [
    ("/v1/observations", "POST"),
    ("/v1/forget", "POST"),
    ("/v1/z", "POST"),
    ("/v1/save", "POST"),
    ("/metrics", "GET"),
    ("/healthz", "GET"),
    ("/readyz", "GET"),
]


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")
def as_it_is(_: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def api(service: Service) -> schemathesis.BaseSchema:
    found = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    named = [(each.ok().path, each.ok().method.upper()) for each in found.get_all_operations()]
    assert named == OPERATIONS
    return found


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_answer_is_as_the_document_says(
    api: schemathesis.BaseSchema, path: str, method: str, data: st.DataObject
) -> None:
    """To requests that fit the document, and to such as do not."""
    mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
    try:
        case = data.draw(api[path][method].as_strategy(generation_mode=mode))
    except Unsatisfiable:  # nothing can be wrong with a request that takes nothing
        assume(False)
    # What is inside of a body of events the document does not say.
    opaque = [schemathesis.checks.positive_data_acceptance] if "observations" in path else []
    case.call_and_validate(excluded_checks=opaque)


EVENT = st.fixed_dictionaries(
    {},
    optional={
        "ts": st.one_of(st.integers(), st.floats(), st.text(), st.none()),
        "uid": st.one_of(st.integers(), st.text(), st.none(), st.lists(st.integers(), max_size=2)),
        "host": st.one_of(st.integers(), st.text(), st.none(), st.booleans()),
        "more": st.recursive(st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    },
)
PIECE = st.one_of(
    EVENT.map(lambda event: json.dumps(event).encode()),
    st.binary(max_size=60),
    st.sampled_from([b"\n", b"\r\n", b"{", b"\xef\xbb\xbf", b"\0", b"\\u0000", b'"']),
    st.just(line(START, "ada", "a.example")),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECE, max_size=12), st.sampled_from([NDJSON, "application/json"]))
def test_no_body_does_harm(service: Service, pieces: list[bytes], kind: str) -> None:
    answer = service.post(b"".join(pieces), kind=kind)
    assert answer.status in (200, 422), answer
    if answer.status == 200:
        for each in answer.body.splitlines():
            json.loads(each)
    else:
        assert answer.kind in ("bad-lines", "bad-record")
