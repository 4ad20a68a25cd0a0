import csv
import io
import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from catalog import load_catalog
from optimizer.cli import app
from tests.catalog.test_price_refresh import publish, server

__all__ = ["server"]
SAMPLES = Path(__file__).parents[1] / "catalog" / "samples"
NEBIUS = SAMPLES / "skypilot_nebius_vms.csv"
PROBLEM = {
    "name": "bot",
    "horizon": {"months": 1},
    "workloads": [
        {
            "name": "bot",
            "kind": "service",
            "model": "llama-2-7b",
            "traffic": {"requests_per_day": 1000},
            "tokens": {"input": 300, "output": 50},
        }
    ],
}


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, list(map(str, arguments)), input=stdin, prog_name="gpumix")


def catalog(*arguments, **settings):
    return run("catalog", *arguments, **settings)


def import_nebius(*arguments, **settings):
    return catalog(
        "import", "skypilot", NEBIUS, "--provider", "nebius", "--priced-on", "2026-11-09", *arguments, **settings
    )


# --- import -----------------------------------------------------------------------------------------------------------


def test_an_import_writes_a_file_of_offers(tmp_path):
    """Offers go to --out, the counts and reasons to standard error, every dropped row with -v."""
    done = import_nebius("--out", tmp_path / "nebius.csv", "-v")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "15 rows, 17 offers of nebius" in done.stderr
    assert "dropped 4: row without GPU (CPU only)" in done.stderr
    assert "line 2: no-gpu: cpu-d3_4vcpu-16gb" in done.stderr
    rows = list(csv.DictReader((tmp_path / "nebius.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["priced_on"] for row in rows} == {"2026-11-09"}


def test_a_directory_takes_one_file_per_provider(tmp_path):
    """--out DIR writes offers/<provider>.csv, and such a directory is a catalog of these prices."""
    assert import_nebius("--out", tmp_path / "mine").exit_code == 0
    assert (tmp_path / "mine" / "offers" / "nebius.csv").is_file()
    read = load_catalog(tmp_path / "mine")
    assert {offer.provider for offer in read.offers()} == {"nebius"}
    assert len(read.gpus()) == len(load_catalog().gpus())
    assert {"gpus.csv", "offers/nebius.csv"} <= set(read.file_hashes())
    assert "offers/aws.csv" not in read.file_hashes()
    assert read.version != load_catalog().version


def test_without_out_the_offers_are_the_output():
    """CSV on standard output; from standard input it is the same."""
    done = import_nebius()
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 17
    again = catalog(
        "import", "skypilot", "-", "--provider", "nebius", "--priced-on", "unknown", "-q",
        stdin=NEBIUS.read_bytes(),
    )  # fmt: skip
    assert again.stderr == ""
    found = list(csv.DictReader(io.StringIO(again.stdout)))
    assert [row["offer_id"] for row in found] == [row["offer_id"] for row in rows]
    assert {row["priced_on"] for row in found} == {""}


def test_the_account_of_an_import_as_json(tmp_path):
    """JSON lists what was dropped with line, code, reason and detail; the offers too where they go nowhere else."""
    document = json.loads(import_nebius("-o", "json").stdout)
    assert (document["rows_read"], document["offer_count"], document["dropped_by_reason"]) == (15, 17, {"no-gpu": 4})
    assert [entry["line"] for entry in document["dropped"]] == [2, 3, 4, 5]
    assert len(document["offers"]) == 17
    written = json.loads(import_nebius("-o", "json", "--out", tmp_path / "x.csv").stdout)
    assert written["written_to"] == str(tmp_path / "x.csv")
    assert "offers" not in written


def test_a_file_without_a_gpu_that_the_catalog_knows(tmp_path):
    """A file of old TPUs gives no offers: exit code 1, nothing is written, and the reason is told."""
    path = tmp_path / "old.csv"
    header = (SAMPLES / "gpuhunt_gcp_tpu.csv").read_text(encoding="utf-8").splitlines()[0]
    rows = [
        f"v3-8,europe-west4,{price},96,334,1,v3-8,128,{spot},,google,,x86,{{}}"
        for price, spot in ((8.8, False), (2.64, True))
    ]
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    done = catalog(
        "import", "gpuhunt", path, "--provider", "gcp", "--priced-on", "unknown", "--out", tmp_path / "tpu.csv",
    )  # fmt: skip
    assert done.exit_code == 1
    assert not (tmp_path / "tpu.csv").exists()
    assert "dropped 2: TPU" in done.stderr


def test_a_table_of_ones_own_with_its_own_headings(tmp_path):
    """--column names the columns, --price-per gpu makes node prices of them."""
    path = tmp_path / "quote.csv"
    path.write_text('Karte,Anzahl,"Preis, USD/h"\nRTX 4090,4,0.50\n', encoding="utf-8")
    done = catalog(
        "import", "csv", path, "--provider", "Hoster", "--priced-on", "2026-11-30", "--price-per", "gpu",
        "--column", "gpu=Karte", "--column", "gpus_per_node=Anzahl", "--column", "price=Preis, USD/h",
    )  # fmt: skip
    row = next(csv.DictReader(io.StringIO(done.stdout)))
    assert (row["provider"], row["gpu_id"], row["price_usd_per_node_hour"]) == ("hoster", "RTX-4090", "2")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("import", "xls", NEBIUS, "--provider", "p", "--priced-on", "unknown"), "skypilot"),
        (("import", "skypilot", "/no/such", "--provider", "p", "--priced-on", "unknown"), "no such file"),
        (("import", "gpuhunt", NEBIUS, "--provider", "p", "--priced-on", "unknown"), "missing instance_name"),
        (("import", "skypilot", NEBIUS, "--provider", "../x", "--priced-on", "unknown"), "no provider name"),
        (("import", "skypilot", NEBIUS, "--provider", "Own", "--priced-on", "unknown"), "your own hardware"),
        (("import", "skypilot", NEBIUS, "--provider", "p", "--priced-on", "yesterday"), "YYYY-MM-DD"),
        (("import", "skypilot", NEBIUS, "--provider", "p", "--priced-on", "2999-01-01"), "is still to come"),
        (("import", "skypilot", NEBIUS, "--provider", "p"), "--priced-on"),
        (
            ("import", "skypilot", NEBIUS, "--provider", "p", "--priced-on", "unknown", "--column", "a=b"),
            "--column is for the form csv",
        ),
        (("import", "csv", NEBIUS, "--provider", "p", "--priced-on", "unknown", "--column", "gpu"), "no pair"),
        (("import", "csv", NEBIUS, "--provider", "p", "--priced-on", "unknown", "--column", "cards=b"), "none of gpu"),
        (("refresh", "--url", "http://127.0.0.1:9"), "--out"),
        (("refresh", "--url", "file:///etc", "--out", "prices"), "no web address"),
        (("check", "/no/such.csv"), "no such file"),
        (("check", "/usr"), "a directory"),
        (("list", "offers", "--group-by", "colour"), "gpu,provider,region"),
        (("list", "gpus", "--group-by", "gpu"), "groups offers"),
        (("list", "models", "--max-age", "3"), "--max-age"),
    ],
)
def test_what_a_person_can_get_wrong(arguments, words):
    """The message says what to write; exit code 2, no traceback."""
    done = catalog(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in " ".join(done.stderr.replace("│", " ").split())


# --- prices in a problem ----------------------------------------------------------------------------------------------


def problem_file(folder, **options):
    path = folder / "problem.yaml"
    path.write_text(yaml.safe_dump({**PROBLEM, "options": options}), encoding="utf-8")
    return path


@pytest.fixture
def priced(tmp_path):
    """A folder with imported prices."""
    import_nebius("--out", tmp_path / "prices")
    return tmp_path


def test_solve_uses_the_price_files_of_a_problem(priced):
    """With `catalog: false` a plan rests on the price file alone, names line and day, hashes it, and passes audit."""
    problem = problem_file(priced, catalog=False, price_files=["prices/offers/nebius.csv"], purchase=["on-demand"])
    done = run("solve", problem, "--plan", priced / "plan.json", "-o", "json")
    assert done.exit_code == 0, done.stderr
    plan = json.loads(done.stdout)
    assert {rental["provider"] for rental in plan["rentals"]} == {"nebius"}
    assert plan["rentals"][0]["source"].startswith("prices/offers/nebius.csv:")
    assert "2026-11-09" in plan["rentals"][0]["source"]
    assert str(priced / "prices/offers/nebius.csv") in plan["inputs"]["sources"]
    audited = json.loads(run("audit", priced / "plan.json", "--problem", problem, "-o", "json").stdout)
    assert (audited["ok"], audited["findings"]) == (True, [])


def test_an_audit_without_the_price_file_says_so(priced):
    """Prices that have changed since are not taken for those of the plan."""
    problem = problem_file(priced, catalog=False, price_files=["prices/offers/nebius.csv"])
    run("solve", problem, "--plan", priced / "plan.json")
    (priced / "prices/offers/nebius.csv").unlink()
    audited = json.loads(run("audit", priced / "plan.json", "-o", "json").stdout)
    assert audited["ok"]
    assert any("price files are gone or have changed" in finding["message"] for finding in audited["findings"])


def test_a_resolve_without_the_price_file_is_refused(priced):
    """What cannot be priced as it was is not priced otherwise: explain says which file is missing."""
    problem = problem_file(priced, catalog=False, price_files=["prices/offers/nebius.csv"])
    run("solve", problem, "--plan", priced / "plan.json")
    used = next(iter(json.loads((priced / "plan.json").read_text(encoding="utf-8"))["gpus"]))
    unused = next(gpu for gpu in ("H100-80GB-SXM", "L40S") if gpu != used)
    (priced / "prices/offers/nebius.csv").unlink()
    done = run("explain", priced / "plan.json", unused)
    assert done.exit_code == 2
    assert "not at hand: prices/offers/nebius.csv" in done.stderr


def test_price_files_lie_over_the_catalog(priced):
    """An imported row replaces the catalog's row of the same id; the others stay."""
    stock = load_catalog()
    old = stock.offers(["L4"])[0]
    path = priced / "own.csv"
    lines = import_nebius().stdout.splitlines()
    row = dict(zip(lines[0].split(","), lines[1].split(","), strict=True))
    row |= {"offer_id": old.offer_id, "gpu_id": "L4", "price_usd_per_node_hour": "0.01"}
    path.write_text(f"{lines[0]}\n{','.join(row.values())}\n", encoding="utf-8")
    laid_over = stock.with_price_files({"own.csv": path})
    assert len(laid_over.offers()) == len(stock.offers())
    assert [o.price_usd_per_node_hour for o in laid_over.offers() if o.offer_id == old.offer_id] == [0.01]
    assert [o.offer_id for o in stock.with_price_files({"own.csv": path}, only=True).offers()] == [old.offer_id]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["none.csv"], "none.csv: no such file"),
        (["prices/offers/nebius.csv", "prices/offers/nebius.csv"], "a second time"),
        (["problem.yaml"], "columns: missing offer_id"),
        (["gone.csv"], 'gone.csv:2: unknown GPU id "H100": write H100-80GB-PCIe or'),
    ],
)
def test_price_files_that_cannot_be_used(priced, names, words):
    """What is wrong with a price file is found by check, at its place in the problem file."""
    lines = import_nebius().stdout.splitlines()
    (priced / "gone.csv").write_text("\n".join([lines[0], lines[1].replace("H100-80GB-SXM", "H100")]), encoding="utf-8")
    done = run("check", problem_file(priced, price_files=names))
    assert done.exit_code == 2
    assert "problem.yaml:" in done.stderr
    assert words in done.stderr.replace(" (write", ": write")


def test_a_directory_of_prices_as_catalog(priced):
    """`solve --catalog DIR` takes offers from DIR and everything else from the packaged catalog."""
    problem = problem_file(priced)
    done = run("solve", problem, "--catalog", priced / "prices", "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert {rental["provider"] for rental in json.loads(done.stdout)["rentals"]} == {"nebius"}


# --- check ------------------------------------------------------------------------------------------------------------


def test_check_of_the_catalog():
    """The packaged catalog has warnings only: exit code 0, every finding with file, line, severity, code, message."""
    done = catalog("check", "-o", "json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["ok"], document["errors"]) == (0, True, 0)
    assert document["warnings"] == len(document["findings"]) == sum(document["by_code"].values())
    assert set(document["findings"][0]) == {"file", "line", "severity", "code", "message"}


@pytest.mark.parametrize("form", ["table", "md", "csv", "json"])
def test_check_of_a_file_with_errors(priced, form):
    """Errors end in exit code 1, in every form with the place and the rule."""
    path = priced / "prices" / "offers" / "nebius.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(",10,0,", ",0,0,", 1), encoding="utf-8")
    done = catalog("check", path, "-o", form)
    assert done.exit_code == 1
    assert "1 error" in done.stderr
    assert "price" in done.stdout
    assert "nebius.csv" in done.stdout.replace("\n", "")


# --- refresh ----------------------------------------------------------------------------------------------------------


def test_refresh_from_a_server(server, tmp_path):
    """Archives are fetched, imported with the day of their version and written per provider."""
    url, pages = server
    publish(pages, "lambdalabs", "20261119", (SAMPLES / "gpuhunt_lambdalabs.csv").read_bytes())
    publish(pages, "oci", "7", (SAMPLES / "gpuhunt_oci.csv").read_bytes())
    done = catalog("refresh", "--url", url, "--provider", "lambda", "--provider", "oci", "--out", tmp_path / "live")
    assert done.exit_code == 0, done.stderr
    offers = load_catalog(tmp_path / "live").offers()
    days = {(offer.provider, str(offer.ref.date)) for offer in offers}
    assert days == {("lambda", "2026-11-19"), ("oci", "None")}
    assert len(offers) == 35


def test_refresh_tells_what_is_missing(server, tmp_path, monkeypatch):
    """One provider that fails does not hold back the others (exit code 1); none is exit code 2."""
    url, pages = server
    publish(pages, "oci", "7", (SAMPLES / "gpuhunt_oci.csv").read_bytes())
    monkeypatch.setenv("GPUMIX_PRICES_URL", url)
    done = catalog("refresh", "--provider", "oci", "--provider", "aws", "--out", tmp_path / "live")
    assert done.exit_code == 1
    assert "aws: error:" in done.stderr
    assert "404" in done.stderr
    assert (tmp_path / "live" / "offers" / "oci.csv").is_file()
    assert catalog("refresh", "--provider", "aws", "--out", tmp_path / "live").exit_code == 2


# --- list -------------------------------------------------------------------------------------------------------------


def test_groups_of_offers():
    """Groups hold count, lowest, median and highest price per GPU-hour, oldest date; together they are all offers."""
    groups = json.loads(catalog("list", "offers", "--group-by", "gpu,provider", "-o", "json").stdout)
    offers = load_catalog().offers()
    assert sum(group["offers"] for group in groups) == len(offers)
    assert sum(group["undated"] for group in groups) == sum(1 for offer in offers if offer.ref.date is None)
    for group in groups:
        prices = sorted(
            o.price_usd_per_node_hour / o.gpus_per_node
            for o in offers
            if (o.gpu_id, o.provider) == (group["gpu"], group["provider"])
        )
        assert (group["lowest_usd_per_gpu_hour"], group["highest_usd_per_gpu_hour"]) == (prices[0], prices[-1])
        assert prices[0] <= group["median_usd_per_gpu_hour"] <= prices[-1]
    text = catalog("list", "offers", "--group-by", "gpu", "--gpu", "L4").stdout
    assert "USD per GPU-hour" in text


def test_offers_by_age_and_order():
    """--max-age leaves out old and undated prices, --min-price cheap ones; --sort age puts the oldest first."""
    listed = json.loads(
        catalog("list", "offers", "--max-age", "100000", "--min-price", "1", "--sort", "age", "-o", "json").stdout
    )
    days = [offer["date"] for offer in listed]
    assert days == sorted(days)
    assert listed
    assert all(offer["price_usd_per_node_hour"] / offer["gpus_per_node"] >= 1 for offer in listed)
    assert json.loads(catalog("list", "offers", "--max-age", "0", "-o", "json").stdout) == []
    regions = [o["region"] for o in json.loads(catalog("list", "offers", "--sort", "region", "-o", "json").stdout)]
    assert regions == sorted(regions)


def test_show_tells_what_belongs_to_an_entry():
    """A GPU is shown with its other names, offers and servers, an offer with its price per GPU, a site cost as such."""
    gpu = json.loads(catalog("show", "H100-80GB-SXM", "-o", "json").stdout)
    assert "p5" in gpu["also_called"]
    assert {offer["gpu_id"] for offer in gpu["offers"]} == {"H100-80GB-SXM"}
    assert gpu["servers"]
    offer = gpu["offers"][0]
    shown = json.loads(catalog("show", offer["offer_id"], "-o", "json").stdout)
    assert shown["price_usd_per_gpu_hour"] == pytest.approx(offer["price_usd_per_node_hour"] / offer["gpus_per_node"])
    cost = load_catalog().site_costs()[0]
    assert json.loads(catalog("show", cost.cost_id, "-o", "json").stdout)["unit"] == cost.unit
    assert len(json.loads(catalog("list", "site-costs", "-o", "json").stdout)) == len(load_catalog().site_costs())


@pytest.mark.parametrize(
    ("order", "words"),
    [("price", "Cheapest per GPU-hour first"), ("age", "Oldest price first"), ("gpu", "By GPU, each cheapest")],
)
def test_a_list_says_its_own_order(order, words):
    """The note under a list of offers is that of the order asked for."""
    text = catalog("list", "offers", "--gpu", "L4", "--sort", order).stdout
    assert words in " ".join(text.split())
    assert ("Cheapest per GPU-hour first" in text) == (order == "price")


def test_a_key_given_twice_groups_once():
    """`gpu,gpu` is `gpu`: one column, in every form."""
    for form in ("table", "csv", "json"):
        once = catalog("list", "offers", "--group-by", "gpu,provider", "-o", form)
        twice = catalog("list", "offers", "--group-by", "gpu,provider,gpu", "-o", form)
        assert (twice.exit_code, twice.stdout) == (0, once.stdout)


def test_unread_columns_are_told_and_unmapped_ones_refused(tmp_path):
    """A column that is not read is named on standard error and in JSON; one that looks like ours ends the import."""
    prices = tmp_path / "quote.csv"
    prices.write_text("GPU,Price,hall\nL4,0.8,7\n", encoding="utf-8")
    options = ("--provider", "acme", "--priced-on", "2026-11-30")
    done = catalog("import", "csv", prices, *options, "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)["unread_columns"]) == (0, ["hall"])
    assert "not read: 1 column: hall" in done.stderr
    prices.write_text("gpu,qty,price,term,purchase\nH100 SXM,8,20,12,reserved\n", encoding="utf-8")
    refused = catalog("import", "csv", prices, *options)
    assert refused.exit_code == 2
    for words in ("gpus_per_node=qty", "term_months=term", "purchase_option=purchase"):
        assert words in refused.stderr
