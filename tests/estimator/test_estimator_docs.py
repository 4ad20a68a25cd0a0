import re
from pathlib import Path

import pytest

from optimizer.estimator.constants import CONSTANTS

PAGE = (Path(__file__).parents[2] / "docs" / "estimator.md").read_text(encoding="utf-8")
SERVING = PAGE[PAGE.index("## Serving") : PAGE.index("### Utilisation")]
FITTED = [name for name, found in CONSTANTS.items() if found.source == "serving fit"]
NOT_PRINTED = {"serving_memory_share", "serving_workspace_bytes", "kv_occupancy_share", "ttft_step_share",
               "ttft_open_fixed_ms", "server_target_share"}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in FITTED if name not in NOT_PRINTED])
def test_the_formulas_of_the_manual_hold_the_constants_in_use(name):
    """docs/estimator.md prints every fitted serving constant to three digits."""
    printed = f"{CONSTANTS[name].value:.3g}"
    assert re.search(rf"(?<![\d.]){re.escape(printed)}(?![\d]|\.\d)", SERVING), (name, printed)


def test_constants_of_serving_are_few():
    """About thirty are fitted to serving measurements, none keyed by a card or a publisher."""
    assert len(FITTED) <= 32
    assert not any(re.search(r"h100|a100|4090|l40|b200", name) for name in FITTED)
