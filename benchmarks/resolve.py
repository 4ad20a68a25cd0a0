"""Re-solves of the platform after 10 changes each of prices, limits and demand, warm and from scratch.

    python benchmarks/resolve.py [GAP]

CPU seconds of this process. From scratch: options, estimates, model and search of the changed problem; warm: one
`Session`, whose own first solve is listed apart. Costs are compared at the gap asked.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from catalog import load_catalog
from optimizer.model.build import build
from optimizer.prepare import prepare
from optimizer.problem.load import parse_problem
from optimizer.problem.names import canonical_names
from optimizer.solver.known_start import solve_from_start
from optimizer.solver.milp import SolverSettings
from optimizer.solver.resolve import linear_model
from optimizer.solver.session import Answer, Session

ROOT = Path(__file__).parent.parent
H100, L40S = "cloud B H100 one year", "cloud B L40S one year"
PRICES: list[dict[str, float]] = [
    {H100: 1.1}, {H100: 1.02}, {H100: 0.95}, {L40S: 1.1}, {L40S: 0.9}, {"*spot": 1.2}, {"*spot": 0.9},
    {"*on-demand": 1.1}, {"*on-demand": 0.95}, {"*": 1.05},
]  # fmt: skip
LIMITS: list[dict[str, float | None]] = [
    {"limits.spot_share.completion": 0.25}, {"limits.spot_share.completion": 0.2},
    {"limits.spot_share.completion": 0.35}, {"limits.spot_share.chat": 0.05}, {"limits.spot_share.completion": None},
    {f"options.quotes.{H100}.max_nodes": 8}, {f"options.quotes.{H100}.max_nodes": 16},
    {f"options.quotes.{L40S}.max_nodes": 10}, {f"options.quotes.{L40S}.max_nodes": 4}, {"limits.npv": 200_000.0},
]  # fmt: skip
DEMAND: list[dict[str, float]] = [
    {"chat": 1.02}, {"chat": 1.1}, {"chat": 0.95}, {"completion": 1.05}, {"completion": 1.2}, {"completion": 0.9},
    {"summaries": 1.1}, {"summaries": 0.8}, {"domain-training": 1.1}, {"chat": 1.05, "completion": 1.05},
]  # fmt: skip
KINDS: dict[str, list[Any]] = {"prices": PRICES, "limits": LIMITS, "demand": DEMAND}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, and the result."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def from_scratch(session: Session, change: dict[str, Any], settings: SolverSettings) -> tuple[float, float]:
    """CPU seconds and cost: preparing as for the unchanged problem, then building and searching the changed one."""
    preparing, _ = timed(lambda: prepare(session.problem, session.catalog))
    changed = session.prepared_for(**change)
    rest, found = timed(lambda: solve_from_start(linear_model(build(changed.instance())), settings))
    return preparing + rest, found.objective


def main() -> None:
    """Print a line for each change and one for each kind."""
    gap = float(sys.argv[1]) if len(sys.argv) > 1 else SolverSettings().gap
    settings, catalog = SolverSettings(gap=gap), load_catalog()
    text = (ROOT / "problems" / "platform.yaml").read_text(encoding="utf-8")
    problem = canonical_names(parse_problem(text).problem, catalog)
    first, session = timed(lambda: Session(problem, catalog, settings))
    solving, answer = timed(session.solve)
    print(f"session: {first:.3f} s to prepare, {solving:.3f} s for the first answer, {answer.npv:,.2f}")
    for kind, changes in KINDS.items():
        sums = {True: [0, 0.0, 0.0], False: [0, 0.0, 0.0]}
        for change in changes:
            scratch_s, cost = from_scratch(session, {kind: change}, settings)
            warm_s, found = _warm(session, kind, change)
            same = abs(found.npv - cost) <= max(1e-6, 2 * gap) * abs(cost)
            how = "searched" if found.searched else "proven by earlier answers"
            print(f"  {kind} {change}: {scratch_s:.3f} / {warm_s:.3f} = {scratch_s / warm_s:.1f}; {how}; same: {same}")
            for number, more in enumerate((1, scratch_s, warm_s)):
                sums[found.searched][number] += more
        (searched, a, b), (known, c, d) = sums[True], sums[False]
        print(
            f"{kind}: {(a + c) / (b + d):.1f} in all; {searched:g} searched {a / b if b else 0:.1f}, "
            f"{known:g} known {c / d if d else 0:.1f}"
        )


def _warm(session: Session, kind: str, change: dict[str, Any]) -> tuple[float, Answer]:
    return timed(lambda: session.solve(**{kind: change}))


if __name__ == "__main__":
    main()
