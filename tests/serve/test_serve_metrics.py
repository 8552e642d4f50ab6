"""Figures: what `/metrics` says is what happened, in a form that Prometheus reads."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from events import START
from program import line
from prometheus_client.parser import text_string_to_metric_families
from service import Service

from zveil.serve.metrics import METRICS, exposition
from zveil.serve.monitor import BOUNDS_S, Figures, Latencies, Monitor, Part
from zveil.serve.traffic import Traffic

MEASURED = [
    name
    for name in METRICS
    if name.startswith(("zveil_visible", "zveil_alike", "zveil_meter", "zveil_hold"))
]
"""What there is with a meter only, or where a level is held."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as started:
        yield started


def test_the_figures_are_what_happened(service: Service) -> None:
    service.post(b"".join(line(START, user, "a.example") for user in ("ada", "bob", "cyd")))
    service.post(line(START + 7200, "ada", "b.example") + line(START, "ada", "late.example"))
    service.post(line(START + 7200, None, "b.example") + b"{}\nnothing\n{}\n")
    service.post(b"{}", kind="application/json")
    service.ask("GET", "/nowhere", kind=None)
    found = service.metrics()
    host = '{attribute="host"'
    assert found["zveil_lines_total"] == 10
    assert found["zveil_records_total"] == 6
    assert found["zveil_records_left_total"] == 2
    assert found[f"zveil_observations_total{host}}}"] == 6
    assert found[f"zveil_released_total{host}}}"] == 2
    reasons = ("few_users", "late", "future", "empty", "filtered")
    veiled = [found[f'zveil_veiled_total{host},reason="{reason}"}}'] for reason in reasons]
    assert veiled == [2, 1, 0, 1, 0]
    assert found[f"zveil_late_total{host}}}"] == 1
    assert found['zveil_bad_lines_total{kind="missing-field"}'] == 3
    assert found['zveil_bad_lines_total{kind="syntax"}'] == 1
    assert found[f"zveil_attributes{host}}}"] >= 1
    assert found[f"zveil_state_bytes{host}}}"] > 0
    assert found[f"zveil_z{host}}}"] == 2
    assert found[f"zveil_window_seconds{host}}}"] == 3600
    assert found["zveil_decision_seconds_count"] == 4
    assert found['zveil_decision_seconds_bucket{le="+Inf"}'] == 4
    assert found['zveil_http_requests_total{route="/v1/observations",status="200"}'] == 3
    assert found['zveil_http_requests_total{route="/v1/observations",status="422"}'] == 1
    assert found['zveil_http_requests_total{route="other",status="404"}'] == 1
    assert found['zveil_http_refused_total{problem="bad-record"}'] == 1
    assert found["process_resident_memory_bytes"] == pytest.approx(service.resident(), rel=0.2)
    assert "zveil_snapshot_age_seconds" not in found


def test_prometheus_reads_all_of_it(service: Service) -> None:
    service.post(line(START, "ada", "a.example") + b"{}\n")
    service.metrics()
    answer = service.ask("GET", "/metrics", kind=None)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {each.name: each for each in text_string_to_metric_families(answer.body.decode())}
    for name, metric in METRICS.items():
        family = families.get(name.removesuffix("_total"))
        if name in ("zveil_snapshot_age_seconds", *MEASURED) or "kafka" in name:
            assert family is None
            continue
        assert family is not None, name
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        assert family.samples or name == "zveil_http_refused_total", name


def test_labels_are_escaped() -> None:
    part = Part(
        attribute='a"b\\c\nd', z=2, window_ns=1, observed=1, released=0,
        veiled={"few_users": 1, "late": 0}, refused=0, attributes=1, state_bytes=1,
    )  # fmt: skip
    written = exposition(Figures(at=0.0, policy="", parts=(part,)), Traffic()).decode()
    (sample,) = [
        sample
        for family in text_string_to_metric_families(written)
        for sample in family.samples
        if sample.name == "zveil_observations_total"
    ]
    assert sample.labels == {"attribute": 'a"b\\c\nd'}


def test_latencies_are_counted_where_they_belong() -> None:
    latencies = Latencies()
    assert latencies.quantiles_ms() == {}
    for seconds in (0.0001, 0.00011, 0.5, 99.0):
        latencies.add(seconds)
    found = latencies.all()
    assert found.count == 4
    assert found.counts[0] == 1
    assert found.counts[1] == 1
    assert found.counts[BOUNDS_S.index(0.5)] == 1
    assert found.counts[-1] == 1
    assert found.sum_s == pytest.approx(99.50021)
    assert latencies.quantiles_ms((0.0, 1.0)) == {0.0: pytest.approx(0.1), 1.0: 99_000}


def test_the_past_is_kept_by_the_second_and_by_the_minute() -> None:
    now = [0.0]
    monitor = Monitor(lambda: Figures(at=now[0], policy="", observed=int(now[0])))
    for second in range(0, 2 * 86_400, 10):
        now[0] = float(second)
        monitor.tick()
    history = monitor.history()
    times = [each.at for each in history]
    assert times == sorted(set(times))
    assert times[-600:] == [float(second) for second in range(2 * 86_400 - 6_000, 2 * 86_400, 10)]
    minutes = times[:-600]
    assert {later - earlier for earlier, later in pairwise(minutes)} == {60}
    assert 86_400 - 120 <= times[-1] - times[0] <= 86_400
    assert monitor.now().observed == int(now[0])


def test_health_is_told(service: Service) -> None:
    assert service.ask("GET", "/readyz", kind=None).json == {"status": "ready"}
    assert service.ask("GET", "/healthz", kind=None).json == {"status": "ok"}
    assert service.ask("HEAD", "/healthz", kind=None).body == b""
