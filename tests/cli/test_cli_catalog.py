import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from catalog import load_catalog
from optimizer.cli import app

PACKAGED = Path(__file__).parents[2] / "catalog"


def catalog(*arguments):
    return CliRunner().invoke(app, ["catalog", *map(str, arguments)], prog_name="gpumix")


def records(*arguments):
    done = catalog(*arguments, "-o", "json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["gpus", "offers", "models", "servers"])
def test_lists_hold_every_entry_with_its_source(kind):
    """A list has as many records as the catalog, each with file, line, source and date."""
    found = records("list", kind)
    assert len(found) == len(getattr(load_catalog(), kind)())
    assert all(record["file"].endswith(".csv") and record["line"] > 1 and record["source"] for record in found)


def test_gpus_are_listed_by_default():
    """`catalog list` alone lists GPUs in a table with units in its headings."""
    text = catalog("list").stdout
    for words in ("A100-80GB-SXM", "(GiB)", "(TFLOP/s)", "GPUs"):
        assert words in text.replace("gpus", "GPUs")


def test_filters_of_offers():
    """Filters hold together, an ambiguous GPU name means all of that name, and the cheapest GPU-hour comes first."""
    found = records(
        "list", "offers", "--gpu", "A100", "--provider", "a*", "--purchase", "on-demand", "--region", "*",
        "--max-price", "9",
    )  # fmt: skip
    assert found
    prices = [offer["price_usd_per_node_hour"] / offer["gpus_per_node"] for offer in found]
    assert prices == sorted(prices)
    assert prices[-1] <= 9
    assert {offer["gpu_id"][:4] for offer in found} == {"A100"}
    assert {offer["provider"][0] for offer in found} == {"a"}
    assert {offer["purchase_option"] for offer in found} == {"on-demand"}


def test_servers_up_to_a_price():
    """--max-price of servers is per node."""
    prices = [server["price_usd_per_node"] for server in records("list", "servers", "--max-price", "20_000")]
    assert prices
    assert max(prices) <= 20_000


def test_nothing_matches():
    """An empty list is an empty list, and said on standard error."""
    done = catalog("list", "offers", "--provider", "nobody", "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])
    assert "no offers" in done.stderr


def test_show_a_gpu():
    """A GPU is shown with units, its source, and its offers and servers."""
    text = catalog("show", "nvidia h100 sxm 80gb").stdout
    for words in ("H100-80GB-SXM", "memory bandwidth", "3,350", "GB/s", "Source: catalog/gpus.csv:", "Catalog: offers"):
        assert words in text


def test_show_offers_servers_and_models():
    """Offers and servers are found by id, models by any of their names."""
    read = load_catalog()
    offer, server = read.offers()[0], read.servers()[0]
    assert records("show", offer.offer_id)["price_usd_per_node_hour"] == offer.price_usd_per_node_hour
    assert records("show", server.server_id)["gpu_id"] == server.gpu_id
    assert records("show", "meta-llama/Llama-2-7b-hf")["model_id"] == "llama-2-7b"


def test_csv_of_one_entry():
    """CSV of an entry is a heading and a line with all its fields."""
    rows = list(csv.DictReader(io.StringIO(catalog("show", "L4", "-o", "csv").stdout)))
    assert [row["gpu_id"] for row in rows] == ["L4"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "A100"), "A100-80GB-SXM"),
        (("show", "H100-80GB-SMX"), "did you mean H100-80GB-SXM"),
        (("show", "no-such-thing-at-all"), "nothing in the catalog"),
        (("list", "offers", "--gpu", "H1000"), "did you mean"),
        (("list", "models", "--region", "eu-*"), "--region"),
        (("list", "offers", "--max-price", "-1"), "--max-price"),
        (("list", "offers", "--max-price", "nan"), "--max-price"),
        (("list", "cards"), "gpus"),
        (("list", "--catalog", "/no/such/place"), "--catalog"),
    ],
)
def test_wrong_names_and_flags(arguments, words):
    """What is wrong is said with what to write, exit code 2."""
    done = catalog(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


def test_another_catalog(tmp_path):
    """`--catalog` reads another directory; a broken cell there is named with file and line."""
    shutil.copytree(PACKAGED, tmp_path / "own", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    gpus = tmp_path / "own" / "gpus.csv"
    lines = gpus.read_text().splitlines()
    gpus.write_text("\n".join(lines[:3]) + "\n")
    assert len(records("list", "gpus", "--catalog", tmp_path / "own")) == 2
    gpus.write_text("\n".join([lines[0], lines[1].replace("1555", "fast", 1)]) + "\n")
    done = catalog("list", "gpus", "--catalog", tmp_path / "own")
    assert done.exit_code == 2
    assert "gpus.csv:2" in done.stderr
    assert "fast" in done.stderr
