import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.errors import ProblemFileError
from optimizer.problem.load import dump_yaml, parse_yaml


def read(text):
    data, findings = parse_yaml(text, "f.yaml")
    return data, [str(finding).splitlines()[0] for _, finding in findings.items]


def refusal(text):
    with pytest.raises(ProblemFileError) as caught:
        parse_yaml(text, "f.yaml")
    return str(caught.value).splitlines()[0]


SCALARS = """\
1.4e12       number 1.4e12
7e9          number 7e9
1e-4         number 1e-4
1.0e+9       number 1e9
1_000_000    number 1000000
-.5          number -0.5
0.5          number 0.5
0x1F         number 31
0o17         number 15
no           text   no
NO           text   NO
on           text   on
yes          text   yes
12:30        text   12:30
1,000        text   1,000
2026-12-01   text   2026-12-01
"010"        text   010
!!str 12     text   12
"""


@pytest.mark.parametrize("row", SCALARS.splitlines())
def test_scalars_mean_what_yaml_1_2_says(row):
    """A plain scalar is a number only if it reads as one; no word is a truth value but true and false."""
    written, kind, meant = row[:13].strip(), row[13:20].strip(), row[20:].strip()
    data, findings = read(f"key: {written}")
    assert not findings
    expected = float(meant) if kind == "number" else meant
    assert data["key"] == expected
    assert isinstance(data["key"], str) == (kind == "text")


REFUSED = """\
010     | could be octal or decimal (write 10 for the number, "010" in quotes for the text)
08      | could be octal or decimal (write 8 for the number, "08" in quotes for the text)
00.5    | could be octal or decimal (write 0.5 for the number, "00.5" in quotes for the text)
.nan    | expected a finite number, found .nan
.inf    | expected a finite number, found .inf
-.Inf   | expected a finite number, found -.Inf
1e999   | expected a finite number, found 1e999
!foo 3  | unknown type "!foo"
"""


@pytest.mark.parametrize("row", REFUSED.splitlines())
def test_scalars_that_mean_two_things_or_nothing_are_refused_with_their_place(row):
    """Leading zeros, NaN, infinities and unknown tags are findings that point at the scalar."""
    written, _, message = (part.strip() for part in row.partition("|"))
    _, findings = read(f"a: 1\nkey: {written}")
    assert len(findings) == 1
    assert findings[0].startswith("f.yaml:2:6: error key:")
    assert message in findings[0]


def test_a_duplicate_key_names_both_lines():
    """The second of two equal keys is an error, also in flow style."""
    assert read("a: 1\nb: 2\na: 3")[1] == [
        'f.yaml:3:1: error a: duplicate key "a", first at line 1 (keep one of the two)'
    ]
    assert read("{h: {h100: 2.0, h100: 3.0}}")[1][0].startswith("f.yaml:1:17: error h.h100: duplicate key")


BROKEN = [
    ("", "f.yaml:1:1: error: expected a mapping of keys, found nothing"),
    ("[1]", "f.yaml:1:1: error: expected a mapping of keys, found a list"),
    ("word", "f.yaml:1:1: error: expected a mapping of keys, found a text"),
    ("a:\n\tb: 1", "f.yaml:2:1: error: YAML syntax: a tab cannot indent (use spaces)"),
    ("a: b: c", "f.yaml:1:5: error: YAML syntax: a second `: ` in one line"),
    ("a: 1\n---\nb: 1", "f.yaml:2:1: error: YAML syntax: a second document (---) (one problem per file)"),
    ("a: \x01", "f.yaml:1:4: error: YAML syntax: a control character"),
    ("a: *x", "f.yaml:1:4: error: YAML syntax: an alias without its anchor"),
    ("a: [1", "error: YAML syntax:"),
    ("a: @x", "f.yaml:1:4: error: YAML syntax: a character that cannot start a value"),
    ("[" * 5000, "nest"),
    ("- " * 5000, "nest"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_what_is_not_a_mapping_in_yaml_is_told_in_one_line(text, message):
    """Syntax errors, other documents and other roots are one finding."""
    assert message in refusal(text)


def test_anchors_and_merge_keys_work_and_what_is_written_out_wins():
    """Aliases and `<<` are plain YAML; the explicit key beats the merged one."""
    data, findings = read("b: &b {x: 1, y: 2}\nc: {<<: *b, x: 3}\nd: {<<: [*b, {z: 4}]}\ne: *b")
    assert not findings
    assert data == {"b": {"x": 1, "y": 2}, "c": {"x": 3, "y": 2}, "d": {"x": 1, "y": 2, "z": 4}, "e": {"x": 1, "y": 2}}


def test_aliases_cannot_explode_or_loop():
    """A bomb of aliases and an alias within itself end in one finding each."""
    lines = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    bomb = read("\n".join(["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", *lines]))[1]
    assert len(bomb) == 1
    assert "aliases expand to more than 300,000 values" in bomb[0]
    assert "contains itself" in read("a: &a [*a]")[1][0]


def test_places_count_characters():
    """Columns count characters, not bytes, so that editors jump to the right one."""
    assert read("é: [ü, 1, x: .nan]")[1][0].startswith("f.yaml:1:14: error é[2].x:")


def test_the_picture_points_at_the_value():
    """A finding shows its line, with carets below the value."""
    _, findings = parse_yaml("a: 1\nkey: 010 # no", "f.yaml")
    picture = findings.items[0][1].snippet
    assert picture == "    2 | key: 010 # no\n      |      ^^^"


@pytest.mark.parametrize("pure", [False, True])
def test_the_reader_without_libyaml_reads_the_same(pure, monkeypatch):
    """The pure Python parser, where libyaml is missing, gives the same data."""
    import yaml

    from optimizer.problem import load

    if pure:
        loader = type("Pure", (yaml.SafeLoader,), {"yaml_implicit_resolvers": load._Loader.yaml_implicit_resolvers})
        monkeypatch.setattr(load, "_Loader", loader)
    assert read("a: 1e3\nb: no\nc: [12:30, .5]")[0] == {"a": 1000.0, "b": "no", "c": ["12:30", 0.5]}
    assert "nested deeper" in refusal("[" * 5000) or not pure


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
    | st.sampled_from(["1e9", "no", "010", "12:30", "~", "", "1_000", "<<", "-.5", "0x1F", "x: y", "true", "=", "\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcNO019_.-", min_size=1), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "1e3", "no", "x y"]), plain, min_size=1))
def test_what_is_dumped_reads_back_the_same(data):
    """dump_yaml quotes whatever YAML 1.2 would read as something else."""
    assert read(dump_yaml(data)) == (data, [])
