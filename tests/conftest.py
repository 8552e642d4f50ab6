"""Settings that every test shares."""

from hypothesis import HealthCheck, settings

# No test depends on a clock: neither Hypothesis' deadlines nor its complaints about slow draws.
settings.register_profile(
    "zveil", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("zveil")

# Checked by mypy, not run.
collect_ignore = ["typed_usage.py"]
