"""What a solver's tolerance leaves on deployments without replicas is served by the others."""

import pytest

from optimizer.model.rows import Row
from optimizer.solver.tidy import served_by_replicas

RATE = 7.125
SERVE_A, REPLICAS_A, SERVE_B, REPLICAS_B = range(4)
ROWS = [
    Row("demand_coverage", ("chat",), ((SERVE_A, RATE), (SERVE_B, RATE)), "=", RATE, "requests/s", RATE),
    Row("replica_time", ("chat", "a"), ((SERVE_A, 0.55), (REPLICAS_A, -1.0)), "<=", 0.0, "replicas", 1.0),
    Row("replica_time", ("chat", "b"), ((SERVE_B, 2.85), (REPLICAS_B, -1.0)), "<=", 0.0, "replicas", 1.0),
]


def test_dust_goes_to_the_deployment_that_has_replicas() -> None:
    """5e-8 of a replica's load where there is none: nothing is left there, and the whole rate is served elsewhere."""
    tidy = served_by_replicas(ROWS, (1e-7, 0.0, 1 - 1e-7, 3.0))
    assert tidy[SERVE_A] == 0.0
    assert tidy[SERVE_B] == pytest.approx(1.0, abs=1e-15)
    assert (tidy[REPLICAS_A], tidy[REPLICAS_B]) == (0.0, 3.0)


def test_a_load_above_the_tolerance_is_left_to_be_found() -> None:
    """What is no dust is a fault of the solution, which the audit must see."""
    values = (0.01, 0.0, 0.99, 3.0)
    assert served_by_replicas(ROWS, values) == values


def test_what_replicas_serve_stays_as_it_is() -> None:
    """A small share on a deployment that has a replica is no dust."""
    values = (1e-7, 1.0, 1 - 1e-7, 3.0)
    assert served_by_replicas(ROWS, values) == values
