"""The reader: lazy, exact, and clear about what is wrong where."""

import shutil
from pathlib import Path

import pytest

from catalog import CatalogError, CatalogFileError, load_catalog
from catalog.rows import parse_cell

DATA = Path(__file__).parents[2] / "catalog"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A copy of the packaged data that a test may break."""
    for path in DATA.glob("*.csv"):
        shutil.copy(path, tmp_path / path.name)
    (tmp_path / "offers").mkdir()
    shutil.copy(DATA / "offers" / "lambda.csv", tmp_path / "offers" / "lambda.csv")
    return tmp_path


def replace_cell(path: Path, line: int, column: str, text: str) -> None:
    """Overwrites one cell of a file without quoted commas before that cell."""
    lines = path.read_text(encoding="utf-8").splitlines()
    cells = lines[line - 1].split(",")
    cells[lines[0].split(",").index(column)] = text
    lines[line - 1] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def fault_in_gpus(directory: Path) -> CatalogFileError:
    """The error that reading all GPUs raises."""
    with pytest.raises(CatalogFileError) as caught:
        load_catalog(directory).gpus()
    return caught.value


@pytest.mark.parametrize(
    ("column", "text", "says"),
    [
        ("memory_bandwidth_gb_per_s", "fast", "'fast' is not a number"),
        ("memory_bandwidth_gb_per_s", "nan", "'nan' is not a number"),
        ("memory_bandwidth_gb_per_s", "1_555", "'1_555' is not a number"),
        ("memory_bandwidth_gb_per_s", "", "empty; write a number"),
        ("memory_bandwidth_gb_per_s", "0", "0 is not above 0"),
        ("memory_usable_bytes", "4.2e10", "'4.2e10' is not a whole number"),
        ("link_kind", "nvlnk", "'nvlnk' is not one of nvlink"),
        ("p2p", "yes", "'yes' is neither true nor false"),
        ("p2p", "false", "false exactly where link_kind is none"),
        ("bf16_dense_tflop_per_s", "624", "equals the int8 peak: that is the sparse figure"),
    ],
)
def test_a_bad_cell_is_named_with_file_line_and_column(directory: Path, column: str, text: str, says: str) -> None:
    """The message leads to the cell and tells what to write there."""
    replace_cell(directory / "gpus.csv", 3, column, text)
    error = fault_in_gpus(directory)
    assert (error.file, error.line, error.column) == (f"{directory}/gpus.csv", 3, column)
    assert says in str(error)
    assert str(error).startswith(f"{directory}/gpus.csv:3, column {column}: ")


def test_memory_of_a_whole_node_is_refused(directory: Path) -> None:
    """320 GB on an 80 GB GPU is the total of four (B005)."""
    line = next(
        i for i, text in enumerate((directory / "gpus.csv").read_text().splitlines(), 1) if "A100-80GB-SXM," in text
    )
    replace_cell(directory / "gpus.csv", line, "memory_usable_bytes", str(320 * 10**9))
    error = fault_in_gpus(directory)
    assert error.column == "memory_usable_bytes"
    assert "4.00 × the 80 GB of one GPU" in str(error)


@pytest.mark.parametrize(("text", "says"), [("", "empty; write a number"), ("0", "0 is not a price"), ("0.00", "0 is")])
def test_a_missing_price_is_an_error_and_never_free(directory: Path, text: str, says: str) -> None:
    """An offer without a price must not win with 0.00 (B003)."""
    replace_cell(directory / "offers" / "lambda.csv", 2, "price_usd_per_node_hour", text)
    with pytest.raises(CatalogFileError, match=says) as caught:
        load_catalog(directory).offers()
    assert (caught.value.line, caught.value.column) == (2, "price_usd_per_node_hour")


def test_a_reserved_offer_needs_a_term(directory: Path) -> None:
    """A reservation without its term cannot be planned with."""
    replace_cell(directory / "offers" / "lambda.csv", 2, "purchase_option", "reserved")
    with pytest.raises(CatalogFileError, match="give a term"):
        load_catalog(directory).offers()


def test_a_wrong_date_says_how_to_write_it(directory: Path) -> None:
    """Dates are ISO dates or empty."""
    text = (directory / "offers" / "lambda.csv").read_text(encoding="utf-8")
    (directory / "offers" / "lambda.csv").write_text(text.replace("2026-09-20", "20.9.2026"), encoding="utf-8")
    with pytest.raises(CatalogFileError, match=r"'20\.9\.2026' is not a date; write YYYY-MM-DD"):
        load_catalog(directory).offers()


def test_an_empty_date_means_unknown(directory: Path) -> None:
    """A price whose day nobody stated is kept and says so."""
    text = (directory / "offers" / "lambda.csv").read_text(encoding="utf-8")
    (directory / "offers" / "lambda.csv").write_text(text.replace("2026-09-20", ""), encoding="utf-8")
    offers = load_catalog(directory).offers()
    assert {offer.ref.date for offer in offers} == {None}
    assert "date unknown" in str(offers[0].ref)


def test_a_repeated_id_names_both_lines(directory: Path) -> None:
    """Two rows of one id would silently hide one of them."""
    path = directory / "gpus.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines, lines[1]]) + "\n", encoding="utf-8")
    assert "is already on line 2" in str(fault_in_gpus(directory))


def test_headers_are_checked(directory: Path) -> None:
    """A renamed column is reported as missing and unknown."""
    path = directory / "gpus.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("tdp_w", "tdp", 1), encoding="utf-8")
    assert "columns: missing tdp_w; unknown tdp" in str(fault_in_gpus(directory))


@pytest.mark.parametrize("extra", ["A100,nvidia", "x," * 60])
def test_rows_of_the_wrong_length_are_refused(directory: Path, extra: str) -> None:
    """A row cut short or run over is an error at its line."""
    path = directory / "gpus.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines, extra]) + "\n", encoding="utf-8")
    error = fault_in_gpus(directory)
    assert error.line == len(lines) + 1
    assert "one for each column" in str(error)


def test_an_open_quote_is_a_clear_error(directory: Path) -> None:
    """Broken CSV gives no traceback of the csv module."""
    path = directory / "gpus.csv"
    path.write_text(path.read_text(encoding="utf-8") + '"open', encoding="utf-8")
    assert "not readable as CSV" in str(fault_in_gpus(directory))


def test_a_missing_file_and_a_wrong_encoding_are_named(directory: Path) -> None:
    """Both are catalog errors with the file's name."""
    (directory / "models.csv").write_bytes("Größe".encode("latin-1"))
    with pytest.raises(CatalogFileError, match=r"models\.csv:1: not UTF-8 text"):
        load_catalog(directory).models()
    (directory / "servers.csv").unlink()
    with pytest.raises(CatalogFileError, match=r"servers\.csv:1: no such file"):
        load_catalog(directory).servers()


def test_an_alias_of_an_unknown_kind_is_refused(directory: Path) -> None:
    """The alias file is checked as well."""
    with (directory / "aliases.csv").open("a", encoding="utf-8") as file:
        file.write("gpus,A100X,A100-80GB-PCIe\n")
    with pytest.raises(CatalogFileError, match="'gpus' is not one of gpu, gpu-word"):
        load_catalog(directory).gpu("Tesla T4")


def test_a_file_saved_by_a_spreadsheet_reads_the_same(directory: Path) -> None:
    """A byte-order mark and Windows line ends change nothing."""
    path = directory / "gpus.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert [gpu.memory_usable_bytes for gpu in load_catalog(directory).gpus()] == [
        gpu.memory_usable_bytes for gpu in load_catalog().gpus()
    ]


def test_only_what_is_asked_for_is_parsed(directory: Path) -> None:
    """A broken row of another GPU does not stand in the way."""
    replace_cell(directory / "gpus.csv", 3, "tdp_w", "hot")
    replace_cell(directory / "offers" / "lambda.csv", 2, "price_usd_per_node_hour", "cheap")
    catalog = load_catalog(directory)
    assert catalog.gpu("T4").tdp_w == 70
    assert {offer.gpu_id for offer in catalog.offers(["B200"])} == {"B200-SXM"}
    with pytest.raises(CatalogError):
        catalog.offers()


def test_offers_and_servers_are_filtered_by_any_name_of_a_gpu() -> None:
    """Names go through the alias table; no GPU means no offer."""
    catalog = load_catalog()
    assert {offer.gpu_id for offer in catalog.offers(["H100-SXM-80GB", "rtx 4090"])} == {"H100-80GB-SXM", "RTX-4090"}
    assert {server.gpu_id for server in catalog.servers(["L40S"])} == {"L40S"}
    assert catalog.offers([]) == ()


def test_references_lead_to_the_line_of_the_row() -> None:
    """The line that a record names holds its id."""
    for record in (*load_catalog().offers(["T4"]), *load_catalog().servers(["T4", "L4"])):
        lines = (DATA.parent / record.ref.file).read_text(encoding="utf-8").splitlines()
        row_id = getattr(record, "offer_id", None) or getattr(record, "server_id", "")
        assert lines[record.ref.line - 1].startswith(f"{row_id},")


def test_version_changes_with_any_byte(directory: Path) -> None:
    """The version names the newest date and the content; the hashes cover every file."""
    before = load_catalog(directory)
    assert set(before.file_hashes()) == {
        "aliases.csv",
        "gpus.csv",
        "models.csv",
        "offers/lambda.csv",
        "resale_values.csv",
        "servers.csv",
        "site_costs.csv",
        "typical_discounts.csv",
    }
    day, _, digest = before.version.partition("+")
    assert (len(day), len(digest)) == (10, 8)
    path = directory / "offers" / "lambda.csv"
    path.write_bytes(path.read_bytes() + b"\n")
    assert load_catalog(directory).version != before.version


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [("no", str, "no"), ("", float | None, None), ("1.5e3", float, 1500.0), ("-.5", float, -0.5), ("08", int, 8)],
)
def test_cells_become_exactly_their_type(text: str, hint: object, value: object) -> None:
    """Text is never guessed to be something else, and an empty optional number is None."""
    assert parse_cell(text, hint) == value
