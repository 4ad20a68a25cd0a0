"""How many random problems the tests of the model draw in CI."""

from tests.model import (
    test_model_brute_force,
    test_model_brute_force_more,
    test_model_invariants,
    test_model_invariants_money,
)

ROOMS = (test_model_brute_force, test_model_brute_force_more, test_model_invariants, test_model_invariants_money)
INVARIANTS = {f"i{number:02d}" for number in range(1, 35)}


def test_ci_draws_at_least_2000_examples() -> None:
    """Invariants and brute force together; `.ci/nightly` draws ten times as many."""
    assert sum(getattr(test, "in_ci", 0) for room in ROOMS for test in vars(room).values()) >= 2_000


def test_every_invariant_has_a_test() -> None:
    """I01 to I34, by the names of the tests."""
    names = [name for room in ROOMS for name in dir(room) if name.startswith("test_i")]
    found = {part for name in names for part in name.split("_")}
    assert INVARIANTS - found == set()
