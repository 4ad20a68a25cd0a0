import pytest

from optimizer.errors import ProblemFileError
from optimizer.evaluate.rows import positive, publication, read_rows, required_positive
from optimizer.evaluate.types import NotPredictableError, UnreadableCellError


def written(tmp_path, content):
    path = tmp_path / "rows.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_rows_are_found_by_the_names_of_columns(tmp_path):
    """Columns may stand in any order, extra ones are kept, a byte-order mark and blank lines do no harm."""
    rows = read_rows(written(tmp_path, "\ufeffgpu,id,more\nL4 ,a,1\n\nT4,b,\n"), ["id", "gpu"])
    assert [(row.line, row.cells["id"], row.cells["gpu"], row.fault) for row in rows] == [
        (2, "a", "L4", ""), (4, "b", "T4", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no column 'id'"),
        ("ids,gpu\na,L4\n", "'ids' is there"),
        ("id,gpu\n", "no rows"),
        ("id,gpu,gpu\na,L4,L4\n", "occurs twice"),
        (b"id,gpu\n\xff\xfe,L4\n", "UTF-8"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, content, words):
    """What is wrong with the file is said with its place."""
    path = written(tmp_path, content)
    with pytest.raises(ProblemFileError, match=words) as raised:
        read_rows(path, ["id", "gpu"])
    assert path in str(raised.value)


def test_a_file_that_is_not_there():
    """A missing file is named."""
    with pytest.raises(ProblemFileError, match=r"nowhere\.csv.*cannot read"):
        read_rows("nowhere.csv", ["id"])


def test_a_row_with_too_many_cells_is_kept_with_its_fault(tmp_path):
    """One broken line does not hide the others."""
    rows = read_rows(written(tmp_path, "id,gpu\na,L4,5\nb,T4\n"), ["id"])
    assert [bool(row.fault) for row in rows] == [True, False]


@pytest.mark.parametrize("cell", ["abc", "1,5", "inf", "0", "-3"])
def test_cells_that_are_no_positive_number(cell):
    """The message names the column, what was found and what to write."""
    with pytest.raises(UnreadableCellError, match=rf"column tp: found '{cell}', write a number"):
        positive({"tp": cell}, "tp")


def test_an_empty_cell_is_no_fault_of_the_file():
    """A needed cell that is empty makes the row unpredictable, not unreadable."""
    for cell in ("", "nan", "None", "n/a", "-", "unknown", "unstated"):
        assert positive({"tp": cell}, "tp") is None
    with pytest.raises(NotPredictableError, match="column tp is empty"):
        required_positive({"tp": ""}, "tp")


def test_publication_is_the_first_word_of_the_source():
    """Files of one repository at one commit are one publication."""
    assert publication({"source": "some/repo@abc123 results/a.json"}) == "some/repo@abc123"
    assert publication({}) == "not stated"
