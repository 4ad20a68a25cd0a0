"""Names of GPUs, models, offers and providers in a problem, settled by the catalog."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from catalog.errors import AmbiguousNameError, UnknownNameError
from catalog.load import Catalog
from optimizer.problem.checks_supply import provider_names
from optimizer.problem.further_costs import FurtherCost
from optimizer.problem.messages import suggestion
from optimizer.problem.positions import Findings, Path, Source
from optimizer.problem.schema import Discount, Limits, Options, Problem, Site
from optimizer.quantities import Currencies


def canonical_names(problem: Problem, catalog: Catalog, source: Source | None = None) -> Problem:
    """The problem with catalog ids for all names of GPUs and models; names declared under `gpus:` stay verbatim.

    `source` (of a LoadedProblem) gives the messages their places. Offers are read only where a limit names one.

    Raises
    ------
    ProblemFileError
        For names that are unknown or could mean several entries, with the choices.
    """
    findings = Findings(source or Source(problem.name, ""))
    settled = settle_names(problem, catalog, findings)
    findings.raise_if_any()
    return settled


def settle_names(problem: Problem, catalog: Catalog, findings: Findings) -> Problem:
    """As `canonical_names`, but adds to `findings` (where there is none yet) instead of raising."""
    names = _Names(problem, catalog, Findings(findings.source))
    changes: dict[str, Any] = {
        "workloads": [names.workload(index, workload) for index, workload in enumerate(problem.workloads)],
        "measurements": [
            names.with_gpu(("measurements", index), measurement)
            for index, measurement in enumerate(problem.measurements)
        ],
        "options": names.options(problem.options),
        "limits": names.limits(problem.limits),
        "site": names.site(problem.site),
        "costs": [names.cost(("costs", index), cost) for index, cost in enumerate(problem.costs)],
    }
    known = Findings(findings.source, list(findings.items))
    findings.items.extend(item for item in names.findings.items if not known.touch(item[0]))
    return problem.model_copy(update=changes)


@dataclass(slots=True)
class _Names:
    problem: Problem
    catalog: Catalog
    findings: Findings
    known: dict[str, str] = field(default_factory=dict)

    def gpu(self, name: str, path: Path, *, at_key: bool = False) -> str:
        """The id that `name` means; itself where it is the problem's own or a mistake (which is noted)."""
        if name in self.problem.gpus:
            return name
        own = tuple(gpu for gpu in self.problem.gpus if gpu.lower() == name.lower())
        if own:
            self.findings.add(path, f'unknown GPU "{name}"', suggestion(name, own), at_key=at_key)
            return name
        return self._settled(name, self.catalog.gpu_id, path, "or declare it under gpus:", at_key)

    def _settled(self, name: str, settle: Callable[[str], str], path: Path, tail: str, at_key: bool = False) -> str:
        try:
            return settle(name)
        except AmbiguousNameError as error:
            hint = f"write {_either(error.choices)}"
            self.findings.add(path, f'{error.kind} "{name}" could mean several', hint, at_key=at_key)
        except UnknownNameError as error:
            near = f"did you mean {_either(error.suggestions)}? " if error.suggestions else ""
            self.findings.add(path, f'unknown {error.kind} "{name}"', f"{near}{tail}", at_key=at_key)
        return name

    def gpu_list(self, path: Path, names: Sequence[str] | None) -> list[str] | None:
        if names is None:
            return None
        return list(dict.fromkeys(self.gpu(name, (*path, index)) for index, name in enumerate(names)))

    def with_gpu(self, path: Path, holder: Any) -> Any:
        """A quote, existing node or measurement with its GPU's id."""
        if holder.gpu is None:
            return holder
        return holder.model_copy(update={"gpu": self.gpu(holder.gpu, (*path, "gpu"))})

    def workload(self, index: int, workload: Any) -> Any:
        path: Path = ("workloads", index)
        model = workload.model
        if isinstance(model, str):
            hint = "or write architecture: {…}, or the path of a config.json"
            model = self._settled(model, lambda name: self.catalog.model(name).model_id, (*path, "model"), hint)
        gpus = self.gpu_list((*path, "gpus"), workload.gpus)
        return workload.model_copy(update={"model": model, "gpus": gpus})

    def options(self, options: Options) -> Options:
        path: Path = ("options",)
        changes: dict[str, Any] = {"gpus": self.gpu_list((*path, "gpus"), options.gpus)}
        for key in ("quotes", "existing"):
            changes[key] = [self.with_gpu((*path, key, i), one) for i, one in enumerate(getattr(options, key))]
        changes["discounts"] = [self.discount((*path, "discounts", i), one) for i, one in enumerate(options.discounts)]
        for key in ("allow", "deny"):
            for index, name in enumerate(getattr(options.providers, key) or ()):
                self.known_provider(name, (*path, "providers", key, index))
        return options.model_copy(update=changes)

    def site(self, site: Site | None) -> Site | None:
        """The site with the price of electricity of its region, where the buyer gives none."""
        if site is None or site.region is None:
            return site
        path: Path = ("site", "region")
        try:
            row = self.catalog.electricity(site.region)
        except UnknownNameError as error:
            hint = f"write {_either(error.suggestions)}, or leave it out and write electricity"
            self.findings.add(path, f'no price of electricity for "{site.region}"', hint)
            return site
        if "electricity" in site.model_fields_set:
            return site
        try:
            price = (row.value or 0.0) * self._currencies().factor(row.unit[:3])
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            self.findings.add(path, message, hint)
            return site
        return site.model_copy(update={"electricity": price})

    def _currencies(self) -> Currencies:
        rates = {code: one.rate for code, one in self.problem.exchange_rates.items()}
        return Currencies(self.problem.currency, rates)

    def discount(self, path: Path, terms: Discount) -> Discount:
        """A discount with its GPU's id; provider and offer must match some of the catalog's."""
        settled: Discount = self.with_gpu(path, terms)
        if terms.provider is not None:
            self.known_provider(terms.provider, (*path, "provider"))
        if terms.option is not None and self.problem.options.has_offers:
            ids = self.catalog_ids()
            if not _among(terms.option, ids, pattern=True):
                hint = suggestion(terms.option, ids, "offers")
                self.findings.add((*path, "option"), f'unknown offer "{terms.option}"', hint)
        return settled

    def cost(self, path: Path, cost: FurtherCost) -> FurtherCost:
        """A further cost with its GPU's id; provider and offer must match some of the catalog's or the buyer's own."""
        settled: FurtherCost = self.with_gpu(path, cost)
        if cost.provider is not None and not self.problem.options.has_offers:
            own = provider_names(self.problem)
            if not _among(cost.provider, own, pattern=True):
                hint = suggestion(cost.provider, own, "providers")
                self.findings.add((*path, "provider"), f'unknown provider "{cost.provider}"', hint)
        elif cost.provider is not None:
            self.known_provider(cost.provider, (*path, "provider"))
        own_offers = self._own_offer_names()
        if cost.option is not None and not _among(cost.option, own_offers, pattern=True):
            ids = [*own_offers, *(self.catalog_ids() if self.problem.options.has_offers else ())]
            if not _among(cost.option, ids, pattern=True):
                hint = suggestion(cost.option, ids, "offers")
                self.findings.add((*path, "option"), f'unknown offer "{cost.option}"', hint)
        return settled

    def limits(self, limits: Limits) -> Limits:
        gpus: dict[str, int] = {}
        for name, most in limits.gpus.items():
            path: Path = ("limits", "gpus", name)
            gpu = self.gpu(name, path, at_key=True)
            if gpu in gpus:
                self.findings.add(path, f"a second limit on {gpu}", "keep one of them", at_key=True)
            gpus[gpu] = most
        for name in limits.providers:
            self.known_provider(name, ("limits", "providers", name), at_key=True)
        for name in limits.stock:
            self.known_offer(name, ("limits", "stock", name))
        return limits.model_copy(update={"gpus": gpus})

    def known_provider(self, name: str, path: Path, *, at_key: bool = False) -> None:
        own = provider_names(self.problem)
        if _among(name, own, pattern=not at_key) or not self.problem.options.has_offers:
            return
        if _among(name, list(self.catalog.provider_files()), pattern=not at_key):
            return
        providers = sorted({offer.provider for offer in self.catalog.offers()}.union(own))
        if not _among(name, providers, pattern=not at_key):
            hint = suggestion(name, providers, "providers")
            self.findings.add(path, f'unknown provider "{name}"', hint, at_key=at_key)

    def known_offer(self, name: str, path: Path) -> None:
        own = [offer.name for offer in self._own_offers() if offer.name]
        if name in own or not self.problem.options.has_offers:
            return
        ids = self.catalog_ids()
        if name not in ids:
            hint = suggestion(name, [*own, *ids], "offers")
            self.findings.add(path, f'unknown offer "{name}"', hint, at_key=True)

    def catalog_ids(self) -> list[str]:
        """Ids of the catalog's offers and servers."""
        return [one.offer_id for one in self.catalog.offers()] + [one.server_id for one in self.catalog.servers()]

    def _own_offer_names(self) -> list[str]:
        options = self.problem.options
        existing = [one.name or f"existing-{i}-{one.gpu}" for i, one in enumerate(options.existing, start=1)]
        return [*(quote.name for quote in options.quotes), *existing]

    def _own_offers(self) -> list[Any]:
        return [*self.problem.options.quotes, *self.problem.options.existing]


def _among(name: str, names: Sequence[str], *, pattern: bool) -> bool:
    """Whether `name` is one of `names`, or as a shell pattern matches one."""
    return name in names or (pattern and any(fnmatchcase(one.lower(), name.lower()) for one in names))


def _either(names: Sequence[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)
