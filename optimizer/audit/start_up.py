"""Start-up of replicas: what runs in an hour is started before, and serves no sooner."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from optimizer.audit.case import Case, Key
from optimizer.audit.hours import started_for
from optimizer.audit.report import Checker
from optimizer.audit.rows import DerivedRow, derived_row
from optimizer.audit.services import Place, Station


def start_rows(case: Case, stations: Mapping[Place, Station]) -> Iterator[DerivedRow]:
    """Replicas at the end of an hour less those of the hour, and of the next: not below 0."""
    labels = {(d.service, d.option.option_id, d.number): d.label for d in case.deployments}
    for place in case.servable:
        there = stations[place].replicas if place in stations else 0
        for other in started_for(case.plan.grid, case.services[place[0]], place[3]):
            needed = (*place[:3], other)
            if case.servable.get(needed):
                parts = [there, -stations[needed].replicas if needed in stations else 0]
                names = (*case.cells[place[3]].index, case.cells[other].slice_name)
                yield derived_row("start_up", (place[0], labels[place[:3]], *names), parts, ">=", 0.0, "replicas")


def check_start_up(case: Case, found: Mapping[Place, Station], checker: Checker) -> None:
    """Replicas are there before the hour that needs them, and serve no sooner."""
    by_service: dict[str, dict[tuple[str, str, int], dict[Key, Station]]] = defaultdict(lambda: defaultdict(dict))
    for place, station in found.items():
        by_service[place[0]][place[:3]][place[3]] = station
    for service, deployments in by_service.items():
        for key, cell in case.cells.items():
            others = started_for(case.plan.grid, case.services[service], key)
            for deployment, there in deployments.items() if others else ():
                where = f"{service} on {deployment[1]} in block {key[0]}, slice {cell.slice_name}"
                running = there[key].replicas if key in there else 0
                needed = max((there[other].replicas for other in others if other in there), default=0)
                checker.at_most("start-up", where, needed, running, "replicas")
                now, hour = (there[k].served if k in there else {} for k in (key, others[0]))
                for name in sorted({*now, *hour}):
                    checker.equal("start-up", f"{where}, {name}", now.get(name, 0.0), hour.get(name, 0.0), "requests/s")
