import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.load import load_catalog
from optimizer.errors import ProblemFileError
from optimizer.problem.load import dump_yaml, load_problem, parse_problem, problem_from_json
from optimizer.problem.names import canonical_names
from optimizer.problem.periods import order_periods
from optimizer.problem.publish import problem_schema
from optimizer.problem.schema import Horizon
from optimizer.problem.templates import template_summaries, template_text, template_texts

CATALOG = load_catalog()
PROBLEMS = sorted((Path(__file__).parents[2] / "problems").glob("*.yaml"))
RICH = """\
name: everything
currency: EUR
exchange_rates: {USD: {rate: 0.9, date: 2026-12-01}}
horizon: {months: 24, periods: [{start_month: 0, months: 12}, {start_month: 12, months: 12}]}
finance: {discount_rate: 8 %}
site: {electricity: 110 USD/MWh, pue: 1.3, hosting: 100 USD/kW/month, power_limit_it: 60 kW}
workloads:
  - name: chat
    kind: service
    model: {name: tiny, architecture: {layers: 2, hidden: 64, heads: 4}}
    traffic: {peak_requests_per_s: 40, profile: office-hours, peak_to_mean: 3, growth: 60 %/year, by_period: [1, 1.5]}
    classes: [{name: a, share: 70 %, input: 1, output: 2}, {name: b, share: 0.3, input: 3, output: 4}]
    latency: {p95_ttft: 0.8 s, p95_tpot: 60 ms}
    headroom: 33 %
    data: {regions: [eu-*]}
  - {name: job, kind: finetune, tokens: 3e8, start: month 2, deadline: 2 days, window: {daily: "22:00-06:00"}}
  - {name: data, kind: training, dataset: {size: 50 GB}, deadline: 3 weeks}
  - {name: batch, kind: batch, requests: {per_day: 200_000, input: 5, output: 6}}
measurements:
  - {workload: chat, option: hgx, class: a, requests_per_s: 3.1, p95_ttft: 620 ms}
gpus: {mine: {memory: 24 GB, bandwidth: 1 TB/s, bf16: 165 TFLOP/s, tdp: 450 W}}
options:
  price_age_limit: 180 days
  quotes:
    - {name: hgx, gpu: mine, purchase: owned, price: 5 kUSD, power: 500 W, residual: [{age: 1 year, fraction: 50 %}]}
  existing: [{gpu: mine, nodes: 2, age: 30 months, term: 6 months, fee: 1_460 USD/month}]
limits: {capex: 2e6 USD, opex: 180_000 USD/month, spot_share: {chat: 0 %}, gpus: {mine: 9}}
""".replace("5 kUSD", "5_000 USD")


def test_units_become_one_number_in_one_currency():
    """Every way of writing a quantity ends in the canonical unit; foreign money in the problem's currency."""
    problem = parse_problem(RICH).problem
    chat, job, data, _ = problem.workloads
    assert chat.latency.p95_ttft == pytest.approx(800)
    assert chat.traffic.growth == pytest.approx(1.6 ** (1 / 12) - 1)
    assert (job.start, job.deadline, data.deadline) == (1460, 48, 504)
    assert problem.site.electricity == pytest.approx(0.11 * 0.9)
    assert problem.options.quotes[0].price == pytest.approx(4500)
    assert problem.options.quotes[0].power == 0.5
    assert problem.options.existing[0].fee == pytest.approx(2 * 0.9)
    assert problem.options.price_age_limit == 4320
    assert problem.gpus["mine"].memory == 24e9


def test_730_hours_make_a_month():
    """1,460 a month is 2.00 an hour, and a year of hours is 8,760 (12 months of 730)."""
    text = "name: m\nworkloads: [{name: j, kind: batch, tokens: 1, deadline: 12 months}]\n"
    quotes = "options: {quotes: [{name: q, gpu: g, purchase: reserved, term: 1 year, price: 1_460 USD/month}]}\n"
    problem = parse_problem(text + quotes).problem
    assert problem.options.quotes[0].price == pytest.approx(2.0)
    assert problem.options.quotes[0].term == 12
    assert problem.workloads[0].deadline == 8760


@pytest.mark.parametrize("text", [RICH, *template_texts().values(), *(path.read_text() for path in PROBLEMS)])
def test_a_dumped_problem_reads_back_equal(text, monkeypatch):
    """The normalised problem embedded in a plan is the same problem, also through JSON and YAML."""
    monkeypatch.chdir(Path(__file__).parents[2] / "problems")
    problem = parse_problem(text).problem
    dumped = problem.model_dump(mode="json", by_alias=True)
    assert problem_from_json(json.loads(json.dumps(dumped))) == problem
    assert problem_from_json(dumped).model_dump(mode="json", by_alias=True) == dumped
    assert "12:30" not in dump_yaml(dumped)


def test_a_dumped_problem_that_was_tampered_with_is_refused_by_path():
    """Mistakes in an embedded problem are told by their dotted path."""
    dumped = parse_problem(RICH).problem.model_dump(mode="json", by_alias=True)
    dumped["workloads"][0]["headroom"] = "a lot"
    with pytest.raises(ProblemFileError, match=r"the embedded problem: error workloads\[0\].headroom: expected"):
        problem_from_json(dumped)


def test_names_become_catalog_ids_and_own_names_stay():
    """Aliases end in ids wherever a GPU is named; what the file declares under gpus: is taken verbatim."""
    text = """\
name: n
workloads: [{name: j, kind: batch, tokens: 1, model: meta-llama/Llama-3.1-8B-Instruct, gpus: [RTX 4090, A100]}]
measurements: [{workload: j, gpu: nvidia rtx 4090, tokens_per_s: 5}]
gpus: {A100: {memory: 10 GB}}
options: {gpus: [rtx4090, RTX-4090, A100], existing: [{gpu: rtx4090, nodes: 1}]}
limits: {gpus: {rtx4090: 8}}
"""
    problem = parse_problem(text).problem
    settled = canonical_names(problem, load_catalog())
    assert settled == parse_problem(text, catalog=load_catalog()).problem
    assert settled.workloads[0].model == "llama-3.1-8b"
    assert settled.workloads[0].gpus == ["RTX-4090", "A100"]
    assert settled.measurements[0].gpu == "RTX-4090"
    assert settled.options.gpus == ["RTX-4090", "A100"]
    assert settled.options.existing[0].gpu == "RTX-4090"
    assert settled.limits.gpus == {"RTX-4090": 8}
    assert canonical_names(settled, load_catalog()) == settled


def test_files_that_a_problem_names_are_read_in(tmp_path):
    """A CSV profile and a config.json are found beside the problem file and become part of the problem."""
    (tmp_path / "chat.csv").write_text("hour,weight\n" + "\n".join(f"{hour},{hour % 3}" for hour in range(24)))
    config = {"model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28,
              "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: f\nworkloads: [{name: s, kind: service, model: config.json, "
        "traffic: {requests_per_day: 9, profile: chat.csv}, tokens: {input: 1, output: 1}}]\n"
    )
    loaded = load_problem(path)
    service = loaded.problem.workloads[0]
    assert service.traffic.profile == [float(hour % 3) for hour in range(24)]
    assert (service.model.architecture.kv_heads, service.model.architecture.qkv_bias) == (4, True)
    assert [name for name, _ in loaded.files] == ["chat.csv", "config.json"]


FILE_MISTAKES = [
    ("profile: none.csv", None, "none.csv: no such file"),
    ("profile: p.csv", "1\n2\nx\n", 'p.csv: line 3: expected a number ≥ 0, found "x"'),
    ("profile: p.csv", "weights\n", "p.csv: no numbers in it"),
    ("profile: p.csv", "1\n2\n", "expected 24 numbers (hours of a day) or 48 (weekday, then weekend), found 2"),
    ("profile: p.csv", b"\xff1\n", "p.csv line 1: byte 0xff is not UTF-8"),
]


@pytest.mark.parametrize(("profile", "content", "message"), FILE_MISTAKES)
def test_mistakes_in_a_profile_point_at_the_file_and_its_line(tmp_path, profile, content, message):
    """What is wrong in a CSV is told at the key that names it, with the line of the CSV."""
    if content is not None:
        (tmp_path / "p.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    text = f"name: f\nworkloads:\n- {{name: s, kind: service, traffic: {{requests_per_day: 9, {profile}}}}}\n"
    with pytest.raises(ProblemFileError) as caught:
        parse_problem(text, "p.yaml", tmp_path)
    assert str(caught.value).startswith("p.yaml:3:")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "config.json: not JSON"),
        ('{"model_type": "mamba"}', "model_type 'mamba' is not one of llama"),
        ('{"model_type": "llama"}', "lacks num_hidden_layers"),
        ("[]", "model_type None"),
    ],
)
def test_mistakes_in_a_config_json_point_at_the_key(tmp_path, content, message):
    """A configuration that is no JSON, of another family or incomplete is told at the model's key."""
    (tmp_path / "config.json").write_text(content)
    text = "name: f\nworkloads:\n- {name: s, kind: batch, tokens: 5, model: config.json}\n"
    with pytest.raises(ProblemFileError) as caught:
        parse_problem(text, "p.yaml", tmp_path)
    assert message in str(caught.value)
    assert caught.value.findings[0].path == "workloads[0].model"


@pytest.mark.parametrize("name", template_texts())
def test_templates_are_right_as_they_are(name):
    """Every template passes all checks with the catalog, under any title."""
    title = 'My "own" problem: 1'
    loaded = parse_problem(template_text(name, title), name, catalog=load_catalog())
    assert loaded.problem.name == title
    assert template_summaries()[name][-1] in ".?"


def test_periods_of_a_horizon_end_with_it():
    """Named periods are equal, the last one shorter where the horizon asks for it."""
    assert [period.months for period in order_periods(Horizon(months=7.0, periods="quarterly"))] == [3, 3, 1]
    assert [period.start_month for period in order_periods(Horizon(months=24.0, periods="yearly"))] == [0, 12]
    assert len(order_periods(Horizon(months=0.5, periods="monthly"))) == 1
    assert order_periods(Horizon(months=36.0, periods="once"))[0].months == 36


def test_the_published_schema_is_draft_7_and_explains_itself():
    """Editors know draft 7: definitions, no newer keywords, a description wherever the schema has a docstring."""
    schema = problem_schema()
    text = json.dumps(schema)
    assert schema["$schema"].endswith("draft-07/schema#")
    for keyword in ('"$defs"', '"prefixItems"', '"discriminator"', '"ge":', '"gt":', '"le":', '"lt":'):
        assert keyword not in text
    for name in set(json.loads(text)["definitions"]):
        assert f"#/definitions/{name}" in text
    quote = schema["definitions"]["Quote"]["properties"]
    assert quote["price"]["description"].startswith("Owned: per node")
    assert quote["gpus_per_node"]["minimum"] == 1
    assert "class" in schema["definitions"]["Measurement"]["properties"]
    assert _references_without_company(schema)


def _references_without_company(node):
    if isinstance(node, dict):
        alone = "$ref" not in node or len(node) == 1
        return alone and all(map(_references_without_company, node.values()))
    return all(map(_references_without_company, node)) if isinstance(node, list) else True


LINES = RICH.splitlines()
TOKENS = [
    *(
        "name:",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ": ",
        ",",
        "8 %",
        "1e9",
        ".nan",
        "~",
        "&a ",
        "*a",
        "<<: ",
        "!x ",
        "\t",
        '"',
        "-1",
    ),
    *("kind: service", "workloads:", "5 days", "USD/h", "true", "#", "|", ">", "é", "\x00", "010", "price:"),
]


def refused_with_findings(text, **settings):
    """Read a text that may be anything; whatever is raised but a ProblemFileError fails the test."""
    try:
        parse_problem(text, **settings)
    except ProblemFileError as error:
        return bool(error.findings) and all(finding.message for finding in error.findings)
    return True


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(LINES) - 1), st.sampled_from(TOKENS), st.integers(0, 80)), max_size=4),
    st.sets(st.integers(0, len(LINES) - 1), max_size=3),
)
def test_no_spoilt_file_ends_in_a_traceback(insertions, dropped):
    """However a problem file is damaged, it reads, or it is refused with findings."""
    lines = list(LINES)
    for line, token, column in insertions:
        lines[line] = lines[line][:column] + token + lines[line][column:]
    text = "\n".join(line for index, line in enumerate(lines) if index not in dropped)
    assert refused_with_findings(text, catalog=CATALOG)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60) | st.lists(st.sampled_from([*TOKENS, "\n", "\n  "]), max_size=20).map("".join))
def test_no_text_at_all_ends_in_a_traceback(text):
    """Any text is a problem or is refused with findings."""
    assert refused_with_findings(text)
