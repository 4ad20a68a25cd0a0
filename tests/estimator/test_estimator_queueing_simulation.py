import random

import pytest
import simpy

from optimizer.estimator.queueing import utilisation_cap, waiting_percentile_s

RESIDENCE_S = 4.0
REQUESTS = 40_000
WARM_UP = 2_000


def simulated_waits(servers, utilisation, seed):
    """Waiting times of Poisson arrivals at a replica with room for `servers` sequences, each staying a random time."""
    environment = simpy.Environment()
    slots = simpy.Resource(environment, capacity=servers)
    generator = random.Random(seed)
    waits = []

    def request():
        arrival = environment.now
        with slots.request() as slot:
            yield slot
            waits.append(environment.now - arrival)
            yield environment.timeout(generator.expovariate(1 / RESIDENCE_S))

    def arrivals():
        rate = utilisation * servers / RESIDENCE_S
        for _ in range(REQUESTS):
            yield environment.timeout(generator.expovariate(rate))
            environment.process(request())

    environment.process(arrivals())
    environment.run()
    return sorted(waits[WARM_UP:])


@pytest.mark.parametrize(("servers", "utilisation"), [(1, 0.7), (4, 0.8), (16, 0.9), (64, 0.95)])
def test_the_waiting_formula_agrees_with_an_event_simulation(servers, utilisation):
    """The wait that 95 % do not exceed is within a tenth of the residence of what a simulated queue shows.

    One server waits many residences; the tolerance grows with the wait, whose own spread in 40,000 requests is large.
    """
    waits = simulated_waits(servers, utilisation, seed=servers)
    simulated = waits[int(0.95 * len(waits))]
    formula = waiting_percentile_s(utilisation, servers, RESIDENCE_S)
    assert formula == pytest.approx(simulated, abs=0.1 * RESIDENCE_S + 0.1 * simulated)


def test_at_the_utilisation_cap_most_simulated_requests_are_in_time():
    """At the cap for a slack of half a residence, 95 % of simulated requests wait no longer, give or take 2 %."""
    slack = RESIDENCE_S / 2
    cap = utilisation_cap(8, RESIDENCE_S, slack)
    waits = simulated_waits(8, cap, seed=1)
    in_time = sum(wait <= slack for wait in waits) / len(waits)
    assert in_time == pytest.approx(0.95, abs=0.02)
