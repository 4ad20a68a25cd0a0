"""Sentences of a page that says no: limits by name and key, changes in a buyer's units, demand that stays unmet."""

from typing import Any

import pytest

from optimizer.report.changes import change_words, cut_words, limit_name, unmet_words


def change(family: str, index: list[str], unit: str, was: float, enough: float) -> dict[str, Any]:
    by = abs(enough - was)
    figures = {"attainable": was, "required": enough, "short_by": by}
    return {"kind": "limit", "family": family, "index": index, "unit": unit, **figures}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (change("supply_limit", ["H100 nodes"], "nodes", 4, 6), "2 nodes more (stock of H100 nodes)"),
        (
            change("budget_opex", [], "USD/month", 7000, 10_100),
            "3,100.00 USD/month more (running cost per month)",
        ),
        (change("deadline", ["train"], "hours", 240, 384), "144 h (6 days) more (deadline of train)"),
        (change("scaling_limit", ["train", "min_gpus"], "GPUs", 16, 10), "6 GPUs less (fewest GPUs of train)"),
        (change("interruptible_share", [], "share", 0.2, 0.725), "52.5 percentage points more (spot share)"),
        (
            change("budget_capex", ["period-2"], "USD", 100, 250),
            "150.00 USD more (capex budget of period 2)",
        ),
        (change("residency", ["chat"], "choice", 0, 1), "data of chat allowed anywhere"),
        (
            change("considered", ["options.gpus", "B200"], "choice", 0, 1),
            "options.gpus left open: B200 would then be used",
        ),
        (change("lead_time", ["own"], "months", 3, 1), "2 months less (delivery of own)"),
    ],
)
def test_changes_in_words(found: dict[str, Any], words: str) -> None:
    """Each kind of limit gives in its own unit, up or down, and says what it is."""
    assert change_words(found, "USD") == words


def test_limits_carry_their_key() -> None:
    """A buyer finds the line to change by the key in brackets."""
    assert limit_name(change("deadline", ["train"], "hours", 1, 2)) == "deadline of train (deadline)"
    assert limit_name(change("budget_capex", ["year-1"], "USD", 1, 2)).endswith("(limits.capex_by_year)")


def unmet(index: list[str], needed: float, short: float) -> dict[str, Any]:
    figures = {"required": needed, "attainable": needed - short, "short_by": short}
    return {"kind": "demand", "family": "demand_coverage", "index": index, "unit": "requests/s", **figures}


QUARTERS = [{"start_month": 3.0 * i, "months": 3.0} for i in range(4)]
YEARS = [{"start_month": 12.0 * i, "months": 12.0} for i in range(2)]


@pytest.mark.parametrize(
    ("periods", "slices", "index", "words"),
    [
        (QUARTERS, ["weekday-20", "rest"], ["chat", "all", "month-6", "weekday-20"],
         "chat misses 14 % of its requests in weekday 20:00 of Q3 (month 6): 1.4 of 10 requests/s."),
        (YEARS, ["all"], ["chat", "long", "month-12", "all"],
         "chat: long misses 14 % of its requests in month 12: 1.4 of 10 requests/s."),
        (YEARS[:1], ["all"], ["chat", "all", "month-0", "all"],
         "chat misses 14 % of its requests: 1.4 of 10 requests/s."),
    ],
)  # fmt: skip
def test_unmet_demand_says_where_in_time(periods: Any, slices: list[str], index: list[str], words: str) -> None:
    """The hour where there are slices, the quarter where there are periods, neither where there is one of them."""
    document = {"grid": {"slices": [{"name": name} for name in slices], "periods": periods}}
    assert unmet_words(unmet(index, 10.0, 1.4), document) == words


def test_cuts_say_what_is_kept() -> None:
    """A cut names the peak kept, or that the workload is left out."""
    found = {**unmet(["chat"], 37.0, 7.0), "kind": "cut"}
    assert cut_words(found) == "chat cut to 30 of 37 requests/s at its peak (−18.9 %)"
    assert cut_words({**unmet(["chat"], 37.0, 37.0), "kind": "cut"}) == "chat left out"
