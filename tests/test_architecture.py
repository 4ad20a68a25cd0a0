"""The house: which room may import which, what only one room may touch, and how large its functions are."""

import ast
import csv
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from optimizer.units import UNIT_SUFFIXES

ROOT = Path(__file__).parent.parent
CODE = sorted([*ROOT.glob("optimizer/**/*.py"), *ROOT.glob("catalog/**/*.py")])

FLOORS = (
    ("optimizer.units", "optimizer.errors", "optimizer.trace", "optimizer.finance", "optimizer.quantities", "catalog"),
    ("optimizer.estimator",),
    ("optimizer.problem", "optimizer.plan", "optimizer.plan_records", "optimizer.plan_structure", "optimizer.evaluate"),
    ("optimizer.report", "optimizer.convert"),
    ("optimizer.model", "optimizer.audit"),
    ("optimizer.prepare", "optimizer.solver"),
    ("optimizer.solve", "optimizer.sizing"),
    ("optimizer.decision", "optimizer.explain"),
    ("optimizer.cli", "optimizer.__main__"),
)
"""From the ground up: a module may import its own floor and those below. `optimizer` itself only holds the version."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module in ("optimizer", "catalog"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def floor(module: str) -> int | None:
    found = [i for i, rooms in enumerate(FLOORS) if any(module == r or module.startswith(f"{r}.") for r in rooms)]
    return found[0] if found else None


@pytest.mark.parametrize("path", CODE, ids=module_name)
def test_imports_never_point_up(path: Path) -> None:
    """A module imports its own floor or those below, so that there is no circle."""
    here = floor(module_name(path))
    for target in imports(path):
        there = floor(target)
        if here is not None and there is not None:
            assert there <= here, f"{module_name(path)} imports {target}, which stands above it"


@pytest.mark.parametrize(
    ("library", "rooms"),
    [
        ("pulp", {"optimizer.solver.milp"}),
        ("highspy", {"optimizer.solver.milp", "optimizer.solver.matrix", "optimizer.solver.linear_program"}),
        ("typer", {"optimizer.cli"}),
        ("optimizer", {"optimizer"}),
    ],
)
def test_a_library_is_touched_in_one_room_only(library: str, rooms: set[str]) -> None:
    """PuLP and HiGHS stay behind the adapter, typer in the command line; the catalog knows no optimizer."""
    users = {module_name(path) for path in CODE if any(i.split(".")[0] == library for i in imports(path))}
    assert users
    assert all(any(user == room or user.startswith(f"{room}.") for room in rooms) for user in users), users


def test_the_audit_shares_nothing_with_the_model() -> None:
    """The audit is a second implementation: it imports neither the model nor the solver."""
    barred = ("optimizer.model", "optimizer.solver", "optimizer.solve", "optimizer.prepare", "pulp", "highspy")
    for path in ROOT.glob("optimizer/audit/*.py"):
        for target in imports(path):
            assert not any(target == b or target.startswith(f"{b}.") for b in barred), f"{path.name} imports {target}"


def function_lengths() -> list[tuple[int, str]]:
    lengths = []
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                doc = node.body[0] if ast.get_docstring(node) else None
                skip = (doc.end_lineno or 0) - doc.lineno + 1 if doc else 0
                lengths.append(((node.end_lineno or 0) - node.lineno + 1 - skip, f"{module_name(path)}.{node.name}"))
    return sorted(lengths)


def test_functions_are_small() -> None:
    """Median under 9 lines, nine in ten under 35, none above 60 (docstrings not counted); no file above 400 lines."""
    lengths = function_lengths()
    assert statistics.median(n for n, _ in lengths) < 9
    assert lengths[int(0.9 * len(lengths))][0] < 35
    assert lengths[-1][0] <= 60, lengths[-1]
    long_files = [p.name for p in CODE if len(p.read_text(encoding="utf-8").splitlines()) > 400]
    assert long_files == []


COUNTS_AND_WORDS = {
    "gpus_per_node", "max_gpus_per_node", "layers", "attention_heads", "kv_heads", "head_dim", "hidden_size",
    "ffn_size",
    "vocabulary_size", "experts", "experts_per_token", "expert_ffn_size", "shared_experts", "parameters",
    "active_parameters", "release_year", "vcpus", "sliding_window_layers", "sliding_window_tokens", "dense_layers",
    "learned_positions", "kv_lora_rank", "q_lora_rank", "rope_head_dim", "value_head_dim",
}  # fmt: skip


@pytest.mark.parametrize("name", ["gpus", "servers", "models"])
def test_numeric_columns_of_the_catalog_carry_their_unit(name: str) -> None:
    """Every numeric column ends in a unit suffix, or is a count."""
    with (ROOT / "catalog" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for column in rows[0]:
        values = [row[column] for row in rows if row[column]]
        numeric = bool(values) and all(_is_number(v) for v in values)
        if numeric and column not in COUNTS_AND_WORDS:
            assert column.endswith(UNIT_SUFFIXES) or "_usd" in column or "_per_" in column, column


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
