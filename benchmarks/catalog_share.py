"""What reading the catalog takes of one solve: seconds in calls of `Catalog` against the whole, imports left out.

Run: python benchmarks/catalog_share.py [PROBLEM ...]
"""

import functools
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from catalog import Catalog, load_catalog
from optimizer.problem.load import load_problem
from optimizer.solve import solve

ROOT = Path(__file__).parent.parent
RUNS = 5


class Clock:
    """Seconds in the outermost calls of what it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def wrapped(self, function: Any) -> Any:
        """The function, timed unless it is called from another timed one."""

        @functools.wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            self._depth += 1
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - start

        return timed


def watch(clock: Clock) -> None:
    """Time every public method of the catalog."""
    for name, member in list(vars(Catalog).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, functools.cached_property):
            setattr(Catalog, name, property(clock.wrapped(member.func)))
        elif callable(member):
            setattr(Catalog, name, clock.wrapped(member))


def solved(path: str) -> float:
    """Seconds of reading, solving and hashing once."""
    start = time.perf_counter()
    catalog = load_catalog()
    loaded = load_problem(path, catalog)
    solve(loaded.problem, loaded.catalog or catalog, sources=catalog.file_hashes())
    return time.perf_counter() - start


def main(path: str, clock: Clock) -> None:
    """Measure and print."""
    solved(path)
    runs = []
    for _ in range(RUNS):
        clock.seconds = 0.0
        whole = solved(path)
        runs.append((clock.seconds, whole))
    read, whole = (statistics.median(run[i] for run in runs) for i in (0, 1))
    print(f"{Path(path).name:34} {whole:7.3f} s in all, catalog {1000 * read:5.1f} ms: {read / whole:6.1%}")


if __name__ == "__main__":
    watched = Clock()
    watch(watched)
    for name in sys.argv[1:] or sorted(str(path) for path in (ROOT / "problems").glob("*.yaml")):
        main(name, watched)
