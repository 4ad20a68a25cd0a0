"""Reading a plan document: which nodes are there when, and who keeps them busy."""

import math
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from optimizer.problem.load import problem_from_json
from optimizer.units import HOURS_PER_MONTH

Record = dict[str, Any]
CellOf = tuple[str, int, int]
"""Option, block, slice."""
SAME = 1e-9


class PlanReader:
    """A plan document with the look-ups that explanations share."""

    def __init__(self, document: Record) -> None:
        self.document = document

    @property
    def currency(self) -> str:
        """Currency of every amount."""
        return str(self.document["currency"])

    @property
    def solved(self) -> bool:
        """Whether there is a plan."""
        return self.document["cost"] is not None

    @cached_property
    def options(self) -> dict[str, Record]:
        """Options considered, by id."""
        return {option["option_id"]: option for option in self.document["inputs"]["options"]}

    @cached_property
    def problem(self) -> Record:
        """The problem with every key, those left out by their defaults (a plan file holds what was written only)."""
        return problem_from_json(self.document["inputs"]["problem"]).model_dump(mode="json", by_alias=True)

    @cached_property
    def workloads(self) -> dict[str, Record]:
        """Workloads of the problem, by name, with every key."""
        return {workload["name"]: workload for workload in self.problem["workloads"]}

    @cached_property
    def gpus_of_problem(self) -> list[str]:
        """Every GPU type that the plan file speaks of."""
        found = [option["gpu_id"] for option in self.options.values()]
        for key in ("rejections", "left_out"):
            found += [entry["gpu"] for entry in self.document[key]]
        found += self.problem["options"]["gpus"] or []
        return sorted(set(found))

    @cached_property
    def used_options(self) -> set[str]:
        """Options with nodes in the plan."""
        used = {entry["option"] for key in ("acquisitions", "rentals") for entry in self.document[key]}
        return used | {name for name, option in self.options.items() if option["existing_nodes"]}

    @cached_property
    def used_gpus(self) -> set[str]:
        """GPU types in the plan."""
        return {self.options[name]["gpu_id"] for name in self.used_options}

    def cost_lines(self, option: str | None = None) -> list[Record]:
        """Lines of the ledger, of one option or of all."""
        return [line for line in self.document["cost_lines"] if option in (None, line["option"])]

    def npv_of(self, options: Iterable[str]) -> float:
        """Present cost of options together."""
        wanted = set(options)
        return math.fsum(line["npv"] for line in self.document["cost_lines"] if line["option"] in wanted)

    def hours(self, block: int, slice_: int) -> float:
        """Hours of a cell."""
        grid = self.document["grid"]
        span = grid["blocks"][block]["end_month"] - grid["blocks"][block]["start_month"]
        return float(span * HOURS_PER_MONTH * grid["slices"][slice_]["share_of_hours"])

    def cell_name(self, block: int, slice_: int) -> tuple[str, str]:
        """Names of a cell in the index of rows."""
        grid = self.document["grid"]
        return (f"month-{grid['blocks'][block]['start_month']:g}", str(grid["slices"][slice_]["name"]))

    # --- nodes there, and GPUs busy -----------------------------------------------------------------------------------

    @cached_property
    def gpus_there(self) -> dict[CellOf, float]:
        """GPUs of an option in service in a cell: held, rented for services, and rented for jobs (their mean)."""
        found: dict[CellOf, float] = defaultdict(float)
        for name in self.used_options:
            for block, span in enumerate(self.document["grid"]["blocks"]):
                held = self._held(name, span["start_month"])
                for slice_ in range(len(self.document["grid"]["slices"])) if held else ():
                    found[name, block, slice_] += held
        schedule = self.document["schedule"]
        for entry in schedule["rented"]:
            size = self.options[entry["option"]]["gpus_per_node"]
            found[entry["option"], entry["block"], entry["slice"]] += entry["nodes"] * size
        for entry in schedule["work"]:
            size = self.options[entry["option"]]["gpus_per_node"]
            found[entry["option"], entry["block"], entry["slice"]] += entry["hired_nodes"] * size
        return found

    def _held(self, option_id: str, month: float) -> float:
        option = self.options[option_id]
        size, retire = option["gpus_per_node"], option["retire_months"]
        nodes = 0.0
        ends = [end for end in (option["term_months"], retire) if end is not None]
        if option["existing_nodes"] and month < min(ends, default=math.inf) - SAME:
            nodes += option["existing_nodes"]
        for order in self.document["acquisitions"]:
            end = order["start_month"] + min(ends, default=math.inf)
            if order["option"] == option_id and order["start_month"] <= month + SAME and month < end - SAME:
                nodes += order["nodes"]
        return float(nodes * size)

    @cached_property
    def gpus_busy(self) -> dict[CellOf, float]:
        """GPUs of an option at work in a cell, on average: replicas by their load, jobs by their share of the time."""
        found: dict[CellOf, float] = defaultdict(float)
        services = self.document["inputs"]["estimates"]["services"]
        for entry in self.document["schedule"]["served"]:
            estimate = services[entry["estimate"]]
            seconds = next(
                c["replica_seconds_per_request"] for c in estimate["classes"] if c["request_class"] == entry["class"]
            )
            gpus = estimate["deployment"]["gpus_per_replica"] * seconds * entry["requests_per_s"]
            found[entry["option"], entry["block"], entry["slice"]] += gpus
        for entry in self.document["schedule"]["work"]:
            gpus = entry["gpus_on_free"] + entry["gpus_on_hired"]
            found[entry["option"], entry["block"], entry["slice"]] += gpus
        return found

    @cached_property
    def gpus_occupied(self) -> dict[CellOf, float]:
        """GPUs of an option kept by replicas and jobs in a cell, busy or not."""
        found: dict[CellOf, float] = defaultdict(float)
        services = self.document["inputs"]["estimates"]["services"]
        for entry in self.document["schedule"]["replicas"]:
            gpus = services[entry["estimate"]]["deployment"]["gpus_per_replica"] * entry["replicas"]
            found[entry["option"], entry["block"], entry["slice"]] += gpus
        for entry in self.document["schedule"]["work"]:
            gpus = entry["gpus_on_free"] + entry["gpus_on_hired"]
            found[entry["option"], entry["block"], entry["slice"]] += gpus
        return found

    # --- rows that mean something -------------------------------------------------------------------------------------

    @cached_property
    def active(self) -> set[tuple[str, ...]]:
        """What is in use where, as rows name it; a row of zeros "binds" as well, but says nothing."""
        found: set[tuple[str, ...]] = set()
        services = self.document["inputs"]["estimates"]["services"]
        schedule = self.document["schedule"]
        for entry in schedule.get("replicas", ()):
            cell = self.cell_name(entry["block"], entry["slice"])
            label = _label(services[entry["estimate"]]["deployment"])
            found |= {(entry["workload"], f"{entry['option']} {label}".strip(), *cell), (entry["option"], *cell)}
        for entry in schedule.get("work", ()):
            cell = self.cell_name(entry["block"], entry["slice"])
            found |= {(entry["run"], entry["option"], *cell), (entry["run"], *cell), (entry["option"], *cell)}
        for order in self.document["acquisitions"]:
            found.add((order["option"],))
        return found

    @cached_property
    def scaled(self) -> set[tuple[str, ...]]:
        """Runs and cells in which a job keeps all the GPUs that it may (`most`), or shares free ones (`least`)."""
        jobs = self.document["inputs"]["estimates"]["jobs"]
        gpus: dict[tuple[str, ...], float] = defaultdict(float)
        most: dict[tuple[str, ...], float] = {}
        found: set[tuple[str, ...]] = set()
        for entry in self.document["schedule"].get("work", ()):
            key = (entry["run"], *self.cell_name(entry["block"], entry["slice"]))
            gpus[key] += entry["gpus_on_free"] + entry["gpus_on_hired"]
            tops = (jobs[entry["estimate"]]["max_gpus"], self.workloads[entry["job"]].get("max_gpus"))
            most[key] = min((top for top in tops if top is not None), default=math.inf)
            found |= {("least", *key)} if entry["gpus_on_free"] > 0 else set()
        return found | {("most", *key) for key in gpus if gpus[key] >= most[key] * (1 - 1e-6)}

    def binding_rows(self) -> list[Record]:
        """Binding rows that say something."""
        return [row for row in self.document["constraints"] if row["binding"] and self._says_something(row)]

    def _says_something(self, row: Record) -> bool:
        if row["family"] == "single_gpu_type":
            return False
        if abs(row["rhs"]) > SAME:
            return True
        index = tuple(row["index"])
        if row["family"] == "minimum_order":
            return index[:1] in self.active
        if row["family"] == "scaling_limit":
            return (index[-1], index[0], *index[2:4]) in self.scaled
        without_number = (index[0], *index[2:])
        return any(key[:size] in self.active for key in (index, without_number) for size in (3, 4))


def _label(deployment: Record) -> str:
    """The deployment as rows name it (`Deployment.label`)."""
    from optimizer.estimator.types import Deployment

    return Deployment(**deployment).label
