"""Profiles of Hypothesis: the same examples in every CI run; `HYPOTHESIS_PROFILE=explore` draws new ones."""

import os

from hypothesis import HealthCheck, settings

_SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("ci", derandomize=True, database=None, **_SHARED)
settings.register_profile("explore", derandomize=False, database=None, print_blob=True, **_SHARED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
