"""Offers that another one outclasses for everything in the problem: left out before the model is built, with reasons.

An exchange argument: where m nodes of offer B cost no more than one of offer A, B is unlimited, and hosts every
workload at least as well on m times the share of a node, any plan with n nodes of A is no dearer with m × n of B.
"""

import math
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import replace

from optimizer.estimator.types import Demand, Estimates, JobEstimate
from optimizer.estimator.workloads import Service
from optimizer.model.billing_steps import billed_no_coarser
from optimizer.model.emitters import grams_per_node_hour
from optimizer.model.entities import Server
from optimizer.model.instance import fits, list_servers
from optimizer.model.interruptions import amount_of, useful_share
from optimizer.model.options import LeftOut, Option, Supply
from optimizer.model.prices import cost_signature
from optimizer.model.spare import degraded_loads, replicas_per_node
from optimizer.problem.schema import Problem

SAME = 1e-9
"""Relative difference of two prices or shares that is rounding."""


def drop_outclassed(problem: Problem, supply: Supply, estimates: Estimates, keep: Container[str] = ()) -> Supply:
    """Leave out rented offers that a cheaper or equal one outclasses, but for those in `keep`.

    Not tried where workloads restrict regions. Jobs must keep to one pool, and the pool must hold that offer alone:
    else a job could need the very GPU type beside its own kind.
    """
    if any(w.data.regions for w in problem.workloads):
        return supply
    servers = _servers_by_option(problem, supply, estimates)
    jobs = _jobs_by_option(problem, supply, estimates)
    alone = {o.option_id for o in supply.options if _stands_alone(problem, supply.options, o, jobs)}
    judge = _Judge(problem, servers, jobs, estimates.demands)
    kept: list[Option] = []
    dropped: dict[str, LeftOut] = {}
    for option in sorted(supply.options, key=lambda o: (o.price_per_node_hour, o.option_id)):
        comparable = not option.held and option.option_id in alone and option.option_id not in keep
        candidates = kept if comparable else ()
        found = ((other, judge.stand_in(other, option)) for other in candidates)
        better, number = next((one for one in found if one[1]), (None, 0))
        if better is None:
            kept.append(option)
        else:
            price = "no dearer per node" if number == 1 else f"{number} of its nodes are no dearer than one"
            reason = f"outclassed by {better.option_id}: {price}, and every workload runs as well there"
            dropped[option.option_id] = LeftOut(option.option_id, option.gpu_id, reason)
    left = tuple(o for o in supply.options if o.option_id not in dropped)
    return replace(supply, options=left, left_out=(*supply.left_out, *dropped.values()))


def copies(better: Option, worse: Option) -> list[int]:
    """Numbers of nodes of one offer to compare with a node of the other: no dearer; one, as many GPUs, the most."""
    if better.price_per_node_hour <= 0:
        return [1]
    most = math.floor(worse.price_per_node_hour / better.price_per_node_hour * (1 + SAME))
    alike = math.ceil(worse.gpus_per_node / better.gpus_per_node)
    return sorted({number for number in (1, alike, most) if number <= most})


def _servers_by_option(problem: Problem, supply: Supply, estimates: Estimates) -> dict[str, list[Server]]:
    found: dict[str, list[Server]] = {o.option_id: [] for o in supply.options}
    for server in list_servers(problem, supply.options, estimates.services):
        found[server.option.option_id].append(server)
    return found


def _jobs_by_option(problem: Problem, supply: Supply, estimates: Estimates) -> dict[str, list[JobEstimate]]:
    barred = {w.name for w in problem.workloads if w.kind != "service" and not w.interruptible}
    return {
        option.option_id: [
            e for e in estimates.jobs if fits(e, option) and not (option.interruptible and e.workload in barred)
        ]
        for option in supply.options
    }


def _stands_alone(
    problem: Problem, options: Sequence[Option], option: Option, jobs: dict[str, list[JobEstimate]]
) -> bool:
    """Whether no job could need this offer beside another of its kind."""
    if not jobs[option.option_id]:
        return True
    pools = Counter(o.pool for o in options)
    one_pool = all(w.spread == "one-pool" for w in problem.workloads if w.kind != "service")
    return one_pool and pools[option.pool] == 1


class _Judge:
    """Compares two offers over all workloads."""

    def __init__(
        self,
        problem: Problem,
        servers: dict[str, list[Server]],
        jobs: dict[str, list[JobEstimate]],
        demands: Sequence[Demand],
    ) -> None:
        self.limits, self.problem = problem.limits, problem
        self.servers, self.jobs, self.demands = servers, jobs, demands
        self.has_jobs = any(not isinstance(w, Service) for w in problem.workloads)
        self.redundant = {w.name: w for w in problem.workloads if isinstance(w, Service) and w.redundancy}

    def stand_in(self, better: Option, worse: Option) -> int:
        """How many nodes of `better` can stand in for each of `worse` at no extra cost; 0 if none can."""
        return next((number for number in copies(better, worse) if self._outclass(better, worse, number)), 0)

    def _outclass(self, better: Option, worse: Option, number: int) -> bool:
        return (
            not better.held
            and better.max_nodes is None
            and better.provider not in self.limits.providers
            and better.gpu_id not in self.limits.gpus
            and (self.limits.vendors is None or better.provider == worse.provider)
            and (worse.interruptible or not better.interruptible)
            and billed_no_coarser(better, worse, jobs=self.has_jobs)
            and self._same_costs(better, worse, number)
            and number * grams_per_node_hour(better, self.problem) <= grams_per_node_hour(worse, self.problem)
            and all(self._hosts(better, server, number) for server in self.servers[worse.option_id])
            and all(self._works(better, worse, job) for job in self.jobs[worse.option_id])
        )

    def _same_costs(self, better: Option, worse: Option, number: int) -> bool:
        """Whether the buyer's further costs make no difference: the same fall on both, on no more GPUs and nodes."""
        found = cost_signature(better, self.problem)
        counted = {self.problem.costs[i].per for i in found}
        no_more_gpus = number * better.gpus_per_node <= worse.gpus_per_node or "gpu" not in counted
        no_more_nodes = number == 1 or not counted & {"node", "kw"}
        return no_more_gpus and no_more_nodes and found == cost_signature(worse, self.problem)

    def _hosts(self, better: Option, server: Server, number: int) -> bool:
        share = server.occupied_gpus / server.option.gpus_per_node
        return any(
            other.workload == server.workload
            and other.occupied_gpus / better.gpus_per_node <= number * share * (1 + SAME)
            and _same_part(other, server)
            and _no_slower(other, server)
            and self._as_safe(other, server)
            for other in self.servers[better.option_id]
        )

    def _as_safe(self, other: Server, server: Server) -> bool:
        """Whether the loss of a node takes no more replicas, and the rest is no slower (services with redundancy)."""
        service = self.redundant.get(server.workload)
        if service is None:
            return True
        mine, its = degraded_loads(service, other), degraded_loads(service, server)
        return replicas_per_node(other) == replicas_per_node(server) and all(mine[c] <= its[c] for c in its)

    def _useful(self, option: Option, estimate: JobEstimate) -> float:
        job = next(w for w in self.problem.workloads if w.name == estimate.workload)
        assert not isinstance(job, Service)
        return useful_share(job, option, estimate, amount_of(self.demands, job.name))

    def _works(self, better: Option, worse: Option, job: JobEstimate) -> bool:
        if better.gpus_per_node != worse.gpus_per_node:
            return False
        need = job.units_per_gpu_hour * self._useful(worse, job)
        most = float("inf") if job.max_gpus is None else job.max_gpus
        return any(
            other.workload == job.workload
            and other.deployment.gpus_per_replica == job.deployment.gpus_per_replica
            and other.min_gpus <= job.min_gpus
            and (other.max_gpus is None or other.max_gpus >= most)
            and other.units_per_gpu_hour * self._useful(better, other) >= need
            for other in self.jobs[better.option_id]
        )


def _same_part(other: Server, server: Server) -> bool:
    """Whether both do all of a request, or the same stage for the same partners."""
    return other.stage == server.stage and (not server.stage or other.handover == server.handover)


def _no_slower(other: Server, server: Server) -> bool:
    """Whether every class that `server` serves takes no more replicas on `other`."""
    for found in server.estimate.classes:
        mine, its = server.load(found.request_class), other.load(found.request_class)
        if its is None or mine is None or its > mine:
            return False
    return True
