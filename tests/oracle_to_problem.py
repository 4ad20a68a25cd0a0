"""Print the problem file for a fully specified procurement problem given as JSON facts.

    python tests/oracle_to_problem.py FACTS.json > problem.yaml

The facts name their own GPU types and give throughputs, prices and powers, so all becomes measurements and quotes.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

HOURS_PER_MONTH = 730


def problem_from_facts(facts: dict[str, Any], name: str) -> dict[str, Any]:
    """The problem file as plain data."""
    jobs = [job_entry(job) for job in facts["jobs"]]
    services = [service_entry(service, facts) for service in facts["services"]]
    return {
        "name": name,
        "currency": facts["currency"],
        "horizon": {"months": facts["horizon_months"], "periods": facts["periods"]},
        "finance": {"discount_rate": facts["discount_rate_per_year"]},
        "slices": facts["slices"],
        "workloads": services + jobs,
        "measurements": measurements(facts),
        "gpus": {gpu: {} for gpu in dict.fromkeys(option["gpu_type"] for option in facts["options"])},
        "options": {"catalog": False, "quotes": [quote(option, facts["currency"]) for option in facts["options"]]},
        "limits": limits(facts),
        **site(facts),
    }


def service_entry(service: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """A service whose classes give their own rates."""
    traffic = {
        "by_slice": service["multiplier_by_slice"],
        "by_period": service["multiplier_by_period"],
    }
    entry = {
        "name": service["name"],
        "kind": "service",
        "headroom": service["headroom_factor"] - 1.0,
        "traffic": {k: v for k, v in traffic.items() if v is not None},
        "classes": [{"name": c["name"], "requests_per_s": c["rate_per_s"]} for c in service["classes"]],
    }
    spare = facts["redundancy"]["spare_nodes"]
    return entry | ({"redundancy": f"n+{spare}"} if spare else {})


def job_entry(job: dict[str, Any]) -> dict[str, Any]:
    """A job with work in its own unit."""
    entry = {
        "name": job["name"],
        "kind": "batch",
        "work": {"amount": job["work_units"], "unit": job["work_unit"]},
        "start": f"{job['release_hour']!r} h",
        "deadline": f"{job['deadline_hour'] - job['release_hour']!r} h",
        "min_gpus": job["min_gpus"],
        "spread": "one-gpu-type" if job["single_gpu_type"] else "any",
    }
    return entry | ({"max_gpus": job["max_gpus"]} if job["max_gpus"] is not None else {})


def measurements(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """A rate per service, class and option, a yield per job and option."""
    nodes = {option["name"]: option["gpus_per_node"] for option in facts["options"]}
    served = [
        {
            "workload": service["name"],
            "option": rate["option"],
            "class": rate["class"],
            "requests_per_s": rate["requests_per_s_per_node"],
            "gpus_per_replica": nodes[rate["option"]],
        }
        for service in facts["services"]
        for rate in service["serves"]
    ]
    worked = [
        {
            "workload": job["name"],
            "option": rate["option"],
            "per_gpu_hour": rate["units_per_gpu_hour"],
            "gpus_per_replica": 1,
        }
        for job in facts["jobs"]
        for rate in job["yields"]
    ]
    return served + worked


def quote(option: dict[str, Any], currency: str) -> dict[str, Any]:
    """An option as a quote."""
    owned, held = option["billing"] == "owned", option["billing"] == "holding"
    purchase = "owned" if owned else "reserved" if held else "spot" if option.get("interruptible") else "on-demand"
    entry = {
        "name": option["name"],
        "gpu": option["gpu_type"],
        "gpus_per_node": option["gpus_per_node"],
        "provider": option["provider"],
        "purchase": purchase,
        "price": f"{option['capex_per_node']!r} {currency}"
        if owned
        else f"{option['price_per_node_hour']!r} {currency}/h",
        "interruptible": bool(option.get("interruptible", False)),
        "availability": option.get("availability") or 1.0,
        "interruptions_per_hour": option.get("interruptions_per_node_hour") or 0.0,
        "hours_lost": f"{option.get('hours_lost_per_interruption') or 0.0!r} h",
    }
    optional = {
        "max_nodes": option.get("max_nodes"),
        "min_nodes": option.get("min_nodes_per_order"),
        "upfront": option.get("upfront_per_node"),
        "installation": option.get("installation_per_node"),
        "cancellable": option.get("cancellable_at_horizon"),
        "term": months(option.get("term_months")),
        "lead_time": months(option.get("lead_time_months")),
    }
    return entry | {k: v for k, v in optional.items() if v is not None} | (ownership(option) if owned else {})


def ownership(option: dict[str, Any]) -> dict[str, Any]:
    """Life, resale, power and upkeep of an owned node."""
    return {
        "useful_life": months(option["useful_life_months"]),
        "residual": [{"age": months(age), "fraction": fraction} for age, fraction in option["residual_points"]],
        "power": f"{option['nameplate_kw_per_node']!r} kW",
        "idle_power": f"{option['idle_kw_per_node']!r} kW",
        "load_power": f"{option['load_kw_per_node']!r} kW",
        "pue": option["pue"],
        "electricity": option["energy_price_per_kwh"],
        "hosting": option["hosting_per_nameplate_kw_month"],
        "maintenance": option["maintenance_fraction_of_capex_per_year"],
    }


def months(value: float | None) -> str | None:
    """A duration in months."""
    return None if value is None else f"{value!r} months"


def limits(facts: dict[str, Any]) -> dict[str, Any]:
    """Budgets, provider caps and the interruptible share."""
    given = facts["limits"]
    found = {
        "capex": given["capex_total_max"],
        "opex": given["opex_per_month_max"],
        "npv": given["npv_max"],
        "spot_share": given["interruptible_share_of_rate_max"],
        "providers": {name: {"max_nodes": most} for name, most in given["provider_max_nodes"].items()},
    }
    if found["spot_share"] is not None:  # a share of the services' rates: jobs carry no share rules
        found["spot_share"] = {service["name"]: found["spot_share"] for service in facts["services"]}
    return {k: v for k, v in found.items() if v not in (None, {})}


def site(facts: dict[str, Any]) -> dict[str, Any]:
    """The site's power limit (IT load)."""
    limit = facts["limits"]["owned_nameplate_kw_max"]
    return {} if limit is None else {"site": {"power_limit_it": f"{limit!r} kW"}}


def main() -> None:
    """Read the facts named on the command line and print the problem file."""
    path = Path(sys.argv[1])
    document = json.loads(path.read_text(encoding="utf-8"))
    facts = document.get("facts", document)
    problem = problem_from_facts(facts, document.get("id", path.stem))
    sys.stdout.write(yaml.safe_dump(problem, sort_keys=False, allow_unicode=True))


if __name__ == "__main__":
    main()
