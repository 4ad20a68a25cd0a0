import pytest

from catalog.errors import CatalogFileError
from tests.catalog.import_cases import codes, imported


def table(header, *rows, **settings):
    return imported("csv", "\n".join((header, *rows)), **settings)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("qty", "gpus_per_node"), ("Count", "gpus_per_node"), ("gpus", "gpus_per_node"),
        ("Number of GPUs", "gpus_per_node"), ("gpuCount", "gpus_per_node"), ("term", "term_months"),
        ("Commitment", "term_months"), ("purchase", "purchase_option"), ("Pricing model", "purchase_option"),
        ("spot", "purchase_option"), ("price_currency", "currency"), ("unit", "per"),
    ],
)  # fmt: skip
def test_columns_with_a_meaning_of_ours_are_not_passed_over(name, ours):
    """A count, term, way of paying or currency that is not mapped would be read as its default: it is refused."""
    with pytest.raises(CatalogFileError, match=f"looks like {ours}") as caught:
        table(f"gpu,price,{name}", "H100 SXM,20,8")
    assert f"--column {ours}=" in str(caught.value)


def test_all_such_columns_are_named_at_once():
    """One message says how to map each of them."""
    with pytest.raises(CatalogFileError) as caught:
        table("gpu,qty,price,term,purchase", "H100 SXM,8,20,12,reserved")
    for words in ("gpus_per_node=qty", "term_months=term", "purchase_option=purchase"):
        assert f"--column {words}" in str(caught.value)


def test_mapped_columns_are_read_and_others_are_listed():
    """What the map names is used; a column of no known meaning is told, and one whose meaning is there already."""
    pairs = (("gpus_per_node", "qty"), ("term_months", "term"), ("purchase_option", "purchase"))
    run = table(
        "gpu,qty,price,term,purchase,datacenter,count", "H100 SXM,8,20,12,reserved,x,3", columns=pairs
    )  # fmt: skip
    (row,) = run.rows
    assert (row.gpus_per_node, row.purchase_option, row.extra["term_months"]) == (8, "reserved", "12")
    assert run.unread_columns == ["datacenter", "count"]


def test_headers_in_any_case():
    """`GPU`, `Price` and `GPUs per node` are our columns, also where the map spells theirs in another case."""
    (row,) = table("GPU,USD/H,GPUs per node", "H100 SXM,20,8", columns=(("price", "usd/h"),)).rows
    assert (row.price, row.gpus_per_node) == (20, 8)
    with pytest.raises(CatalogFileError, match="are both price"):
        table("gpu,Price,PRICE", "H100 SXM,20,8")


@pytest.mark.parametrize("cell", ["80", "80GB", "80 GB", "80gib", "80G", "81920 MiB"])
def test_memory_with_its_unit(cell):
    """A memory cell settles the variant with or without its unit."""
    assert table("gpu,price,gpu_memory_gb", f"A100 SXM,2,{cell}").rows[0].gpu_id == "A100-80GB-SXM"


@pytest.mark.parametrize("cell", ["80 TB", "big"])
def test_memory_in_no_unit_drops_its_row(cell):
    """Other units and words are not guessed at."""
    assert codes(table("gpu,price,gpu_memory_gb", f"A100 SXM,2,{cell}")) == ["unreadable"]


@pytest.mark.parametrize(
    ("price", "code"),
    [("0.0000001", "price-out-of-range"), ("1000001", "price-out-of-range"), ("-5", "no-price")],
)
def test_prices_that_are_none(price, code):
    """A price out of every range, or below 0, is dropped with its reason."""
    run = table("gpu,price", f"L4,{price}", "L4,1.0")
    assert codes(run) == [code]
    assert len(run.rows) == 1
    assert ("is negative" in run.dropped[0].detail) == price.startswith("-")
