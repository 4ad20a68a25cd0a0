import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import CatalogFileError
from catalog.importing import ImportRun, offers_csv
from catalog.importing.cells import number
from tests.catalog.import_cases import CATALOG, GPUHUNT, SAMPLES, SKYPILOT, codes, gpuhunt, imported, prices, sample

ROW = "n,r,1.5,8,64,1,L4,24,False,,nvidia,,x86,{}"


@pytest.mark.parametrize("change", ["bom", "crlf", "utf-16", "cr-lf and bom", "blank lines", "columns turned round"])
def test_the_same_prices_however_the_file_was_saved(change):
    """Byte-order marks, line ends, encodings, blank lines and the order of columns change nothing."""
    text = (SAMPLES / "gpuhunt_azure.csv").read_text(encoding="utf-8")
    lines = text.splitlines()
    data = {
        "bom": text.encode("utf-8-sig"),
        "crlf": "\r\n".join(lines).encode(),
        "utf-16": text.encode("utf-16"),
        "cr-lf and bom": "\r\n".join(lines).encode("utf-8-sig"),
        "blank lines": "\n\n".join(lines).encode(),
        "columns turned round": "\n".join(",".join(reversed(line.split(","))) for line in lines).encode(),
    }[change]
    assert prices(imported("gpuhunt", data, "azure")) == prices(sample("gpuhunt_azure", "azure"))


@pytest.mark.parametrize("region", ["NA", "no", "null", "1e5", "007", "None", "nan"])
def test_text_stays_text(region):
    """Regions that look like something else come out as they went in (country-codes issue 38)."""
    run = gpuhunt(ROW.replace(",r,", f",{region},"))
    assert [row.region for row in run.rows] == [region]
    assert f"acme/{region}/n/on-demand" in offers_csv(run)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,234.50", 1234.5), ("$2.10", 2.1), ("2.10 USD", 2.1), ("1e2", 100), (" 3 ", 3), ("", None), ("12,345", 12345)],
)
def test_numbers_as_people_write_them(text, value):
    """Thousands separators and dollar marks are read, an empty cell is no number."""
    assert number(text) == value


@pytest.mark.parametrize("text", ["1,5", "1.234,50", "nan", "inf", "1_000", "0x10", "1e999", "TRUE", "12h", "\u0663"])
def test_numbers_that_could_mean_anything_are_refused(text):
    """What could mean several things, or nothing, is an error and never a guess."""
    with pytest.raises(ValueError, match=r"number|large"):
        number(text)


def test_mixed_types_drop_their_row_only():
    """A word in a column of numbers costs its row, not the file."""
    spoilt = (ROW.replace("1.5", "call us"), ROW.replace("False", "maybe"), ROW.replace(",24,", ",much,"))
    run = gpuhunt(ROW, *spoilt, "n,r")
    assert len(run.rows) == 1
    assert codes(run) == ["unreadable", "unreadable", "unreadable", "ragged"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no header"),
        (b"\n\n", "no header"),
        (b"a,b,a\n1,2,3\n", "a stands twice"),
        (b"a,b\n1,2\n", "missing instance_name"),
        (f'{GPUHUNT}\n"open'.encode(), "not readable as CSV"),
        (GPUHUNT.encode() + b"\nGr\xf6\xdfe", "not UTF-8"),
        (b"\x00\x01\x02", "missing instance_name"),
        (SKYPILOT.encode(), "missing instance_name"),
    ],
)
def test_files_that_are_no_price_files(data, says):
    """What is wrong with the file as a whole is said with its name and line."""
    with pytest.raises(CatalogFileError, match=says) as caught:
        imported("gpuhunt", data)
    assert str(caught.value).startswith("prices.csv:")


@given(data=st.binary(max_size=300), form=st.sampled_from(["skypilot", "gpuhunt", "csv"]))
def test_no_bytes_give_anything_but_a_clean_error(data, form):
    """Whatever a file holds, the import ends in offers, dropped rows or a CatalogFileError."""
    found = _outcome(form, data)
    assert isinstance(found, ImportRun) or str(found).startswith("prices.csv:")


def _outcome(form, data):
    try:
        return imported(form, data)
    except CatalogFileError as error:
        return error


CELLS = st.one_of(
    st.sampled_from(
        ["", "0", "1", "8.0", "-3", "1,000", "nan", "A100", "H100", "L4", "tpu-v4-8", "80", "40960", "True", "x"]
    ),
    st.text(st.characters(exclude_characters='"', exclude_categories=["Cs"]), max_size=8),
)


ROWS = st.lists(st.lists(CELLS, min_size=9, max_size=15), max_size=4)


@given(rows=ROWS, form=st.sampled_from(["skypilot", "gpuhunt"]))
def test_no_cells_give_anything_but_offers_or_dropped_rows(rows, form):
    """Every row read ends as an offer or as a dropped row, and what is written can be read again."""
    header = {"skypilot": SKYPILOT, "gpuhunt": GPUHUNT}[form]
    text = "\n".join([header, *(",".join(f'"{cell}"' for cell in row) for row in rows)])
    run = imported(form, text)
    lines = {row.line for row in run.rows} | {note.line for note in run.dropped}
    assert run.lines_read <= len(rows)
    assert len(lines) == run.lines_read
    assert all(row.price > 0 and row.gpus_per_node >= 1 for row in run.rows)


NAMES = st.text(st.characters(exclude_characters='"', exclude_categories=["Cs"]), max_size=6)


@given(names=st.lists(NAMES, min_size=1, max_size=3))
def test_ids_are_unique_whatever_nodes_are_called(tmp_path_factory, names):
    """Offers with odd names are written so that they read back, each once."""
    rest = "8,64,1,L4,24,False,,nvidia,,x86,{}"
    run = gpuhunt(*(f'"{name}{i}",r,1.{i},{rest}' for i, name in enumerate(names)))
    path = tmp_path_factory.mktemp("prices") / "offers.csv"
    path.write_text(offers_csv(run), encoding="utf-8", newline="")
    assert len(CATALOG.with_price_files({"x": path}, only=True).offers()) == len(run.rows)
