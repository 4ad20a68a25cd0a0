"""Rules about how fast workloads run: a model with token lengths, or measurements that something uses.

They compare names of GPUs, so they come after these are settled by the catalog.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from catalog.load import Catalog
from optimizer.estimator.workloads import AnyWorkload, Batch, Job, Measurement, Service, TrainingSettings
from optimizer.problem.checks import Case, Complaint, Complaints
from optimizer.problem.positions import Path
from optimizer.problem.schema import Problem

LENGTHS = "tokens: {input: 300, output: 50}"
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class Market:
    """What GPUs a problem's options hold."""

    problem: Problem
    catalog: Catalog

    def own_sizes(self, gpu: str) -> set[int]:
        """GPUs per node of the quotes and existing nodes with that GPU."""
        options = self.problem.options
        return {one.gpus_per_node for one in (*options.quotes, *options.existing) if one.gpu == gpu}

    def own_gpus(self) -> list[str]:
        """GPU types of quotes and existing nodes."""
        options = self.problem.options
        return [one.gpu for one in (*options.quotes, *options.existing)]

    def gpus(self) -> list[str] | None:
        """GPU types considered, None for whatever the catalog offers."""
        options = self.problem.options
        if not options.has_offers:
            return list(dict.fromkeys(self.own_gpus()))
        return None if options.gpus is None else list(dict.fromkeys((*options.gpus, *self.own_gpus())))

    def sizes(self, gpu: str) -> set[int]:
        """GPUs per node on offer."""
        options, sizes = self.problem.options, self.own_sizes(gpu)
        if not options.has_offers or (options.gpus is not None and gpu not in options.gpus):
            return sizes
        sizes |= {offer.gpus_per_node for offer in self.catalog.offers({gpu}, as_written=True)}
        if self.problem.site and options.catalog:
            sizes |= {server.gpus_per_node for server in self.catalog.servers({gpu}, as_written=True)}
        return sizes

    def named(self) -> str:
        """The GPU types considered, for a hint."""
        return _listed(self.gpus() or [])


def rate_complaints(case: Case, catalog: Catalog, *, gpus_too: bool = True) -> Complaints:
    """What the rules about rates have to say; those on GPUs only where all names of GPUs are settled (`gpus_too`)."""
    market = Market(case.problem, catalog)
    for rule in (*RATE_RULES, *GPU_RULES) if gpus_too else RATE_RULES:
        yield from rule(case, market)


def _workloads(case: Case) -> Iterator[tuple[Path, AnyWorkload, list[Measurement]]]:
    for index, workload in enumerate(case.problem.workloads):
        found = [one for one in case.problem.measurements if one.workload == workload.name]
        yield ("workloads", index), workload, found


def rates_can_be_known(case: Case, market: Market) -> Complaints:
    """A workload has a model to estimate from, or a measurement."""
    for path, workload, measurements in _workloads(case):
        place: Path = (*path, "model")
        by_rule = workload.estimate_by == "rule-of-thumb" and isinstance(workload, TrainingSettings)
        in_own_unit = isinstance(workload, Job) and workload.work is not None
        if in_own_unit and not measurements:
            hint = f"add measurements: [{{workload: {workload.name}, gpu: …, per_gpu_hour: …}}]"
            yield Complaint((*path, "work"), "work in a unit of your own can only be measured", hint, at_key=True)
        elif workload.model is None and not measurements:
            message = f'nothing says how fast "{workload.name}" runs: it has no model and no measurement'
            yield Complaint(place, message, "write model: …, or a measurement of it under measurements:", at_key=True)
        elif workload.model is None and by_rule and not in_own_unit:
            hint = "write model: …, or leave estimate_by out"
            yield Complaint(place, "the rule of thumb scales with the parameters of a model", hint, at_key=True)
        elif workload.model is None:
            yield from _mfu_without_model(case, workload)


def _mfu_without_model(case: Case, workload: AnyWorkload) -> Complaints:
    for index, one in enumerate(case.problem.measurements):
        if one.workload == workload.name and one.mfu is not None:
            message = f'an MFU needs the model that "{workload.name}" trains'
            yield Complaint(("measurements", index, "mfu"), message, "write its model, or tokens_per_s_per_gpu")


def lengths_are_known(case: Case, market: Market) -> Complaints:
    """Whoever estimates requests, or turns tokens per second into requests, knows how many tokens they have."""
    for path, workload, measurements in _workloads(case):
        short = list(_without_lengths(path, workload))
        estimated = workload.model is not None and not _all_measured(workload, measurements, market)
        if short and estimated:
            yield from short
        else:
            yield from _tokens_per_s_without_output(case, workload)


def _without_lengths(path: Path, workload: AnyWorkload) -> Complaints:
    """Complaints of requests without tokens."""
    said = f'"{workload.name}" does not say how many tokens its requests have'
    if isinstance(workload, Batch) and workload.requests is not None:
        if not workload.requests.input + workload.requests.output:
            yield Complaint((*path, "requests"), said, "write input: 300, output: 50 in requests", at_key=True)
    elif isinstance(workload, Service) and workload.classes:
        for index, one in enumerate(workload.classes):
            missing = [key for key in ("input", "output") if getattr(one, key) is None]
            if workload.tokens is None and (missing or not (one.input or 0) + (one.output or 0)):
                message = f"this class does not say how many tokens its requests have ({' and '.join(missing) or '0'})"
                yield Complaint((*path, "classes", index), message, "write input: 300, output: 50")
    elif isinstance(workload, Service) and (workload.tokens is None or not sum(dict(workload.tokens).values())):
        yield Complaint((*path, "tokens"), said, f"write {LENGTHS}", at_key=True)


def _all_measured(workload: AnyWorkload, measurements: Sequence[Measurement], market: Market) -> bool:
    """Whether requests per second are measured wherever the workload may run, so that nothing is estimated."""
    gpus = market.gpus()
    if gpus is None:
        gpus = workload.gpus
    rates = [one for one in measurements if one.requests_per_s is not None]
    if gpus is None or not rates:
        return False
    classes = {one.name for one in getattr(workload, "classes", None) or ()}
    here = [gpu for gpu in gpus if workload.gpus is None or gpu in workload.gpus]
    return all(_covered(gpu, rates, classes, market) for gpu in here)


def _covered(gpu: str, rates: Sequence[Measurement], classes: set[str | None], market: Market) -> bool:
    """Whether measurements of the GPU type, or of every offer with it, stand for all classes."""
    options = market.problem.options
    if _every_class([one for one in rates if one.gpu == gpu and _open(one)], classes):
        return True
    if options.has_offers and (options.gpus is None or gpu in options.gpus):
        return False
    names = [getattr(one, "name", None) for one in (*options.quotes, *options.existing) if one.gpu == gpu]
    return bool(names) and all(_every_class([one for one in rates if one.option == name], classes) for name in names)


def _open(one: Measurement) -> bool:
    return one.weights is None and one.gpus_per_replica is None and one.gpus_per_node is None


def _every_class(rates: Sequence[Measurement], classes: set[str | None]) -> bool:
    measured = {one.request_class for one in rates}
    return None in measured or bool(classes and classes <= measured)


def _tokens_per_s_without_output(case: Case, workload: AnyWorkload) -> Complaints:
    """Tokens per second say nothing of requests that put out no tokens."""
    silent: set[str | None]
    if isinstance(workload, Batch):
        silent = {None} if workload.requests is not None and not workload.requests.output else set()
    elif isinstance(workload, Service):
        classes = workload.classes or ()
        silent = {one.name for one in classes if not (one.output or (workload.tokens and workload.tokens.output))}
        silent |= {None} if silent or (not classes and not (workload.tokens and workload.tokens.output)) else set()
    else:
        return
    for index, one in enumerate(case.problem.measurements):
        if one.workload == workload.name and one.tokens_per_s is not None and one.request_class in silent:
            message = f'tokens per second say nothing of requests without output tokens ("{workload.name}")'
            hint = f"write the workload's {LENGTHS}, or measure requests_per_s"
            yield Complaint(("measurements", index, "tokens_per_s"), message, hint)


def workloads_find_their_gpus(case: Case, market: Market) -> Complaints:
    """A workload's own list of GPUs shares something with what is on offer."""
    there = market.gpus()
    for path, workload, _ in _workloads(case):
        if there is not None and workload.gpus and not set(workload.gpus) & set(there):
            message = f'none of the GPUs of "{workload.name}" is considered'
            yield Complaint((*path, "gpus"), message, f"options hold {market.named()}: add some, or write one of these")


def measurements_are_used(case: Case, market: Market) -> Complaints:
    """A measurement stands for something that the workload may run on."""
    workloads = {workload.name: workload for workload in case.problem.workloads}
    for index, one in enumerate(case.problem.measurements):
        workload = workloads.get(one.workload)
        found = None if workload is None else _unused(one, workload, market)
        if found is not None:
            key, why, hint = found
            path: Path = ("measurements", index, key)
            yield Complaint(path, f"this measurement would be used nowhere: {why}", hint)


_Unused = tuple[str, str, str]
"""Key at fault, why nothing uses the measurement, what to write."""


def _unused(one: Measurement, workload: AnyWorkload, market: Market) -> _Unused | None:
    gpu, sizes = one.gpu, set[int]()
    if one.option is not None:
        options = market.problem.options
        quoted = [offer for offer in (*options.quotes, *options.existing) if getattr(offer, "name", "") == one.option]
        if not quoted:
            return None
        gpu, sizes = quoted[0].gpu, {quoted[0].gpus_per_node}
    key, there = "gpu" if one.option is None else "option", market.gpus()
    if one.gpu is not None and there is not None and gpu not in there:
        return key, f"{gpu} is not considered", f"options hold {market.named()}"
    if workload.gpus is not None and gpu not in workload.gpus:
        return key, f'"{workload.name}" may not run on {gpu}', f"add it to its gpus ({_listed(workload.gpus)})"
    sizes = sizes or market.sizes(str(gpu))
    if not sizes:
        return key, f"nothing offers {gpu}", "add a quote for it"
    return _unused_whole(workload) or _unused_format(one, workload) or _unused_size(one, workload, sizes)


def _unused_whole(workload: AnyWorkload) -> _Unused | None:
    """Measured rates are of whole deployments; a service that must be split into stages has none."""
    if not isinstance(workload, Service) or workload.disaggregated != "required":
        return None
    hint = "write disaggregated: allowed in the workload to plan with whole deployments too"
    return "workload", f'"{workload.name}" must be served by prefill and decode stages', hint


def _unused_format(one: Measurement, workload: AnyWorkload) -> _Unused | None:
    if one.weights is None or workload.model is None or not isinstance(workload, Service | Batch):
        return None
    formats = [workload.weights] if isinstance(workload.weights, str) else workload.weights
    if one.weights in formats:
        return None
    hint = f"write weights: [{', '.join((*formats, one.weights))}] in the workload to leave the choice open"
    return "weights", f'"{workload.name}" has weights in {" or ".join(formats)}', hint


def _unused_size(one: Measurement, workload: AnyWorkload, sizes: set[int]) -> _Unused | None:
    nodes = " or ".join(map(str, sorted(sizes)))
    if one.gpus_per_node is not None and one.gpus_per_node not in sizes:
        return "gpus_per_node", f"no node of {one.gpus_per_node} GPUs is offered", f"nodes have {nodes}"
    size = one.gpus_per_replica
    if size is None or not isinstance(workload, Service | Batch):
        return None
    if size > max(sizes):
        return "gpus_per_replica", f"no node holds a replica of {size} GPUs", f"nodes have {nodes}"
    if workload.gpus_per_replica is None:
        return None
    stages = _several(workload.pipeline_parallel)
    allowed = sorted({width * depth for width in _several(workload.gpus_per_replica) for depth in stages})
    if size in allowed:
        return None
    given = " or ".join(map(str, allowed))
    hint = "write that size in the workload's gpus_per_replica too"
    return "gpus_per_replica", f'replicas of "{workload.name}" have {given} GPUs', hint


def _several(sizes: int | list[int]) -> list[int]:
    return [sizes] if isinstance(sizes, int) else sizes


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
    return shown or "no GPU"


RATE_RULES: tuple[Callable[[Case, Market], Complaints], ...] = (rates_can_be_known, lengths_are_known)
GPU_RULES: tuple[Callable[[Case, Market], Complaints], ...] = (workloads_find_their_gpus, measurements_are_used)
