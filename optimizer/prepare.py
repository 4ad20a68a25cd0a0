"""From a problem and the catalog to an instance: which options there are, what they yield, and what was assumed."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from catalog import Catalog, CatalogFileError
from catalog.schema import CloudOffer, Gpu, ResaleValue, ServerOffer, SourceRef, TypicalDiscount
from optimizer.errors import CatalogLookupError, Finding, ProblemFileError
from optimizer.estimator.estimate import estimate_all
from optimizer.estimator.types import Estimates, Rejection
from optimizer.model.dominance import drop_outclassed
from optimizer.model.emitters import emissions_unknown
from optimizer.model.entities import Instance
from optimizer.model.further_costs import per_node
from optimizer.model.instance import build_instance, fits
from optimizer.model.interruptions import refused_runs
from optimizer.model.option import DEFAULT_RESIDUAL_FRACTION
from optimizer.model.options import DEFAULT_IDLE_SHARE, DEFAULT_USEFUL_LIFE_MONTHS, Literature, Supply, list_supply
from optimizer.model.prices import meant
from optimizer.problem.schema import ExistingNodes, OwnGpu, Problem, Quote, Site
from optimizer.trace import Assumption
from optimizer.units import BYTES_PER_GB

_FOR_NOTHING = "applies to nothing that is considered"
HELD_PURCHASES = ("owned", "reserved", "committed-use")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A problem ready to be modelled."""

    problem: Problem
    gpus: tuple[Gpu, ...]
    supply: Supply
    estimates: Estimates
    assumptions: tuple[Assumption, ...]

    def instance(self) -> Instance:
        """The instance of the planning model."""
        return build_instance(self.problem, self.supply, self.estimates)


def prepare(problem: Problem, catalog: Catalog, today: date | None = None, keep: Container[str] = ()) -> Prepared:
    """Gather options and estimates. Names in `problem` are canonical (`problem.names.canonical_names`).

    Offers in `keep` stay even where another one beats them.

    Raises
    ------
    ProblemFileError
        If the catalog's dollars cannot be turned into the problem's currency, or a price file is missing.
    """
    _check_currency(problem)
    _check_price_files(problem, catalog)
    day = today or datetime.now(UTC).date()
    wanted = None if problem.options.gpus is None else set(problem.options.gpus)
    offers = catalog.offers(wanted, as_written=True) if problem.options.has_offers else ()
    servers = catalog.servers(wanted, as_written=True) if problem.options.catalog and problem.site else ()
    _check_days((*offers, *servers), catalog, day)
    named = {q.gpu for q in problem.options.quotes} | {e.gpu for e in problem.options.existing}
    named |= {o.gpu_id for o in offers} | {s.gpu_id for s in servers}
    gpus = tuple(_gpu_records(problem, catalog, sorted(named)))
    known = _literature(problem, catalog, owning=bool(servers))
    supply = list_supply(problem, gpus, offers, servers, day, known, keep)
    _check_emissions(problem, supply)
    estimates = _estimate(problem, catalog, gpus, supply)
    supply = drop_outclassed(problem, supply, estimates, keep)
    refused = _refused(problem, supply, estimates)
    estimates = replace(estimates, rejections=(*estimates.rejections, *refused))
    assumptions = (
        *_default_assumptions(problem, supply, catalog),
        *_price_assumptions(problem, known, supply),
        *estimates.assumptions,
    )
    return Prepared(problem, gpus, supply, estimates, assumptions)


def _check_currency(problem: Problem) -> None:
    if problem.options.has_offers and problem.currency != "USD" and "USD" not in problem.exchange_rates:
        hint = (
            f"add exchange_rates: {{USD: {{rate: <{problem.currency} per USD>, date: <YYYY-MM-DD>}}}}, "
            "or options: {catalog: false}"
        )
        msg = f"the catalog's prices are in USD and the problem is in {problem.currency}"
        raise ProblemFileError([Finding(msg, path="currency", hint=hint)])


def _check_price_files(problem: Problem, catalog: Catalog) -> None:
    """The catalog must have the problem's price files on it (as that of a loaded problem has)."""
    missing = [name for name in problem.options.price_files if name not in catalog.price_files]
    if missing:
        msg = f"price files that are not at hand: {', '.join(missing)}"
        hint = "put them back where they were, unchanged, or solve the problem file anew"
        raise ProblemFileError([Finding(msg, path="options.price_files", hint=hint)])


def _check_emissions(problem: Problem, supply: Supply) -> None:
    """Nodes held already cannot be left out: where emissions count, theirs must be known."""
    for option in supply.options:
        if emissions_unknown(option, problem):
            msg = (
                f"limits.carbon or finance.carbon_price counts emissions, and those of {option.option_id} are not known"
            )
            hint = "write its power and carbon (CO2e per kWh) under options.existing"
            raise ProblemFileError([Finding(msg, path="options.existing", hint=hint)])


def _check_days(rows: Iterable[CloudOffer | ServerOffer], catalog: Catalog, today: date) -> None:
    """No price of a catalog of the buyer's own is of a day to come: it would pass every limit on age.

    The packaged catalog is left alone, lest a clock that is slow make it unusable; a folder of offers is laid over it.

    Raises
    ------
    CatalogFileError
        Naming the first such price.
    """
    for row in () if catalog.is_packaged else rows:
        if row.ref.date is not None and row.ref.date > today and not row.ref.file.startswith("catalog/"):
            msg = f"{row.ref.date} is still to come (today is {today}, UTC); write the day on which the price was read"
            raise CatalogFileError(row.ref.file, row.ref.line, "priced_on", msg)


def _gpu_records(problem: Problem, catalog: Catalog, names: Iterable[str]) -> Iterable[Gpu]:
    """GPU figures by name: the problem's own first, then the catalog's; GPUs without figures are left out."""
    for name in names:
        own = problem.gpus.get(name)
        if own is not None:
            record = own_gpu_record(name, own)
            if record is not None:
                yield record
        else:
            try:
                yield catalog.gpu(name)
            except ValueError as error:
                raise CatalogLookupError(str(error)) from error


def own_gpu_record(name: str, own: OwnGpu) -> Gpu | None:
    """A GPU that the problem describes, if it says enough to estimate with (memory, bandwidth, 16-bit peak)."""
    if own.memory is None or own.bandwidth is None or own.bf16 is None:
        return None
    link = (own.link_bandwidth or 0.0) / BYTES_PER_GB
    return Gpu(
        gpu_id=name,
        vendor="",
        architecture="",
        form_factor="",
        memory_usable_bytes=int(own.memory),
        memory_sold_gb=own.memory / BYTES_PER_GB,
        memory_bandwidth_gb_per_s=own.bandwidth / BYTES_PER_GB,
        bf16_dense_tflop_per_s=own.bf16,
        fp16_dense_tflop_per_s=own.bf16,
        fp16_fp16acc_dense_tflop_per_s=None,
        tf32_dense_tflop_per_s=own.tf32,
        fp32_tflop_per_s=own.fp32,
        fp8_dense_tflop_per_s=own.fp8,
        int8_dense_tops=own.int8,
        fp4_dense_tflop_per_s=own.fp4,
        link_kind=own.link,
        link_gb_per_s=link or (300.0 if own.link == "nvlink" else 25.0),
        pcie_gb_per_s=25.0,
        p2p=own.link != "none",
        tdp_w=(own.tdp or 0.0) * 1000,
        max_gpus_per_node=own.gpus_per_node,
        consumer=False,
        release_year=None,
        confidence="buyer",
        memory_origin="buyer",
        notes="",
        ref=SourceRef("problem file", 0, "buyer", None),
    )


def _estimate(problem: Problem, catalog: Catalog, gpus: Sequence[Gpu], supply: Supply) -> Estimates:
    sizes: dict[str, set[int]] = {}
    for option in supply.options:
        sizes.setdefault(option.gpu_id, set()).add(option.gpus_per_node)
    present = [gpu for gpu in gpus if gpu.gpu_id in sizes]
    there = {option.option_id for option in supply.options}
    measurements = [m for m in problem.measurements if m.option is None or m.option in there]
    return estimate_all(
        problem.workloads,
        present,
        {gpu: tuple(sorted(found)) for gpu, found in sizes.items()},
        catalog.model,
        measurements,
        {option.option_id: (option.gpu_id, option.gpus_per_node) for option in supply.options},
    )


def _refused(problem: Problem, supply: Supply, estimates: Estimates) -> Iterable[Rejection]:
    """Jobs that interruptions keep off offers."""
    for option in supply.options:
        for job in dict.fromkeys(e.workload for e in estimates.jobs):
            fitting = [e for e in estimates.jobs if e.workload == job and fits(e, option)]
            exact = [e for e in fitting if e.option == option.option_id]
            yield from refused_runs(problem, estimates, [(option, e) for e in exact or fitting])


def _default_assumptions(problem: Problem, supply: Supply, catalog: Catalog) -> Iterable[Assumption]:
    """What the file left to defaults, and what else the whole answer rests on."""
    horizon = problem.horizon
    yield _said(horizon.model_fields_set, "months", "horizon", horizon.months, "months")
    yield _said(
        problem.finance.model_fields_set, "discount_rate", "discount rate", problem.finance.discount_rate, "/year"
    )
    for workload in problem.workloads:
        name = f"headroom of {workload.name}"
        yield _said(workload.model_fields_set, "headroom", name, workload.headroom, "share")
    if problem.site:
        yield _electricity(problem.site, catalog)
        yield _said(problem.site.model_fields_set, "pue", "PUE", problem.site.pue, "")
    yield from _intensities(problem)
    yield from _estimated_emissions(problem, supply)
    present = {option.option_id for option in supply.options}
    for name, offer in _own_offers(problem):
        yield from _owning_defaults(name, offer)
        if name in present:
            yield from _delivery_defaults(name, offer)
    yield from _spot_of_the_catalog(problem, supply)
    dated = [o.price_date for o in supply.options if o.price_date]
    if dated:
        yield Assumption("oldest price considered", min(dated), "", "catalog and quotes", "catalog")
    undated = sum(1 for o in supply.options if not o.price_date and not o.existing_nodes)
    if undated:
        yield Assumption("prices without a date", float(undated), "offers", "catalog and quotes", "catalog")


def _intensities(problem: Problem) -> Iterable[Assumption]:
    """CO2e per kWh as given, and whether anything counts it."""
    given = {f"carbon of region {pattern}": grams for pattern, grams in problem.carbon.regions.items()}
    given |= {f"carbon of {name}": offer.carbon for name, offer in _own_offers(problem) if offer.carbon is not None}
    if problem.site is not None and problem.site.carbon is not None:
        given["carbon of the site"] = problem.site.carbon
    nothing = "; counted by nothing (no limits.carbon, no finance.carbon_price)"
    source = "problem file" if problem.counts_carbon else f"problem file{nothing}"
    for name, grams in given.items():
        yield Assumption(name, grams, "g CO2e/kWh", source, "user")


def _estimated_emissions(problem: Problem, supply: Supply) -> Iterable[Assumption]:
    """What the emissions of rented nodes are estimated by, where they count."""
    own = dict(_own_offers(problem))
    rented = [own.get(o.option_id) for o in supply.options if o.purchase_option != "owned"]
    if not problem.counts_carbon or not rented:
        return
    powers, pues = ([one is None or getattr(one, key) is None for one in rented] for key in ("power", "pue"))
    rests_on = (
        ("power of rented nodes", "host_factor", "× TDP of their GPUs", any(powers)),
        ("PUE of rented nodes", "pue", "", any(pues)),
    )
    for name, key, unit, used in rests_on:
        said = key in problem.carbon.model_fields_set
        source = "problem file" if said else f"default (see carbon.{key})"
        if used:
            yield Assumption(name, getattr(problem.carbon, key), unit, source, "user" if said else "estimate")
    yield Assumption("load of rented nodes", 1.0, "of their power, all paid hours", "emissions only", "estimate")


def _own_offers(problem: Problem) -> Iterable[tuple[str, Quote | ExistingNodes]]:
    """Quotes and existing nodes, by the names that their options have."""
    yield from ((quote.name, quote) for quote in problem.options.quotes)
    for index, nodes in enumerate(problem.options.existing, start=1):
        yield nodes.name or f"existing-{index}-{nodes.gpu}", nodes


def _owned(offer: Quote | ExistingNodes) -> bool:
    return offer.purchase == "owned" if isinstance(offer, Quote) else offer.term is None


def _owning_defaults(name: str, offer: Quote | ExistingNodes) -> Iterable[Assumption]:
    """Life and idle power of owned nodes, where the buyer left them out."""
    if _owned(offer) and offer.useful_life is None:
        yield Assumption(f"useful life of {name}", DEFAULT_USEFUL_LIFE_MONTHS, "months", "default", "default")
    if _owned(offer) and offer.power and offer.idle_power is None:
        yield Assumption(f"idle power of {name}", DEFAULT_IDLE_SHARE, "of nameplate", "default", "default")


def _delivery_defaults(name: str, offer: Quote | ExistingNodes) -> Iterable[Assumption]:
    """What is worth, costs and goes missing nothing unless the buyer says otherwise."""
    given, owned = offer.model_fields_set, _owned(offer)
    if owned and offer.residual is None:
        end = DEFAULT_RESIDUAL_FRACTION
        yield Assumption(f"worth of {name} at the end of its life", end, "share of price", "default", "default")
    if owned and not offer.maintenance:
        yield _said(given, "maintenance", f"maintenance of {name}", 0.0, "/year")
    held = not isinstance(offer, Quote) or offer.purchase in HELD_PURCHASES
    if held and isinstance(offer, Quote) and not offer.lead_time:
        yield _said(given, "lead_time", f"lead time of {name}", 0.0, "months")
    if held and offer.availability == 1:
        yield _said(given, "availability", f"availability of {name}", 1.0, "share of hours")
    if isinstance(offer, Quote) and not offer.interruptions_per_hour and _may_be_taken_back(offer):
        yield _never_taken_back(f"interruptions of {name}", said="interruptions_per_hour" in given)


def _may_be_taken_back(quote: Quote) -> bool:
    return quote.purchase == "spot" if quote.interruptible is None else quote.interruptible


def _spot_of_the_catalog(problem: Problem, supply: Supply) -> Iterable[Assumption]:
    """One line for all interruptible offers that nobody gives a rate for."""
    own = {name for name, _ in _own_offers(problem)}
    if any(o.interruptible and not o.interruptions_per_node_hour and o.option_id not in own for o in supply.options):
        yield _never_taken_back("interruptions of the catalog's spot offers")


def _never_taken_back(name: str, *, said: bool = False) -> Assumption:
    source = "problem file" if said else "default: spot capacity is planned as if never taken back"
    return Assumption(name, 0.0, "per node-hour", source, "user" if said else "default")


def _electricity(site: Site, catalog: Catalog) -> Assumption:
    row = catalog.electricity(site.region) if site.region else None
    if row is not None and row.value == site.electricity:
        day = row.ref.date.isoformat() if row.ref.date else ""
        return Assumption("electricity", site.electricity, "per kWh", f"{row.region}: {row.ref}", "catalog", day)
    return _said(site.model_fields_set, "electricity", "electricity", site.electricity, "per kWh")


def _literature(problem: Problem, catalog: Catalog, *, owning: bool) -> Literature:
    """What the catalog knows from the literature, as far as the problem needs it."""
    discounts = catalog.typical_discounts() if problem.options.estimated_discounts else ()
    return Literature(discounts, catalog.resale_values() if owning else ())


def _price_assumptions(problem: Problem, known: Literature, supply: Supply) -> Iterable[Assumption]:
    """The buyer's own terms, and what nobody quoted: discounts of reservations, resale values."""
    for terms in problem.options.discounts:
        day = terms.date.isoformat() if terms.date else ""
        idle = any(terms is one for one in supply.idle_terms)
        source = f"{terms.source}; {_FOR_NOTHING}" if idle else terms.source
        if terms.price is None:
            yield Assumption(f"discount: {terms.words}", terms.percent or 0.0, "share", source, "user", day)
        else:
            unit = f"{problem.currency}/h per {terms.per}"
            yield Assumption(f"own price: {terms.words}", terms.price, unit, source, "user", day)
    yield from _further_costs(problem, supply)
    for discount in known.discounts:
        name = f"estimated discount {discount.discount_id}"
        yield _from_literature(name, "share", discount, problem.options.estimated_discounts or "mid")
    for value in known.resale:
        name = f"resale of servers after {value.age_months:g} months"
        yield _from_literature(name, "share of price", value, (problem.site or Site()).resale)


def _further_costs(problem: Problem, supply: Supply) -> Iterable[Assumption]:
    """The buyer's further costs and what running costs rise by, as far as they are given."""
    for cost in problem.costs:
        money, per = problem.currency, f" per {cost.per}" if cost.per else ""
        figures = (
            (cost.once, f"{money} once{per}"),
            (cost.monthly, f"{money}/month{per}"),
            (cost.per_gb, f"{money}/GB"),
            (cost.percent, f"share of {cost.of}"),
        )
        idle = (cost.per or cost.selects) and not any(meant(cost, o) and per_node(cost, o) for o in supply.options)
        source = f"{cost.source}; {_FOR_NOTHING}" if idle else cost.source
        for value, unit in figures:
            if value is not None:
                yield Assumption(f"cost: {cost.words}", value, unit, source, "user")
    for what, change in problem.finance.opex_escalation:
        if change:
            yield Assumption(f"escalation of {what}", change, "/year", "problem file", "user")


def _from_literature(name: str, unit: str, found: TypicalDiscount | ResaleValue, level: str) -> Assumption:
    day = found.ref.date.isoformat() if found.ref.date else ""
    low, value, high = found.low_fraction, found.fraction(level), found.high_fraction
    return Assumption(name, value, unit, str(found.ref), "estimate", day, low, high)


def _said(given: set[str], field: str, name: str, value: float, unit: str) -> Assumption:
    kind = "user" if field in given else "default"
    return Assumption(name, value, unit, "problem file" if kind == "user" else "default", kind)
