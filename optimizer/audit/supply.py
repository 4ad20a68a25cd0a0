"""Checks of the options: each is derived anew from its quote, existing node or catalog row."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from catalog.schema import BILLING_STEP_HOURS, CloudOffer, ServerOffer
from optimizer.audit.carbon import with_carbon
from optimizer.audit.document import Answer, OptionRecord
from optimizer.audit.left_out import allowed_offers
from optimizer.audit.report import Checker
from optimizer.audit.sources import CatalogRows
from optimizer.audit.terms import at_terms, cheapest, estimates
from optimizer.problem.schema import ExistingNodes, Offer, Problem, Quote, Site

USEFUL_LIFE_MONTHS = 60.0
RESIDUAL_AT_END = 0.1
IDLE_SHARE = 0.3
"""Defaults of owned nodes (docs/model.md §Money)."""

Fields = dict[str, Any]


def check_supply(answer: Answer, problem: Problem, rows: CatalogRows, checker: Checker) -> dict[str, OptionRecord]:
    """Check every option; returns all offers at hand, also those that are no options, as far as they can be derived."""
    tdp = _tdp_kw(problem, rows)
    offers = {name: OptionRecord(**_as_tuples(fields)) for name, fields in _own_options(problem, tdp)}
    if problem.options.has_offers and rows.usable:
        listed = dict(_catalog_options(problem, rows, tdp))
        offers |= {name: _record(at_terms(fields, problem), problem) for name, fields in listed.items()}
        offers |= _estimated(answer, problem, rows, list(listed.values()))
    elif problem.options.has_offers:
        checker.notice("options", "inputs.options", f"options of the catalog are not re-derived: {rows.reason}")
    names = [option.option_id for option in answer.inputs.options]
    checker.holds("options", "inputs.options", len(set(names)) == len(names), "an option is listed twice")
    told = any("billing_step_hours" in option.model_fields_set for option in answer.inputs.options)
    for option in answer.inputs.options:
        where = f"inputs.options[{option.option_id}]"
        if option.option_id in offers:
            expected = offers[option.option_id].model_dump()
            if not told:  # a plan from before billing steps: all time was counted as it is used
                expected |= {"billing_step_hours": None, "billed_by_clock": None}
            if not rows.usable and option.gpu_id not in problem.gpus and expected["metered_kw"] is None:
                expected["metered_kw"] = option.metered_kw  # from the TDP that another catalog gives
            checker.same("options", where, option.model_dump(), expected)
        elif rows.usable or not problem.options.has_offers:
            checker.fail("options", where, "no quote, existing node or catalog row gives it")
    return offers


def _estimated(answer: Answer, problem: Problem, rows: CatalogRows, listed: list[Fields]) -> dict[str, OptionRecord]:
    """The reservations that nobody quoted and the problem asks to consider."""
    guesses = estimates(listed, rows.typical_discounts(problem), problem)
    records = {name: _record(fields, problem) for name, fields in guesses.items()}
    allowed = allowed_offers(answer, problem, rows, records)
    best = cheapest((guesses[name] for name in allowed), problem)
    return {fields["option_id"]: records[fields["option_id"]] for fields in best}


def _record(fields: Fields, problem: Problem) -> OptionRecord:
    return OptionRecord(**_as_tuples(_limited(fields, problem)))


def _as_tuples(fields: Fields) -> Fields:
    return {**fields, "residual_points": tuple(tuple(point) for point in fields["residual_points"])}


# --- one option per offer ---------------------------------------------------------------------------------------------


def _fields(**given: Any) -> Fields:
    """Every field of an option, as given or as it is where nothing is said."""
    silent: Fields = {
        name: 0.0
        for name, field in OptionRecord.model_fields.items()
        if field.annotation is float and name not in ("availability", "pue")
    }
    silent |= {"availability": 1.0, "pue": 1.0, "useful_life_months": USEFUL_LIFE_MONTHS}
    silent |= {"residual_points": [[0.0, 1.0], [USEFUL_LIFE_MONTHS, RESIDUAL_AT_END]]}
    silent |= {
        "term_months": None,
        "retire_months": None,
        "max_nodes": None,
        "rack_units": None,
        "carbon_g_per_kwh": None,
        "metered_kw": None,
        "min_nodes": 1,
        "existing_nodes": 0,
    }
    silent |= {"billing_step_hours": None, "billed_by_clock": None}
    silent |= {"cancellable": False, "interruptible": False, "source": "", "price_date": ""}
    return silent | given


def _tdp_kw(problem: Problem, rows: CatalogRows) -> dict[str, float]:
    """Power of one GPU by type, the buyer's own figures first, where emissions are estimated from it."""
    own = {name: gpu.tdp for name, gpu in problem.gpus.items() if gpu.tdp}
    names = {offer.gpu for offer in (*problem.options.quotes, *problem.options.existing)}
    if problem.options.has_offers and rows.usable:
        names |= {offer.gpu_id for offer in rows.offers(problem)}
    known = {name: rows.gpu(name).tdp_w for name in names - set(problem.gpus)} if rows.usable else {}
    return own | {name: watts / 1000 for name, watts in known.items() if watts}


def _own_options(problem: Problem, tdp: dict[str, float]) -> Iterator[tuple[str, Fields]]:
    for quote in problem.options.quotes:
        fields = with_carbon(_of_quote(quote, problem.site), quote, problem, tdp)
        yield quote.name, _limited(fields, problem)
    for number, nodes in enumerate(problem.options.existing, start=1):
        fields = _of_existing(nodes, f"existing-{number}-{nodes.gpu}", problem.site)
        yield fields["option_id"], _limited(with_carbon(fields, nodes, problem, tdp), problem)


def _catalog_options(problem: Problem, rows: CatalogRows, tdp: dict[str, float]) -> Iterator[tuple[str, Fields]]:
    rate = 1.0
    if problem.currency != "USD" and "USD" in problem.exchange_rates:
        rate = problem.exchange_rates["USD"].rate
    for offer in rows.offers(problem):
        yield offer.offer_id, with_carbon(_of_offer(offer, rate), None, problem, tdp)
    resale = rows.resale(problem)
    for server in rows.servers(problem):
        fields = _of_server(server, problem.site or Site(), rate, resale)
        yield server.server_id, with_carbon(fields, None, problem, tdp)


def _limited(fields: Fields, problem: Problem) -> Fields:
    """With the stock limit of the problem, where that is tighter, and without delivery times where it supposes none."""
    limits = [m for m in (fields["max_nodes"], problem.limits.stock.get(fields["option_id"])) if m is not None]
    lead = fields["lead_months"] if problem.options.lead_times else 0.0
    return {**fields, "max_nodes": min(limits, default=None), "lead_months": lead}


def _day(day: date | None) -> str:
    return "" if day is None else day.isoformat()


def _worth(offer: Offer) -> Fields:
    """Useful life and residual value by age."""
    life = USEFUL_LIFE_MONTHS if offer.useful_life is None else offer.useful_life
    if isinstance(offer.residual, list):
        points = [[point.age, point.fraction] for point in offer.residual]
    else:
        points = [[0.0, 1.0], [life, RESIDUAL_AT_END if offer.residual is None else offer.residual]]
    return {"useful_life_months": life, "residual_points": points}


def _upkeep(offer: Offer, site: Site | None) -> Fields:
    """Power and what it costs, for nodes that stand at the buyer's site; its figures are the site's by default."""
    place = site or Site()
    power = offer.power or 0.0
    return {
        "nameplate_kw": power,
        "idle_kw": IDLE_SHARE * power if offer.idle_power is None else offer.idle_power,
        "load_kw": power if offer.load_power is None else offer.load_power,
        "pue": place.pue if offer.pue is None else offer.pue,
        "electricity_per_kwh": place.electricity if offer.electricity is None else offer.electricity,
        "hosting_per_kw_month": place.hosting if offer.hosting is None else offer.hosting,
        "maintenance_fraction_per_year": offer.maintenance,
        "rack_units": offer.rack_units,
    }


def _step(named: str | None, *, clock: bool = False) -> Fields:
    """Billing step of nodes rented by use, where it is known."""
    hours = BILLING_STEP_HOURS.get(named or "")
    return {"billing_step_hours": hours, "billed_by_clock": None if hours is None else clock}


def _of_quote(quote: Quote, site: Site | None) -> Fields:
    owned = quote.purchase == "owned"
    price = (quote.price or 0.0) * (quote.gpus_per_node if quote.per == "gpu" else 1)
    spot = quote.purchase == "spot"
    return _fields(
        option_id=quote.name,
        gpu_id=quote.gpu,
        gpus_per_node=quote.gpus_per_node,
        provider=quote.provider or ("own" if owned else quote.name),
        region=quote.region or "",
        purchase_option=quote.purchase,
        billing="use" if quote.purchase in ("on-demand", "spot") else "holding",
        **{"capex_per_node" if owned else "price_per_node_hour": price},
        **_step(quote.billing_step, clock=quote.billed_by_clock),
        upfront_per_node=quote.upfront,
        installation_per_node=quote.installation,
        term_months=quote.term,
        cancellable=quote.cancellable,
        lead_months=quote.lead_time,
        min_nodes=quote.min_nodes,
        max_nodes=quote.max_nodes,
        availability=quote.availability,
        interruptible=spot if quote.interruptible is None else quote.interruptible,
        interruptions_per_node_hour=quote.interruptions_per_hour,
        hours_lost_per_interruption=quote.hours_lost,
        retire_months=quote.retire,
        source=quote.source,
        price_date=_day(quote.date),
        **_worth(quote),
        **(_upkeep(quote, site) if owned else {}),
    )


def _of_existing(nodes: ExistingNodes, unnamed: str, site: Site | None) -> Fields:
    owned = nodes.term is None
    return _fields(
        option_id=nodes.name or unnamed,
        gpu_id=nodes.gpu,
        gpus_per_node=nodes.gpus_per_node,
        provider=nodes.provider or "own",
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
        retire_months=None if nodes.retire is None else max(nodes.retire - nodes.age, 0.0),
        source=nodes.source,
        price_date=_day(nodes.date),
        **_worth(nodes),
        **(_upkeep(nodes, site) if owned else {}),
    )


def _of_offer(offer: CloudOffer, rate: float) -> Fields:
    by_use = offer.purchase_option not in ("reserved", "committed-use")
    return _fields(
        option_id=offer.offer_id,
        gpu_id=offer.gpu_id,
        gpus_per_node=offer.gpus_per_node,
        provider=offer.provider,
        region=offer.region,
        purchase_option=offer.purchase_option,
        billing="use" if by_use else "holding",
        price_per_node_hour=offer.price_usd_per_node_hour * rate,
        **_step(offer.billing_step if by_use else None),
        upfront_per_node=offer.upfront_usd_per_node * rate,
        term_months=None if by_use else offer.term_months,
        interruptible=offer.purchase_option == "spot",
        source=str(offer.ref),
        price_date=_day(offer.ref.date),
    )


def _of_server(server: ServerOffer, site: Site, rate: float, resale: Mapping[float, float]) -> Fields:
    life, last = server.useful_life_months, server.residual_fraction
    aged = [[age, max(share, last)] for age, share in sorted(resale.items()) if age < life]
    return _fields(
        option_id=server.server_id,
        gpu_id=server.gpu_id,
        gpus_per_node=server.gpus_per_node,
        provider="own",
        region="",
        purchase_option="owned",
        billing="holding",
        capex_per_node=server.price_usd_per_node * rate,
        installation_per_node=server.installation_usd_per_node * rate,
        lead_months=server.lead_time_months,
        useful_life_months=server.useful_life_months,
        residual_points=[[0.0, 1.0], *aged, [life, last]],
        nameplate_kw=server.nameplate_kw,
        idle_kw=server.idle_kw,
        load_kw=server.load_kw,
        pue=site.pue,
        electricity_per_kwh=site.electricity,
        hosting_per_kw_month=site.hosting,
        maintenance_fraction_per_year=server.maintenance_fraction_per_year,
        source=str(server.ref),
        price_date=_day(server.ref.date),
    )
