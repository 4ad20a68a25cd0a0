"""Supply: quotes, existing hardware, cloud offers and servers all become one type, `Option`.

Constraints never ask who owns a node. `billing` is "use" (paid by the hour rented) or "holding" (paid from arrival to
the end of its term, used or not; owned nodes are held without a term).
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import TypedDict

from catalog.schema import BILLING_STEP_HOURS, CloudOffer, Gpu, ResaleValue, ServerOffer, TypicalDiscount
from optimizer.model.billing_steps import billed_no_coarser
from optimizer.model.emitters import EMISSIONS_UNKNOWN, emissions_unknown, grams_per_node_hour, with_emissions
from optimizer.model.option import DEFAULT_IDLE_SHARE as DEFAULT_IDLE_SHARE
from optimizer.model.option import DEFAULT_RESIDUAL_FRACTION
from optimizer.model.option import DEFAULT_USEFUL_LIFE_MONTHS as DEFAULT_USEFUL_LIFE_MONTHS
from optimizer.model.option import Option as Option
from optimizer.model.prices import cheapest_estimates, cost_signature, estimated_reservations, terms_of, with_terms
from optimizer.problem.schema import OWN_PROVIDER, Discount, ExistingNodes, Offer, Options, Problem, Quote, Site
from optimizer.units import HOURS_PER_DAY


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An offer that was not considered, and why (part of the answer to "why not X")."""

    option_id: str
    gpu_id: str
    reason: str


def matches(patterns: Sequence[str] | None, text: str) -> bool:
    """Whether `text` matches one of the shell patterns (None or empty: anything)."""
    return not patterns or any(fnmatchcase(text.lower(), pattern.lower()) for pattern in patterns)


def _residual(offer: Offer, life_months: float) -> tuple[tuple[float, float], ...]:
    if isinstance(offer.residual, list):
        return tuple((point.age, point.fraction) for point in offer.residual)
    end = DEFAULT_RESIDUAL_FRACTION if offer.residual is None else offer.residual
    return ((0.0, 1.0), (life_months, end))


def _site_value(own: float | None, site: Site | None, name: str, default: float) -> float:
    if own is not None:
        return own
    return float(getattr(site, name)) if site else default


class _Running(TypedDict, total=False):
    nameplate_kw: float
    idle_kw: float
    load_kw: float
    pue: float
    electricity_per_kwh: float
    hosting_per_kw_month: float
    maintenance_fraction_per_year: float
    rack_units: float | None


def _running(offer: Offer, site: Site | None, *, owned: bool) -> _Running:
    """Power and its price: only owned nodes draw the buyer's electricity."""
    nameplate = offer.power or 0.0
    if not owned:
        return {"nameplate_kw": 0.0}
    idle = DEFAULT_IDLE_SHARE * nameplate if offer.idle_power is None else offer.idle_power
    return {
        "nameplate_kw": nameplate,
        "idle_kw": idle,
        "load_kw": nameplate if offer.load_power is None else offer.load_power,
        "pue": _site_value(offer.pue, site, "pue", 1.0),
        "electricity_per_kwh": _site_value(offer.electricity, site, "electricity", 0.0),
        "hosting_per_kw_month": _site_value(offer.hosting, site, "hosting", 0.0),
        "maintenance_fraction_per_year": offer.maintenance,
        "rack_units": offer.rack_units,
    }


def from_quote(quote: Quote, site: Site | None) -> Option:
    """A buyer's quote; a price per GPU is turned into one per node."""
    owned = quote.purchase == "owned"
    price = (quote.price or 0.0) * (quote.gpus_per_node if quote.per == "gpu" else 1)
    life = DEFAULT_USEFUL_LIFE_MONTHS if quote.useful_life is None else quote.useful_life
    return Option(
        option_id=quote.name,
        gpu_id=quote.gpu,
        gpus_per_node=quote.gpus_per_node,
        provider=quote.provider or (OWN_PROVIDER if owned else quote.name),
        region=quote.region or "",
        purchase_option=quote.purchase,
        billing="use" if quote.purchase in ("on-demand", "spot") else "holding",
        price_per_node_hour=0.0 if owned else price,
        billing_step_hours=BILLING_STEP_HOURS.get(quote.billing_step or ""),
        billed_by_clock=quote.billed_by_clock if quote.billing_step else None,
        upfront_per_node=quote.upfront,
        capex_per_node=price if owned else 0.0,
        installation_per_node=quote.installation,
        term_months=quote.term,
        cancellable=quote.cancellable,
        lead_months=quote.lead_time,
        min_nodes=quote.min_nodes,
        max_nodes=quote.max_nodes,
        availability=quote.availability,
        interruptible=quote.purchase == "spot" if quote.interruptible is None else quote.interruptible,
        interruptions_per_node_hour=quote.interruptions_per_hour,
        hours_lost_per_interruption=quote.hours_lost,
        useful_life_months=life,
        residual_points=_residual(quote, life),
        retire_months=quote.retire,
        source=quote.source,
        price_date=quote.date.isoformat() if quote.date else "",
        **_running(quote, site, owned=owned),
    )


def from_existing(nodes: ExistingNodes, index: int, site: Site | None) -> Option:
    """Hardware already held: it needs no order; what was paid is sunk, its residual value counts."""
    owned = nodes.term is None
    life = DEFAULT_USEFUL_LIFE_MONTHS if nodes.useful_life is None else nodes.useful_life
    return Option(
        option_id=nodes.name or f"existing-{index + 1}-{nodes.gpu}",
        gpu_id=nodes.gpu,
        gpus_per_node=nodes.gpus_per_node,
        provider=nodes.provider or OWN_PROVIDER,
        region=nodes.region or "",
        purchase_option="owned" if owned else "reserved",
        billing="holding",
        price_per_node_hour=nodes.fee,
        capex_per_node=nodes.paid if owned else 0.0,
        term_months=nodes.term,
        max_nodes=nodes.nodes,
        existing_nodes=nodes.nodes,
        age_months=nodes.age,
        availability=nodes.availability,
        useful_life_months=life,
        residual_points=_residual(nodes, life),
        retire_months=None if nodes.retire is None else max(0.0, nodes.retire - nodes.age),
        source=nodes.source,
        price_date=nodes.date.isoformat() if nodes.date else "",
        **_running(nodes, site, owned=owned),
    )


def from_cloud_offer(offer: CloudOffer, rate: float) -> Option:
    """A row of the catalog's offers, its dollars turned into the problem's currency at `rate`."""
    held = offer.purchase_option in ("reserved", "committed-use")
    return Option(
        option_id=offer.offer_id,
        gpu_id=offer.gpu_id,
        gpus_per_node=offer.gpus_per_node,
        provider=offer.provider,
        region=offer.region,
        purchase_option=offer.purchase_option,
        billing="holding" if held else "use",
        price_per_node_hour=offer.price_usd_per_node_hour * rate,
        billing_step_hours=None if held else BILLING_STEP_HOURS.get(offer.billing_step),
        billed_by_clock=None if held or offer.billing_step not in BILLING_STEP_HOURS else False,
        upfront_per_node=offer.upfront_usd_per_node * rate,
        term_months=offer.term_months if held else None,
        interruptible=offer.purchase_option == "spot",
        source=str(offer.ref),
        price_date=offer.ref.date.isoformat() if offer.ref.date else "",
    )


def resale_points(server: ServerOffer, site: Site, values: Sequence[ResaleValue]) -> tuple[tuple[float, float], ...]:
    """Worth of a server of the catalog by age: the literature's, down to its share at the end of its useful life."""
    life, end = server.useful_life_months, server.residual_fraction
    between = [(value.age_months, max(end, value.fraction(site.resale))) for value in values]
    return ((0.0, 1.0), *(point for point in between if point[0] < life), (life, end))


def from_server(server: ServerOffer, site: Site, rate: float, values: Sequence[ResaleValue] = ()) -> Option:
    """A node that can be bought, standing at the buyer's site."""
    return Option(
        option_id=server.server_id,
        gpu_id=server.gpu_id,
        gpus_per_node=server.gpus_per_node,
        provider=OWN_PROVIDER,
        region="",
        purchase_option="owned",
        billing="holding",
        capex_per_node=server.price_usd_per_node * rate,
        installation_per_node=server.installation_usd_per_node * rate,
        lead_months=server.lead_time_months,
        useful_life_months=server.useful_life_months,
        residual_points=resale_points(server, site, values),
        nameplate_kw=server.nameplate_kw,
        idle_kw=server.idle_kw,
        load_kw=server.load_kw,
        pue=site.pue,
        electricity_per_kwh=site.electricity,
        hosting_per_kw_month=site.hosting,
        maintenance_fraction_per_year=server.maintenance_fraction_per_year,
        source=str(server.ref),
        price_date=server.ref.date.isoformat() if server.ref.date else "",
    )


@dataclass(frozen=True, slots=True)
class Supply:
    """The options considered and the offers left out."""

    options: tuple[Option, ...]
    left_out: tuple[LeftOut, ...]
    idle_terms: tuple[Discount, ...] = ()
    """Discounts and private prices that no offer considered is at."""


@dataclass(frozen=True, slots=True)
class Literature:
    """Ranges of the catalog that stand in where nobody quotes: reservations' discounts, resale values by age."""

    discounts: tuple[TypicalDiscount, ...] = ()
    resale: tuple[ResaleValue, ...] = ()


def list_supply(
    problem: Problem,
    gpus: Sequence[Gpu],
    offers: Iterable[CloudOffer],
    servers: Iterable[ServerOffer],
    today: date,
    literature: Literature | None = None,
    keep: Container[str] = (),
) -> Supply:
    """All options that the problem allows, in the order quotes, existing, catalog; dominated offers are left out.

    Those in `keep` are not left out for being dominated.

    `gpus` gives the licence class of cards and their power; `today` dates the age of prices.
    """
    known = literature or Literature()
    consumer = {gpu.gpu_id for gpu in gpus if gpu.consumer}
    rated = {gpu.gpu_id: gpu.tdp_w / 1000 for gpu in gpus if gpu.tdp_w}
    rated |= {name: gpu.tdp for name, gpu in problem.gpus.items() if gpu.tdp}
    found = [(_emitting(from_quote(q, problem.site), q, problem, rated), q.consumer) for q in problem.options.quotes]
    for index, nodes in enumerate(problem.options.existing):
        found.append((_emitting(from_existing(nodes, index, problem.site), nodes, problem, rated), False))
    catalog = _of_the_catalog(problem, offers, servers, known.resale) if problem.options.has_offers else []
    listed = [_emitting(option, None, problem, rated) for option in catalog]
    found += [(with_terms(option, problem), None) for option in listed]
    kept: list[Option] = []
    left_out: list[LeftOut] = []
    for option, says_consumer in found:
        is_consumer = option.gpu_id in consumer if says_consumer is None else says_consumer
        reason = _barred(option, problem, today, consumer=is_consumer)
        if reason:
            left_out.append(LeftOut(option.option_id, option.gpu_id, reason))
        else:
            kept.append(_as_delivered(option, problem))
    guesses = estimated_reservations(listed, known.discounts, problem)
    allowed = [option for option in guesses if not _barred(option, problem, today, consumer=False)]
    kept += [_as_delivered(option, problem) for option in cheapest_estimates(allowed, problem)]
    idle = _idle_terms(problem, listed, {left.option_id for left in left_out})
    kept, dominated = drop_dominated(kept, problem, keep)
    return Supply(tuple(kept), (*left_out, *dominated), idle)


def _emitting(option: Option, offer: Offer | None, problem: Problem, rated: Mapping[str, float]) -> Option:
    return with_emissions(option, offer, problem, rated.get(option.gpu_id))


def _idle_terms(problem: Problem, listed: Iterable[Option], barred: Container[str]) -> tuple[Discount, ...]:
    """The buyer's terms that hold for nothing: other terms come after them, or the problem bars what they name."""
    used = [terms_of(option, problem) for option in listed if option.option_id not in barred]
    return tuple(terms for terms in problem.options.discounts if not any(terms is one for one in used))


def _of_the_catalog(
    problem: Problem, offers: Iterable[CloudOffer], servers: Iterable[ServerOffer], resale: Sequence[ResaleValue]
) -> list[Option]:
    rate, site = _usd_rate(problem), problem.site
    bought = [from_server(server, site, rate, resale) for server in servers] if site else []
    return [from_cloud_offer(offer, rate) for offer in offers] + bought


def _as_delivered(option: Option, problem: Problem) -> Option:
    prompt = option if problem.options.lead_times else replace(option, lead_months=0.0)
    return _with_stock_limit(prompt, problem)


def _usd_rate(problem: Problem) -> float:
    if problem.currency == "USD" or "USD" not in problem.exchange_rates:
        return 1.0
    return problem.exchange_rates["USD"].rate


def _barred(option: Option, problem: Problem, today: date, *, consumer: bool) -> str:
    """Why the problem's own words keep an option out; empty if they do not."""
    wanted = problem.options
    if option.existing_nodes:
        return ""
    quoted = any(option.option_id == quote.name for quote in wanted.quotes)
    rented_from = "" if option.provider == OWN_PROVIDER else option.provider
    rules = (
        (
            wanted.gpus is not None and option.gpu_id not in wanted.gpus and not quoted,
            "GPU type is not in options.gpus",
        ),
        (
            wanted.purchase is not None and option.purchase_option not in wanted.purchase,
            f"purchase option {option.purchase_option} is not in options.purchase",
        ),
        (
            bool(rented_from) and not matches(wanted.providers.allow, rented_from),
            f"provider {option.provider} is not in options.providers.allow",
        ),
        (
            bool(rented_from and wanted.providers.deny) and matches(wanted.providers.deny, rented_from),
            f"provider {option.provider} is in options.providers.deny",
        ),
        (
            bool(wanted.regions) and bool(option.region) and not matches(wanted.regions, option.region),
            f"region {option.region} is not in options.regions",
        ),
        (
            consumer and option.purchase_option == "owned" and not (problem.site or Site()).consumer_gpus_allowed,
            "the licence of consumer cards bars them from data centres (site.consumer_gpus_allowed: false)",
        ),
        (
            _rack_units_unknown(option, problem),
            "its rack units are not known, and site.rack_units_limit limits them: add it as a quote with rack_units",
        ),
        (emissions_unknown(option, problem), EMISSIONS_UNKNOWN),
        (_too_old(option, wanted, today), f"price of {option.price_date or 'unknown date'} is past price_age_limit"),
    )
    return next((reason for barred, reason in rules if barred), "")


def _rack_units_unknown(option: Option, problem: Problem) -> bool:
    limited = problem.site is not None and problem.site.rack_units_limit is not None
    return limited and option.purchase_option == "owned" and option.rack_units is None


def _too_old(option: Option, wanted: Options, today: date) -> bool:
    if wanted.price_age_limit is None:
        return False
    if not option.price_date:
        return True
    age_hours = (today - date.fromisoformat(option.price_date)).days * HOURS_PER_DAY
    return age_hours > wanted.price_age_limit


def _with_stock_limit(option: Option, problem: Problem) -> Option:
    stock = problem.limits.stock.get(option.option_id)
    if stock is None or (option.max_nodes is not None and option.max_nodes <= stock):
        return option
    return replace(option, max_nodes=stock)


def drop_dominated(
    options: Sequence[Option], problem: Problem, keep: Container[str] = ()
) -> tuple[list[Option], list[LeftOut]]:
    """Leave out offers that another, unlimited one beats or equals in everything the model can see, but for `keep`.

    Only offers rented by use, without stock or provider limit on the better one, in no measurement, and reachable for
    the same workloads (no workload restricts regions) are compared; where a service may be split into stages, only
    offers of one provider and region, which can hand requests over to the same partners.
    """
    if any(w.data.regions for w in problem.workloads):
        return list(options), []
    measured = {m.option for m in problem.measurements if m.option}
    one_pool = any(w.kind != "service" and w.spread == "one-pool" for w in problem.workloads)
    split = any(w.kind == "service" and w.disaggregated != "never" for w in problem.workloads)
    few = problem.limits.vendors is not None
    pools = Counter(o.pool for o in options)
    kept: list[Option] = []
    dominated: list[LeftOut] = []
    by_price = sorted(options, key=lambda o: (o.price_per_node_hour, o.option_id))
    best: dict[tuple[object, ...], list[Option]] = {}
    jobs = any(w.kind != "service" for w in problem.workloads)
    for option in by_price:
        lost = (option.interruptions_per_node_hour, option.hours_lost_per_interruption)
        node = (option.gpu_id, option.gpus_per_node, option.productive_share, *lost)
        partners = (option.provider, option.region) if split else (option.provider,) if few else ()
        key = (*node, option.purchase_option, option.interruptible, *cost_signature(option, problem), *partners)
        key = (*key, grams_per_node_hour(option, problem))
        comparable = not option.held and option.option_id not in measured and option.option_id not in keep
        winner = next((one for one in best.get(key, ()) if billed_no_coarser(one, option, jobs=jobs)), None)
        # A job that keeps to one pool may need this offer beside another of its pool.
        alone = not one_pool or pools[option.pool] == 1 or (winner is not None and winner.pool == option.pool)
        if comparable and alone and winner is not None:
            dominated.append(
                LeftOut(option.option_id, option.gpu_id, f"same node, not cheaper than {winner.option_id}")
            )
            continue
        kept.append(option)
        unlimited = option.max_nodes is None and option.provider not in problem.limits.providers
        if comparable and unlimited and winner is None:
            best.setdefault(key, []).append(option)
    order = {o.option_id: i for i, o in enumerate(options)}
    return sorted(kept, key=lambda o: order[o.option_id]), dominated
