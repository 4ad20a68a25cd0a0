"""Hypothesis: the same examples in every CI run (`HYPOTHESIS_PROFILE=explore` draws new ones). Golden files."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("ci", derandomize=True, database=None, **_SHARED)
settings.register_profile("explore", derandomize=False, database=None, print_blob=True, **_SHARED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--refresh-goldens` writes the golden texts anew instead of comparing with them: read the difference by git."""
    parser.addoption("--refresh-goldens", action="store_true", help="write tests/**/golden/* anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with its golden file, or write it anew."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--refresh-goldens"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"differs from {path.name}; see tests/README.md"

    return compare
