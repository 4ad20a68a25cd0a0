"""Emissions derived anew: what nodes emit per hour, and the tonnes of a plan's decisions with their price."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from optimizer.audit.billing import hours_rented
from optimizer.audit.calendar import HOURS_PER_MONTH
from optimizer.audit.case import Case, Key
from optimizer.audit.document import OptionRecord
from optimizer.audit.lines import Line, stays_charged
from optimizer.audit.stretches import When, hours_charged
from optimizer.problem.schema import Offer, Problem

Fields = dict[str, Any]
KG_PER_TONNE = 1000.0
PRICE = "finance.carbon_price"


# --- what is known of an offer ----------------------------------------------------------------------------------------


def with_carbon(fields: Fields, offer: Offer | None, problem: Problem, tdp_kw: Mapping[str, float]) -> Fields:
    """Fields of an option with its intensity and, if rented, its estimated power at the meter."""
    said = None if offer is None else offer.carbon
    if fields["purchase_option"] == "owned":
        site = None if problem.site is None else problem.site.carbon
        return {**fields, "carbon_g_per_kwh": site if said is None else said}
    for pattern, grams in reversed(problem.carbon.regions.items()) if said is None else ():
        if fnmatchcase(fields["region"].lower(), pattern.lower()):
            said = grams
            break
    rated = tdp_kw.get(fields["gpu_id"])
    host = None if rated is None else rated * problem.carbon.host_factor * fields["gpus_per_node"]
    kw = host if offer is None or offer.power is None else offer.power
    pue = offer.pue if offer is not None and offer.pue is not None else problem.carbon.pue
    return {**fields, "carbon_g_per_kwh": said, "metered_kw": None if said is None or kw is None else kw * pue}


def counted(problem: Problem) -> bool:
    """Whether emissions are limited or cost something."""
    return problem.limits.carbon is not None or (problem.finance.carbon_price or 0.0) > 0


def unknown(option: OptionRecord, problem: Problem) -> bool:
    """Whether emissions count and nobody knows those of an option."""
    if not counted(problem):
        return False
    estimated = option.purchase_option != "owned"
    return option.carbon_g_per_kwh is None or (estimated and option.metered_kw is None)


def kg_per_hour(fields: Mapping[str, Any], problem: Problem) -> float:
    """What a rented node emits in an hour, where that counts."""
    if not counted(problem):
        return 0.0
    return (fields["metered_kw"] or 0.0) * (fields["carbon_g_per_kwh"] or 0.0) / 1000


# --- what a plan emits ------------------------------------------------------------------------------------------------


def carbon_lines(case: Case, busy: Mapping[str, Iterable[tuple[Key, float]]]) -> list[Line]:
    """Tonnes emitted inside the horizon, by option and period, at the price of a tonne (0 without)."""
    found: list[Line] = []
    price = case.problem.finance.carbon_price or 0.0
    for option in case.options.values():
        lines: dict[When, Line] = {}
        fixed = _of_time(case, option)
        for when, tonnes, present, existing in (*fixed, *_of_use(case, option, busy.get(option.option_id, ()))):
            line = lines.setdefault(when, Line("carbon_fee", option, when[0], price, unit="t CO2e", said=PRICE))
            line.quantity += tonnes
            line.npv += present * price
            line.fixed_quantity += existing[0]
            line.fixed_npv += existing[1] * price
        found += lines.values()
    return found


Emitted = tuple[When, float, float, tuple[float, float]]
"""When, tonnes, tonnes weighted by the present value of a payment then; the same of what existing nodes emit anyway."""


def _of_time(case: Case, option: OptionRecord) -> list[Emitted]:
    """Of held nodes, month by month: owned ones idle, reserved ones at their full power."""
    owned = option.purchase_option == "owned"
    kw = option.idle_kw * option.pue if owned else option.metered_kw or 0.0
    per_month = kw * HOURS_PER_MONTH * (option.carbon_g_per_kwh or 0.0) / 1000 / KG_PER_TONNE
    stays = stays_charged(case, option, 0.0, whole_term=False) if option.held else {}
    return [
        (when, s.months * per_month, s.present * per_month, (s.fixed_months * per_month, s.fixed_present * per_month))
        for when, s in stays.items()
    ]


def _of_use(case: Case, option: OptionRecord, busy: Iterable[tuple[Key, float]]) -> Iterator[Emitted]:
    """Of nodes rented by the hour, and what owned ones draw more while they are busy."""
    grams = (option.carbon_g_per_kwh or 0.0) / 1000 / KG_PER_TONNE
    if not option.held:
        per_hour = (option.metered_kw or 0.0) * grams
        for when, (hours, present) in hours_rented(case, option, 0.0, (0.0, case.horizon)).items():
            yield when, hours * per_hour, present * per_hour, (0.0, 0.0)
        return
    nodes = list(busy) if option.purchase_option == "owned" else []
    per_hour = (option.load_kw - option.idle_kw) * option.pue * grams
    total: dict[When, list[tuple[float, float]]] = defaultdict(list)
    for key, count in nodes:
        for when, (hours, present) in hours_charged(case, key, 0.0).items():
            total[when].append((count * hours * per_hour, count * present * per_hour))
    for when, parts in total.items():
        yield when, math.fsum(t for t, _ in parts), math.fsum(p for _, p in parts), (0.0, 0.0)
