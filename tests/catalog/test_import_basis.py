"""Prices per node or GPU, per hour, month or year; what a file says beside them that is not to be trusted."""

import pytest

from catalog.importing import offers_csv
from catalog.importing.basis import Basis, price_basis
from tests.catalog.import_cases import codes, gpuhunt, imported, info, prices, skypilot


@pytest.mark.parametrize(
    ("text", "basis"),
    [
        ("", None),
        ("node", Basis()),
        ("per GPU", Basis(per_gpu=True)),
        ("USD/GPU/h", Basis(per_gpu=True)),
        ("instance-hour", Basis()),
        ("gpu-month", Basis(per_gpu=True, hours=730, billing_step="month")),
        ("per node per year", Basis(hours=8760, billing_step="year")),
        ("annually", Basis(hours=8760, billing_step="year")),
        ("GPU/day", Basis(per_gpu=True, hours=24, billing_step="day")),
    ],
)
def test_what_a_price_is_for_is_read_as_people_write_it(text, basis):
    """A month is 730 hours and a year 8760."""
    assert price_basis(text) == basis


@pytest.mark.parametrize("text", ["token", "gpu node", "hour month", "rack", "-", "GB"])
def test_other_words_are_refused(text):
    """What is no node, GPU or span of time cannot be turned into an hour's price."""
    with pytest.raises(ValueError, match="write node or gpu"):
        price_basis(text)


def table(*rows, head="gpu,gpus_per_node,price,per,purchase_option,term_months", **settings):
    return imported("csv", "\n".join((head, *rows)), **settings)


def test_a_price_per_year_is_that_of_a_reservation():
    """Qubrid prints years: 14,016 USD a GPU-year are 1.60 an hour, to be had for a year and not by the hour."""
    run = table("L40S,4,14016,gpu-year,,")
    (row,) = run.rows
    assert (row.purchase_option, row.price) == ("reserved", pytest.approx(4 * 14016 / 8760))
    assert row.extra["term_months"] == "12"
    assert [note.code for note in run.remarks] == ["reservation"]
    assert ",reserved,12,6.4,0,year," in offers_csv(run)


def test_a_price_per_month_keeps_the_term_that_the_file_gives():
    """A three-year contract paid monthly is one of three years."""
    (row,) = table("L40S,1,730,month,reserved,36").rows
    assert (row.purchase_option, row.price, row.extra["term_months"]) == ("reserved", 1.0, "36")
    (row,) = table("L40S,1,730,month,,").rows
    assert (row.purchase_option, row.price, row.extra["term_months"]) == ("reserved", 1.0, "1")


def test_the_files_own_word_counts_and_nothing_is_multiplied_twice():
    """`--price-per gpu` is for rows that do not say; one that says per node, or per GPU, is taken at its word."""
    run = table("L4,8,1,,,", "A10,4,1,gpu,,", "T4,4,1,node,,", basis=Basis(per_gpu=True))
    assert [row.price for row in run.rows] == [8, 4, 1]


def test_a_price_that_is_none_after_all_is_dropped():
    """The limits of what a price can be hold for the hour."""
    run = table("L4,1,9000000,year,,", "L4,2,0.00001,year,,")
    assert [row.gpus_per_node for row in run.rows] == [1]
    assert codes(run) == ["price-out-of-range"]


def test_prices_of_vast_hold_a_disk():
    """gpuhunt adds that of the disk it asks for: kept, and said in the row."""
    run = gpuhunt("n,r,0.5,8,64,1,RTX4090,24,False,100,nvidia,,x86,{}", provider="vast")
    assert [note.code for note in run.remarks] == ["disk-included"]
    assert "price with disk" in offers_csv(run)


@pytest.mark.parametrize(("provider", "ram", "kept"), [("runpod", 160, None), ("runpod", 234, 234), ("acme", 160, 160)])
def test_host_memory_of_runpod_that_is_the_gpus(provider, ram, kept):
    """skypilot PR 6824: the field held the memory of the GPUs; such a figure is unknown, others stand."""
    run = skypilot(f"n,A100-80GB-SXM,2,16,{ram},3.0,r,{info('A100-80GB-SXM', 80, 2)},,", provider=provider)
    assert [row.ram_gib for row in run.rows] == [kept]
    assert prices(run) == {("n", "on-demand"): 3.0}
    assert [note.code for note in run.remarks] == (["ram-of-gpus"] if kept is None else [])


@pytest.mark.parametrize("price", ["0.5 €", "¥5", "EUR 0.5", "0.5 eur"])
def test_a_price_in_other_money_is_dropped_as_such(price):
    """Not as unreadable: the reader learns that it wants dollars."""
    assert codes(table(f"L4,1,{price},,,")) == ["currency"]


@pytest.mark.parametrize("day", ["2026-13-01", "01/02/2026", "yesterday"])
def test_a_day_that_is_none_is_named(day):
    """With what was found and what to write."""
    run = table(f"L4,1,0.5,{day}", head="gpu,gpus_per_node,price,priced_on")
    assert codes(run) == ["unreadable"]
    assert f'priced_on is "{day}"; write YYYY-MM-DD' in run.dropped[0].detail
