import copy
import re

import pytest

from optimizer import audit
from tests.audit.plans import (
    ANALYTIC,
    APART,
    BURDENED,
    CATALOG,
    EMITTING,
    EVERYTHING,
    HELD,
    LIMITED,
    PROFILE,
    REDUNDANT,
    STARTING,
    STEPPED,
    document,
)

PROBLEMS = {
    "everything": EVERYTHING,
    "analytic": ANALYTIC,
    "profile": PROFILE,
    "held": HELD,
    "burdened": BURDENED,
    "apart": APART,
    "redundant": REDUNDANT,
    "limited": LIMITED,
    "starting": STARTING,
    "emitting": EMITTING,
    "stepped": STEPPED,
}

FREE = {
    r"timing\..*": "seconds of this run",
    r"model\..*": "size of the model, which the audit does not build",
    r"schema_version": "refused by read_plan before the audit",
    r"inputs\.settings\..*": "what was asked of the solver; another gap asked makes no other plan",
    r"interrupted": "how the search ended",
    r"constraints\[\]\.binding": "tested apart: rows on helper variables cannot be judged",
    r"assumptions\[\]\..*\.(kind|source|date)": "texts",
}
"""Leaves that the audit cannot or need not derive, with the reason."""


UNKNOWN_IF_LEFT_OUT = (
    "inputs.options[].rack_units",
    "assignments[].hours_undisturbed",
    "assignments[].hours_expected",
    "inputs.options[].carbon_g_per_kwh",
    "inputs.options[].metered_kw",
    "inputs.options[].billing_step_hours",
    "inputs.options[].billed_by_clock",
    "rentals[].used_gpu_hours",
)
"""Keys that older plan files lack: left out, they say what null says."""


def audit_plan(plan, file=None):
    """An audit with the catalog read once."""
    return audit.audit_plan(plan, file, CATALOG)


def leaves(data, path=""):
    """(path, holder, key) of every leaf of plain data."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in pairs:
        place = f"{path}[{key}]" if isinstance(data, list) else f"{path}.{key}".lstrip(".")
        if isinstance(value, dict | list):
            yield from leaves(value, place)
        else:
            yield place, data, key


def lists(data, path=""):
    """(path, list) of every list that is not empty, inside out."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in pairs:
        place = f"{path}[{key}]" if isinstance(data, list) else f"{path}.{key}".lstrip(".")
        if isinstance(value, dict | list):
            yield from lists(value, place)
        if isinstance(value, list) and value:
            yield place, value


def kind_of(path):
    """A path without its numbers."""
    return re.sub(r"\[\d+\]", "[]", path)


def is_free(path):
    """Whether a leaf is exempt."""
    return any(re.fullmatch(pattern, kind_of(path)) for pattern in FREE)


def sampled(entries, *, several=False):
    """One entry of each kind, or two: all entries of a list are of one make."""
    groups = {}
    for entry in entries:
        groups.setdefault(kind_of(entry[0]), []).append(entry)
    for group in groups.values():
        yield from (group[i] for i in ({len(group) // 3, len(group) - 1} if several else {len(group) // 2}))


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def changed(value):
    """A number a few per cent off, or one more."""
    return value * 1.03 if isinstance(value, float) and abs(value) > 1e-9 else value + 1


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_number_changed_is_caught(name):
    """A plan with any one re-derivable number changed (outside the embedded problem) fails the audit."""
    plan = document(PROBLEMS[name])
    missed = []
    tried = [leaf for leaf in leaves(plan) if not leaf[0].startswith("inputs.problem.") and not is_free(leaf[0])]
    numbers = [leaf for leaf in tried if is_number(leaf[1][leaf[2]])]
    for path, holder, key in sampled(numbers, several=name != "everything"):
        kept = holder[key]
        holder[key] = changed(kept)
        if audit_plan(plan).ok:
            missed.append(f"{path}: {kept} -> {holder[key]}")
        holder[key] = kept
    assert missed == []
    assert audit_plan(plan).ok


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_number_of_the_embedded_problem_is_caught_with_the_problem_file(name, tmp_path):
    """With `--problem`, any number of the embedded problem that is not the file's is a finding."""
    file = tmp_path / "problem.yaml"
    file.write_text(PROBLEMS[name], encoding="utf-8")
    plan = document(PROBLEMS[name])
    assert audit_plan(plan, file).ok
    missed = []
    numbers = [leaf for leaf in leaves(plan["inputs"]["problem"]) if is_number(leaf[1][leaf[2]])]
    for path, holder, key in sampled(numbers):
        kept = holder[key]
        holder[key] = changed(kept)
        if audit_plan(plan, file).ok:
            missed.append(path)
        holder[key] = kept
    assert missed == []


NEEDED_LIMITS = ("capex", "opex", "npv", "spot_share.chat", "providers.P.max_nodes", "stock.a-cloud", "gpus.B")


@pytest.mark.parametrize("limit", NEEDED_LIMITS)
def test_a_changed_limit_is_caught_without_the_problem_file(limit):
    """Limits stand in the constraints too: a limit changed in the embedded problem disagrees with its rows."""
    plan = document(EVERYTHING)
    holder = plan["inputs"]["problem"]["limits"]
    *folders, key = limit.split(".")
    for folder in folders:
        holder = holder[folder]
    holder[key] = holder[key] + 1 if isinstance(holder[key], int) else holder[key] * 1.03
    assert not audit_plan(plan).ok


HELPER_ROWS = {
    "pool_capacity": ("on", "groups", "beside", "any", "at-once", "at-once-least"),
    "supply_limit": ("at-once", "take-turns"),
    "provider_limit": ("take-turns",),
    "scaling_limit": ("least", "working"),
    "minimum_order": ("most",),
    "vendor_limit": ("link",),
    "billing_step": ("least", "most", "paid", "in-use"),
    "spare_capacity": ("left", "more", "lost", "busy", "whole", "handover", "served"),
}


def is_helper_row(row):
    """Rows on variables that a plan does not hold: neither their presence nor their binding can be derived."""
    at_once = row["family"] in ("supply_limit", "provider_limit") and len(row["index"]) == 6
    return at_once or row["index"][-1] in HELPER_ROWS.get(row["family"], ())


def without_helper_rows(plan):
    """The plan without them; it stands without them too."""
    plan["constraints"] = [row for row in plan["constraints"] if not is_helper_row(row)]
    assert audit_plan(plan).ok
    return plan


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_entry_left_out_is_caught(name, tmp_path):
    """A plan with an entry of any list missing fails the audit (rows on helper variables and notes apart)."""
    file = tmp_path / "problem.yaml"
    file.write_text(PROBLEMS[name], encoding="utf-8")
    plan = without_helper_rows(document(PROBLEMS[name]))
    missed = []
    for path, entries in sampled(lists(plan)):
        for number in sorted({0, len(entries) - 1}, reverse=True):
            entry = entries.pop(number)
            if not path.startswith("notes") and audit_plan(plan, file).ok:
                missed.append(f"{path}[{number}]")
            entries.insert(number, entry)
    assert missed == []


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_constraint_left_out_is_caught(name):
    """Each family's rows are derived: one missing is a finding, whichever it is."""
    plan = document(PROBLEMS[name])
    families = {}
    for row in plan["constraints"]:
        if not is_helper_row(row):
            families.setdefault((row["family"], len(row["index"])), row)
    for row in families.values():
        without = copy.copy(plan) | {"constraints": [other for other in plan["constraints"] if other is not row]}
        assert not audit_plan(without).ok, row
    assert len(families) >= 4


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_truth_value_turned_is_caught(name):
    """A truth value turned into its opposite (measured, interruptible, cancellable, binding …) fails the audit."""
    plan = without_helper_rows(document(PROBLEMS[name]))
    truths = [leaf for leaf in leaves(plan) if isinstance(leaf[1][leaf[2]], bool)]
    missed = []
    for path, holder, key in sampled(truths):
        if path.startswith("inputs.problem.") or (is_free(path) and key != "binding"):
            continue
        holder[key] = not holder[key]
        if audit_plan(plan).ok:
            missed.append(path)
        holder[key] = not holder[key]
    assert missed == []


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_key_left_out_is_caught(name):
    """A plan with a key of any kind of record missing fails the audit, without a traceback."""
    plan = document(PROBLEMS[name])
    missed = []
    records = [(place, holder, key) for place, holder, key in leaves(plan) if isinstance(holder, dict)]
    for path, holder, key in sampled(records):
        if path.startswith("inputs.problem.") or is_free(path) or path == "gpumix_version":
            continue
        if kind_of(path) in UNKNOWN_IF_LEFT_OUT and holder[key] is None:
            continue
        kept = holder.pop(key)
        if audit_plan(plan).ok:
            missed.append(path)
        holder[key] = kept
    assert missed == []


@pytest.mark.parametrize("value", [0, -1, 1e300, "text", None, [], {}], ids=repr)
def test_no_value_breaks_the_audit(value):
    """Whatever stands in place of a figure or a list, the audit ends in a report, never in a traceback."""
    plan = document(HELD)
    entries = [*leaves(plan), *((path, plan, path) for path in plan)]
    for path, holder, key in list(sampled(entries)):
        kept = holder[key]
        holder[key] = value
        report = audit_plan(plan)
        assert isinstance(report.ok, bool), path
        holder[key] = kept
    assert audit_plan(plan).ok


def test_a_plan_from_before_billing_steps_is_audited_as_it_was():
    """Files without any of their keys counted all time as it is used, also on offers that are billed in steps."""
    plan = document(re.sub(r", (billing_step: [^,}]+|billed_by_clock: true)", "", STEPPED))
    plan["inputs"]["problem"]["options"]["quotes"][-1]["billing_step"] = "10 minutes"
    assert not audit_plan(plan).ok
    for option in plan["inputs"]["options"]:
        del option["billing_step_hours"], option["billed_by_clock"]
    for rental in plan["rentals"]:
        del rental["used_gpu_hours"]
    assert audit_plan(plan).ok
