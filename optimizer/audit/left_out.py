"""Checks of the offers that are no options: each is barred by the problem's words, or no better than an option."""

from collections.abc import Iterable, Mapping
from datetime import date
from fnmatch import fnmatchcase

from optimizer.audit.carbon import kg_per_hour, unknown
from optimizer.audit.document import Answer, OptionRecord
from optimizer.audit.fitting import gpus_kept, place_allowed, usable_estimates
from optimizer.audit.further_costs import alike
from optimizer.audit.interruptions import useful_share
from optimizer.audit.report import TOLERANCE, Checker
from optimizer.audit.services import same_network
from optimizer.audit.sources import CatalogRows
from optimizer.estimator.types import JobEstimate, ServiceEstimate
from optimizer.estimator.workloads import Service
from optimizer.problem.schema import OWN_PROVIDER, Problem


def allowed_offers(
    answer: Answer, problem: Problem, rows: CatalogRows, offers: Mapping[str, OptionRecord]
) -> dict[str, OptionRecord]:
    """Offers that the problem's own words do not bar."""
    bars = _Bars(problem, rows, answer.created_at)
    return {name: offer for name, offer in offers.items() if not bars.bars(offer)}


def check_left_out(
    answer: Answer,
    problem: Problem,
    rows: CatalogRows,
    offers: Mapping[str, OptionRecord],
    allowed: Mapping[str, OptionRecord],
    checker: Checker,
) -> None:
    """Every offer is an option or left out, not both, and for a reason that holds."""
    options = {option.option_id: option for option in answer.inputs.options}
    said = {left.option: left for left in answer.left_out}
    checker.holds("options", "left_out", len(said) == len(answer.left_out), "an offer is listed twice")
    rivals = _Rivals(answer, problem)
    for name, offer in offers.items():
        where = f"left_out[{name}]"
        if name in options:
            checker.holds("options", f"inputs.options[{name}]", name in allowed, "the problem leaves it out")
            checker.holds("options", where, name not in said, "is an option and left out at once")
        elif checker.holds("options", where, name in said, "is neither an option nor left out"):
            checker.same("options", f"{where}.gpu", said[name].gpu, offer.gpu_id)
            beaten = name not in allowed or any(rivals.beats(option, offer) for option in options.values())
            checker.holds("options", where, beaten, "is left out although nothing bars it and no option beats it")
    for name in said.keys() - offers.keys() if rows.usable or not problem.options.has_offers else ():
        checker.fail("options", f"left_out[{name}]", "is no offer of the problem or the catalog")


# --- what the problem's words bar -------------------------------------------------------------------------------------


class _Bars:
    """Whether the problem's own words keep an offer out."""

    def __init__(self, problem: Problem, rows: CatalogRows, created_at: str) -> None:
        self.problem, self.rows, self.created_at = problem, rows, created_at
        self.licensed = {quote.name: quote.consumer for quote in problem.options.quotes}

    def bars(self, offer: OptionRecord) -> bool:
        """Whether GPU type, way of paying, provider, region, licence or age of the price bars it."""
        wanted = self.problem.options
        if offer.existing_nodes:
            return False
        allow, deny = wanted.providers.allow, wanted.providers.deny
        rented = offer.provider != OWN_PROVIDER
        return (
            (wanted.gpus is not None and offer.gpu_id not in wanted.gpus and offer.option_id not in self.licensed)
            or (wanted.purchase is not None and offer.purchase_option not in wanted.purchase)
            or bool(rented and allow and not _matches(allow, offer.provider))
            or (rented and _matches(deny, offer.provider))
            or bool(wanted.regions and offer.region and not _matches(wanted.regions, offer.region))
            or self._licence_bars(offer)
            or self._too_little_known(offer)
            or self._too_old(offer.price_date)
        )

    def _too_little_known(self, offer: OptionRecord) -> bool:
        """Owned nodes of unknown size where rack units are limited; unknown emissions where they count."""
        site = self.problem.site
        limited = site is not None and site.rack_units_limit is not None
        uncounted = limited and offer.purchase_option == "owned" and offer.rack_units is None
        return uncounted or unknown(offer, self.problem)

    def _licence_bars(self, offer: OptionRecord) -> bool:
        site = self.problem.site
        if offer.purchase_option != "owned" or site is None or site.consumer_gpus_allowed:
            return False
        said = self.licensed.get(offer.option_id)
        if said is not None:
            return said
        return offer.gpu_id not in self.problem.gpus and self.rows.usable and self.rows.gpu(offer.gpu_id).consumer

    def _too_old(self, price_date: str) -> bool:
        limit = self.problem.options.price_age_limit
        if limit is None or not price_date:
            return limit is not None
        try:
            day = date.fromisoformat(self.created_at[:10])
        except ValueError:
            return False
        return (day - date.fromisoformat(price_date)).days * 24 > limit


def _matches(patterns: Iterable[str], text: str) -> bool:
    return any(fnmatchcase(text.lower(), pattern.lower()) for pattern in patterns)


# --- what an option beats ---------------------------------------------------------------------------------------------


class _Rivals:
    """Whether nodes of an option can stand in for those of an offer at no extra cost: as many as cost the same."""

    def __init__(self, answer: Answer, problem: Problem) -> None:
        self.problem = problem
        self.services, self.jobs = answer.inputs.estimates.services, answer.inputs.estimates.jobs
        self.demands = answer.inputs.estimates.demands

    def beats(self, option: OptionRecord, offer: OptionRecord) -> bool:
        """No dearer by the hour, without limit, and every workload runs there as well as on the offer."""
        return any(self._stand_in(option, offer, number) for number in _affordable(option, offer))

    def _stand_in(self, option: OptionRecord, offer: OptionRecord, number: int) -> bool:
        limits = self.problem.limits
        free = (
            not (option.held or offer.held)
            and option.max_nodes is None
            and ((number == 1 and option.provider == offer.provider) or option.provider not in limits.providers)
            and (_same_node(option, offer) or option.gpu_id not in limits.gpus)
            and (limits.vendors is None or option.provider == offer.provider)
            and (offer.interruptible or not option.interruptible)
            and alike(option, offer, self.problem, number)
            and self._emits_no_more(option, offer, number)
            and self._pays_no_longer(option, offer)
        )
        names = [workload.name for workload in self.problem.workloads]
        return free and all(self._runs_as_well(name, option, offer, number) for name in names)

    def _emits_no_more(self, option: OptionRecord, offer: OptionRecord, number: int) -> bool:
        mine, its = (kg_per_hour(one.model_dump(), self.problem) for one in (option, offer))
        return number * mine <= its * (1 + TOLERANCE)

    def _pays_no_longer(self, option: OptionRecord, offer: OptionRecord) -> bool:
        """Whether no use is rounded up further: steps up to an hour matter to jobs only."""
        ignored = 1.0 if all(isinstance(w, Service) for w in self.problem.workloads) else 0.0
        mine, its = (s if (s := one.billing_step_hours or 0.0) > ignored else 0.0 for one in (option, offer))
        if mine == 0:
            return True
        offset = abs(its / mine - round(its / mine)) * mine
        divides = its >= mine * (1 - TOLERANCE) and offset <= TOLERANCE * its
        return its > 0 and divides and _clock(option) <= _clock(offer)

    def _runs_as_well(self, name: str, option: OptionRecord, offer: OptionRecord, number: int) -> bool:
        workload = next(w for w in self.problem.workloads if w.name == name)
        if not place_allowed(workload, offer):
            return True
        if not place_allowed(workload, option):
            return False
        if isinstance(workload, Service):
            here = [self.services[i] for i in usable_estimates(name, option, self.services)]
            there = [self.services[i] for i in usable_estimates(name, offer, self.services)]
            return all(
                any(
                    _serves_as_well(a, option, b, offer, number)
                    and (not workload.redundancy or _as_safe(a, option, b, offer))
                    for a in here
                )
                for b in there
            )
        if offer.interruptible and not workload.interruptible:
            return True
        amount = next((d.amount or 0.0 for d in self.demands if d.workload == name), 0.0)
        mine, its = usable_estimates(name, option, self.jobs), usable_estimates(name, offer, self.jobs)
        same_nodes = option.gpus_per_node == offer.gpus_per_node or not its
        works = [(self.jobs[i], useful_share(workload, option, self.jobs[i], amount)) for i in mine]
        others = [(self.jobs[i], useful_share(workload, offer, self.jobs[i], amount)) for i in its]
        return same_nodes and all(any(_works_as_well(*one, *other) for one in works) for other in others)


def _clock(option: OptionRecord) -> bool:
    return bool(option.billed_by_clock)


def _same_node(option: OptionRecord, offer: OptionRecord) -> bool:
    return option.gpu_id == offer.gpu_id and option.gpus_per_node == offer.gpus_per_node


def _affordable(option: OptionRecord, offer: OptionRecord) -> set[int]:
    """Nodes of an option for the price of one of an offer: one, as many as have its GPUs, and the most there are."""
    mine, its = option.price_per_node_hour, offer.price_per_node_hour
    most = 1 if mine <= 0 <= its else int(its * (1 + TOLERANCE) / mine)
    same_gpus = -(-offer.gpus_per_node // option.gpus_per_node)
    return {number for number in (1, same_gpus, most) if 1 <= number <= most}


def _serves_as_well(
    a: ServiceEstimate, option: OptionRecord, b: ServiceEstimate, offer: OptionRecord, number: int
) -> bool:
    """A replica takes no more of so many nodes, and no request more of a replica; stages for the same partners."""
    if _share_of_node(a, option) > number * _share_of_node(b, offer) * (1 + TOLERANCE):
        return False
    part, other = a.deployment, b.deployment
    if part.stage != other.stage:
        return False
    if part.stage and (part.weights, same_network(option)) != (other.weights, same_network(offer)):
        return False
    mine, its = _loads(a, option), _loads(b, offer)
    return all(name in mine and mine[name] <= load * (1 + TOLERANCE) for name, load in its.items())


def _as_safe(a: ServiceEstimate, option: OptionRecord, b: ServiceEstimate, offer: OptionRecord) -> bool:
    """A lost node takes as many replicas with it."""
    mine, its = (max(1, o.gpus_per_node // e.deployment.gpus_per_replica) for e, o in ((a, option), (b, offer)))
    return mine == its


def _share_of_node(estimate: ServiceEstimate, option: OptionRecord) -> float:
    return gpus_kept(estimate.deployment.gpus_per_replica, option.gpus_per_node) / option.gpus_per_node


def _loads(estimate: ServiceEstimate, option: OptionRecord) -> dict[str, float]:
    useful = estimate.utilisation_cap * option.productive_share
    return {c.request_class: c.replica_seconds_per_request / useful for c in estimate.classes}


def _works_as_well(a: JobEstimate, useful_a: float, b: JobEstimate, useful_b: float) -> bool:
    """The same groups of GPUs in a range of sizes at least as wide, with no lower yield."""
    mine, its = a.units_per_gpu_hour * useful_a, b.units_per_gpu_hour * useful_b
    wide = a.min_gpus <= b.min_gpus and (a.max_gpus is None or (b.max_gpus is not None and a.max_gpus >= b.max_gpus))
    return wide and a.deployment.gpus_per_replica == b.deployment.gpus_per_replica and mine >= its * (1 - TOLERANCE)
