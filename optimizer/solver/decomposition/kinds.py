"""Kinds of nodes: options whose nodes do the same for every workload, however they are paid.

Between options of a kind only money and time decide, so a cell of the grid knows kinds only, and the fleet decides how
they are paid.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from optimizer.model.emitters import grams_per_node_hour
from optimizer.model.entities import Instance, Server
from optimizer.model.options import Option
from optimizer.units import GRAMS_PER_TONNE


@dataclass(frozen=True, slots=True)
class Kind:
    """Options with nodes alike. `servers` are the deployments on the first of them, the sample."""

    index: int
    held: tuple[Option, ...]
    rents: tuple[Option, ...]
    """Ways to rent such nodes by the hour, the cheapest first."""
    servers: tuple[Server, ...]

    @property
    def sample(self) -> Option:
        """An option of the kind."""
        return (*self.held, *self.rents)[0]

    @property
    def rented(self) -> Option | None:
        """Cheapest way to rent such nodes by the hour."""
        return self.rents[0] if self.rents else None

    @property
    def options(self) -> tuple[Option, ...]:
        """Options of the kind."""
        return (*self.held, *self.rents)


def _energy_of_busy(option: Option) -> tuple[float, ...]:
    """What the energy and emissions of a busy node above those of an idle one depend on; rents include them."""
    if not option.held or option.load_kw <= option.idle_kw:
        return ()
    return (option.load_kw - option.idle_kw, option.pue, option.electricity_per_kwh, option.carbon_g_per_kwh or 0.0)


def group_kinds(instance: Instance) -> tuple[Kind, ...]:
    """Kinds of an instance, in the order of their first option."""
    servers: dict[str, list[Server]] = defaultdict(list)
    for server in instance.servers:
        servers[server.option.option_id].append(server)
    groups: dict[tuple[object, ...], list[Option]] = defaultdict(list)
    for option in instance.options:
        groups[_likeness(instance, option, servers[option.option_id])].append(option)
    return tuple(_kind(instance, i, options, servers) for i, options in enumerate(groups.values()))


def _kind(instance: Instance, index: int, options: list[Option], servers: dict[str, list[Server]]) -> Kind:
    rents = tuple(sorted((o for o in options if not o.held), key=lambda o: (_per_hour(instance, o), o.option_id)))
    held = tuple(o for o in options if o.held)
    return Kind(index, held, rents, tuple(servers[(*held, *rents)[0].option_id]))


def _per_hour(instance: Instance, option: Option) -> float:
    """Price of a rented node-hour, with that of what it emits."""
    tonnes = grams_per_node_hour(option, instance.problem) / GRAMS_PER_TONNE
    return option.price_per_node_hour + tonnes * (instance.problem.finance.carbon_price or 0.0)


def _likeness(instance: Instance, option: Option, servers: list[Server]) -> tuple[object, ...]:
    """What must agree for nodes to be of one kind."""
    limits = instance.problem.limits
    alone = option.option_id if option.max_nodes is not None or not _nests(servers) else ""
    return (
        option.gpu_id,
        option.gpus_per_node,
        option.productive_share,
        option.interruptible,
        _energy_of_busy(option),
        option.provider if option.provider in limits.providers else "",
        alone,
        tuple(sorted((s.workload, s.estimate.deployment.label, *sorted(s.loads.items())) for s in servers)),
    )


def _nests(servers: Iterable[Server]) -> bool:
    """Whether the sizes of replicas divide each other, so that replicas can be dealt out over options of the kind."""
    sizes = sorted({server.occupied_gpus for server in servers})
    return all(abs(b / a - round(b / a)) < 1e-9 for a, b in pairwise(sizes))
