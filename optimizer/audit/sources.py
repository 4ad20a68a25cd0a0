"""What a plan was made from and can be read again: the catalog, the problem file, their hashes."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from catalog import Catalog
from catalog.schema import CloudOffer, Gpu, LlmArchitecture, ServerOffer, TypicalDiscount
from optimizer.audit.document import Answer
from optimizer.audit.report import Checker
from optimizer.errors import ProblemFileError
from optimizer.problem.load import load_problem, problem_from_json
from optimizer.problem.schema import Problem


class CatalogRows:
    """The catalog at hand, usable where it is of the version that the plan was made with."""

    def __init__(self, version: str, catalog: Catalog, missing_prices: Sequence[str] = ()) -> None:
        self.catalog = catalog
        self._wanted = version
        self._missing = tuple(missing_prices)

    @cached_property
    def usable(self) -> bool:
        """Whether the versions agree, and the plan's price files are there as they were."""
        return self.catalog.version == self._wanted and not self._missing

    @property
    def reason(self) -> str:
        """Why it is not usable."""
        if self._missing:
            return f"price files are gone or have changed: {', '.join(self._missing)}"
        return f"the plan was made with catalog {self._wanted}, here is {self.catalog.version}"

    @property
    def file_hashes(self) -> dict[str, str]:
        """SHA-256 of the catalog's files, where they are those of the plan."""
        return self.catalog.file_hashes() if self.usable else {}

    def gpu(self, name: str) -> Gpu:
        """A GPU by its id."""
        return self.catalog.gpu(name)

    def model(self, name: str) -> LlmArchitecture:
        """A model by its id."""
        return self.catalog.model(name)

    def offers(self, problem: Problem) -> Sequence[CloudOffer]:
        """Cloud offers with the GPU types that the problem considers."""
        return self.catalog.offers(problem.options.gpus, as_written=True)

    def typical_discounts(self, problem: Problem) -> Sequence[TypicalDiscount]:
        """Discounts of the literature, where the problem asks for estimates."""
        return self.catalog.typical_discounts() if problem.options.estimated_discounts else ()

    def resale(self, problem: Problem) -> dict[float, float]:
        """Share of the price that used servers sell for, by age in months, at the level that the site asks for."""
        level = problem.site.resale if problem.site else "mid"
        return {row.age_months: getattr(row, f"{level}_fraction") for row in self.catalog.resale_values()}

    def servers(self, problem: Problem) -> Sequence[ServerOffer]:
        """Servers on sale, where there is a site to put them."""
        return self.catalog.servers(problem.options.gpus, as_written=True) if problem.site else ()


def check_sources(answer: Answer, problem_file: Path | None, rows: CatalogRows, checker: Checker) -> None:
    """Compare files by their hashes: those of the catalog, those that are still there, and a problem file given.

    Raises
    ------
    ProblemFileError
        If the problem file given cannot be read.
    """
    for name, digest in answer.inputs.sources.items():
        where = f"inputs.sources[{name}]"
        expected = rows.file_hashes.get(name.removeprefix("catalog/")) if name.startswith("catalog/") else None
        path = Path(name)
        if expected is not None:
            checker.same("sources", where, digest, expected)
        elif path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            checker.notice("sources", where, "the file has changed since the plan was made")
    if problem_file is not None:
        _check_problem_file(answer, problem_file, rows, checker)


def _in_full(embedded: dict[str, Any]) -> dict[str, Any]:
    """The embedded problem with its defaults; as it stands where it is no problem, which is a finding elsewhere."""
    try:
        return problem_from_json(embedded).model_dump(mode="json", by_alias=True)
    except ProblemFileError:
        return embedded


def _check_problem_file(answer: Answer, problem_file: Path, rows: CatalogRows, checker: Checker) -> None:
    loaded = load_problem(problem_file, rows.catalog)
    source = loaded.problem.model_dump(mode="json", by_alias=True)
    checker.same("problem file", "inputs.problem", _in_full(answer.inputs.problem), source)
    known = set(answer.inputs.sources.values())
    files = {str(problem_file): loaded.sha256, **dict(loaded.files)}
    for name, digest in files.items() if known else ():
        where = f"inputs.sources ({name})"
        checker.holds("problem file", where, digest in known, "the plan was made from another version of this file")
