"""How busy a replica may be while 95 % of requests still meet their targets.

A replica with room for `c` sequences is taken as a queue with c servers and Poisson arrivals (M/M/c). Waiting follows
P(wait > t) = P_w · exp(−c(1−ρ)t/S) (Erlang 1917), with S the residence time of a request and the probability of
waiting P_w ≈ ρ^(√(2(c+1)) − 1) (Sakasegawa 1977, the approximation that Allen and Cunneen's formula builds on).
A single replica is assumed: several behind one queue wait less, so the cap errs on the safe side.
"""

from math import log, sqrt

from optimizer.estimator.constants import constant

CAP_ITERATIONS = 24


def waiting_probability(utilisation: float, servers: float) -> float:
    """Probability that a request waits, by Sakasegawa's approximation."""
    return float(utilisation ** (sqrt(2 * (servers + 1)) - 1))


def late_share() -> float:
    """Share of requests that may miss their targets."""
    return 1 - constant("latency_percentile")


def waiting_percentile_s(utilisation: float, servers: float, residence_s: float, tail: float | None = None) -> float:
    """Waiting time that all but a share `tail` of requests (5 % by default) do not exceed, in seconds."""
    tail = late_share() if tail is None else tail
    probability = waiting_probability(utilisation, servers)
    if probability <= tail:
        return 0.0
    return residence_s / (servers * (1 - utilisation)) * log(probability / tail)


def utilisation_cap(servers: float, residence_s: float, slack_s: float | None) -> float:
    """Highest utilisation at which 95 % wait no longer than `slack_s` (None: no target, 0.95)."""
    highest = constant("highest_utilisation")
    if slack_s is None or waiting_percentile_s(highest, servers, residence_s) <= slack_s:
        return highest
    low, high = 0.0, highest
    for _ in range(CAP_ITERATIONS):
        middle = (low + high) / 2
        if waiting_percentile_s(middle, servers, residence_s) <= slack_s:
            low = middle
        else:
            high = middle
    return low
