"""Settings that every test shares."""

from hypothesis import HealthCheck, settings

# No test depends on a clock: neither Hypothesis' deadlines nor its complaints about slow draws.
settings.register_profile(
    "zveil", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("zveil")

# One is checked by mypy, not run; the others are run by `make test-engines`, which has the broker.
collect_ignore = ["typed_usage.py", "engines"]
