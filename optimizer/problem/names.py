"""Names of GPUs, models, offers and providers in a problem, settled by the catalog."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from catalog.errors import AmbiguousNameError, UnknownNameError
from catalog.load import Catalog
from optimizer.problem.checks_supply import provider_names
from optimizer.problem.messages import suggestion
from optimizer.problem.positions import Findings, Path, Source
from optimizer.problem.schema import Limits, Options, Problem


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
        for key in ("allow", "deny"):
            for index, name in enumerate(getattr(options.providers, key) or ()):
                self.known_provider(name, (*path, "providers", key, index))
        return options.model_copy(update=changes)

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
        if _among(name, own, pattern=not at_key) or not self.problem.options.catalog:
            return
        providers = sorted({offer.provider for offer in self.catalog.offers()}.union(own))
        if not _among(name, providers, pattern=not at_key):
            hint = suggestion(name, providers, "providers")
            self.findings.add(path, f'unknown provider "{name}"', hint, at_key=at_key)

    def known_offer(self, name: str, path: Path) -> None:
        own = [offer.name for offer in self._own_offers() if offer.name]
        if name in own or not self.problem.options.catalog:
            return
        ids = [offer.offer_id for offer in self.catalog.offers()] + [one.server_id for one in self.catalog.servers()]
        if name not in ids:
            hint = suggestion(name, [*own, *ids], "offers")
            self.findings.add(path, f'unknown offer "{name}"', hint, at_key=True)

    def _own_offers(self) -> list[Any]:
        return [*self.problem.options.quotes, *self.problem.options.existing]


def _among(name: str, names: Sequence[str], *, pattern: bool) -> bool:
    """Whether `name` is one of `names`, or as a shell pattern matches one."""
    return name in names or (pattern and any(fnmatchcase(one.lower(), name.lower()) for one in names))


def _either(names: Sequence[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)
