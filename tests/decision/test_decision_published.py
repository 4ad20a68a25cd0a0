"""Published comparisons of owning and renting, shipped as problems: their totals come out as they were published."""

from pathlib import Path

import pytest

from catalog.load import load_catalog
from optimizer.decision.compare import Comparison, compare
from optimizer.problem.load import parse_problem
from optimizer.solver.milp import SolverSettings

PROBLEMS = Path(__file__).parents[2] / "problems"


def compared(name: str, old: str = "", new: str = "") -> Comparison:
    text = (PROBLEMS / name).read_text(encoding="utf-8")
    assert old in text
    return compare(parse_problem(text.replace(old, new)).problem, load_catalog(), SolverSettings(gap=0.0))


def costs(found: Comparison) -> dict[str, float | None]:
    return {outcome.variant.name: outcome.cost for outcome in found.outcomes}


@pytest.mark.parametrize(
    ("price", "published_hours", "cloud"),
    [("98.32", 8_556, 4_306_415), ("77.43", 10_890, None), ("53.95", 15_710, None)],
)
def test_an_eight_gpu_server_against_the_cloud(price: str, published_hours: float, cloud: float | None) -> None:
    """Lenovo Press LP2225 (2025-05-23): break-even after so many hours of use, and the cloud's cost in five years."""
    found = compared("tco-eight-gpu-server.yaml", "price: 98.32 USD/h", f"price: {price} USD/h")
    assert found.month is not None
    assert found.month.estimate is not None
    assert found.month.estimate * 730 == pytest.approx(published_hours, rel=1e-3)
    own, rented = costs(found)["owned-only"], costs(found)["cloud-only"]
    assert own == pytest.approx(833_806 + 0.87 * 43_800)
    assert cloud is None or rented == pytest.approx(cloud, abs=1.0)


def test_a_rig_of_seven_cards_against_a_cloud_bill() -> None:
    """ZSky on dev.to (2026-04): 1,472 USD a month, an eighth of the cloud within 2 %, some 380,000 USD saved."""
    found = compared("tco-own-rig.yaml")
    own, cloud = costs(found)["owned-only"], costs(found)["cloud-only"]
    assert own is not None
    assert cloud is not None
    assert own / 36 == pytest.approx(1_472, abs=0.5)
    assert cloud / own == pytest.approx(8.0, rel=0.02)
    assert cloud - own == pytest.approx(380_000, rel=0.005)
    assert found.document()["variants"]["owned-only"]["further_costs"] == {"other": 10_800.0, "network": 7_200.0}
