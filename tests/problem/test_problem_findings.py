"""Every mistake that the schema and the rules know, provoked once: its place and its message."""

import pytest

from catalog.load import load_catalog
from optimizer.errors import ProblemFileError
from optimizer.model.timegrid import window_hours
from optimizer.problem.load import load_problem, parse_problem

BASE = """\
name: base
workloads:
  - name: chat
    kind: service
    model: llama-2-7b
    traffic: {requests_per_day: 1000}
    tokens: {input: 100, output: 50}
  - name: train
    kind: training
    model: llama-2-7b
    tokens: 1e9
    deadline: 10 days
options:
  gpus: [A100-80GB-SXM]
  quotes:
    - {name: hgx, gpu: A100-80GB-SXM, gpus_per_node: 8, purchase: owned, price: 120_000 USD}
    - {name: rent, gpu: A100-80GB-SXM, purchase: reserved, term: 12 months, price: 1.1 USD/h}
"""


def changed(*replacements):
    text = BASE
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def findings_of(text, **settings):
    with pytest.raises(ProblemFileError) as caught:
        parse_problem(text, "p.yaml", **settings)
    return caught.value.findings


def test_the_base_is_right():
    """The problem that the cases below spoil has no mistake itself."""
    assert parse_problem(BASE, catalog=load_catalog()).problem.name == "base"


TRAFFIC = "{requests_per_day: 1000}"
QUOTE = "purchase: owned, price: 120_000 USD}"
RENT = "purchase: reserved, term: 12 months, price: 1.1 USD/h}"

# (what is replaced, by what, path, message)
SCHEMA_CASES = [
    ("name: base", "nam: base", "nam", 'unknown key "nam" (did you mean "name"?)'),
    ("name: base", "nam: base", "name", 'missing key "name" (write text)'),
    ("name: base", "name: 12", "name", 'expected text, found 12 (put it in quotes: "12")'),
    ("name: base", "name: ''", "name", "an empty text"),
    ("name: base", "name: base\ncurrency: usd", "currency", 'cannot use "usd" (Currency of every amount'),
    ("kind: service", "kind: servce", "workloads[0].kind", 'unknown kind "servce" (did you mean "service"?)'),
    ("    kind: service\n", "", "workloads[0]", 'missing key "kind" (write one of service, training, finetune, batch)'),
    ("  - name: chat\n", "  - 7\n  - name: chat\n", "workloads[0]", "expected a mapping with name and kind"),
    (TRAFFIC, "[1]", "workloads[0].traffic", "expected a mapping (keys: requests_per_day"),
    (TRAFFIC, "{requests_per_day: 1,000}", "workloads[0].traffic.000", "inside { } a comma ends a value"),
    (TRAFFIC, '{requests_per_day: "1,000"}', "workloads[0].traffic.requests_per_day",
     'expected a number, found "1,000"'),
    (TRAFFIC, "{requests_per_day: yes}", "workloads[0].traffic.requests_per_day", 'expected a number, found "yes"'),
    (TRAFFIC, "{requests_per_day: true}", "workloads[0].traffic.requests_per_day",
     "expected a number, found the truth value true"),
    (TRAFFIC, "{requests_per_day: -1}", "workloads[0].traffic.requests_per_day", "expected a number ≥ 0, found -1"),
    (TRAFFIC, "{requests_per_day: .inf}", "workloads[0].traffic.requests_per_day", "expected a finite number"),
    (TRAFFIC, "{requests_per_day: 010}", "workloads[0].traffic.requests_per_day", "could be octal or decimal"),
    (TRAFFIC, "{requests_per_day: 5, growth: 4 %}", "workloads[0].traffic.growth",
     'expected a growth with its period, found "4 %" (write e.g. "4 %/month")'),
    (TRAFFIC, "{requests_per_day: 5, profile: {a: 1}}", "workloads[0].traffic.profile",
     "expected text or a list of numbers, found a mapping"),
    (TRAFFIC, "{requests_per_day: 5, profile: [1, x]}", "workloads[0].traffic.profile[1]",
     'expected a number, found "x"'),
    ("output: 50", "output: 1.5", "workloads[0].tokens.output", "expected a whole number, found 1.5"),
    ("output: 50", "output: 50, inptu: 1", "workloads[0].tokens.inptu", 'unknown key "inptu" (did you mean "input"?)'),
    ("{input: 100, output: 50}", "", "workloads[0].traffic.x", None),
    ("kind: training", "kind: training\n    precision: fp17", "workloads[1].precision",
     'expected one of fp32, tf32, bf16, fp16, fp8, int8, fp4, found "fp17" (did you mean'),
    ("deadline: 10 days", "deadline: 10", "workloads[1].deadline",
     'expected a duration with its unit, found 10 (write e.g. "5 days")'),
    ("deadline: 10 days", "deadline: 10 dayz", "workloads[1].deadline", 'unknown unit "dayz" for a duration'),
    ("deadline: 10 days", "deadline: 12:30", "workloads[1].deadline", 'unknown unit ":30" for a duration'),
    ("gpus: [A100-80GB-SXM]", "gpus: A100-80GB-SXM", "options.gpus",
     'expected a list of texts, found "A100-80GB-SXM" (write [A100-80GB-SXM])'),
    ("price: 120_000 USD", "price: 120,000 USD", "options.quotes[0].price", None),
    ("price: 120_000 USD", 'price: "120,000 USD"', "options.quotes[0].price",
     'expected a number with a unit, found "120,000 USD" (write digits, with _ between thousands'),
    ("price: 120_000 USD", "price: 9 EUR", "options.quotes[0].price", "a price in EUR needs a dated rate"),
    ("price: 120_000 USD", "price: 9 USD/kW", "options.quotes[0].price", 'unknown unit "USD/kW"'),
    ("purchase: owned", "purchase: 2026-12-01", "options.quotes[0].purchase", "expected one of owned, reserved"),
    (QUOTE, "purchase: owned, price: 0, date: 1 May}", "options.quotes[0].date", 'expected a date, found "1 May"'),
    (QUOTE, "purchase: owned, price: 0, maintenance: 5}", "options.quotes[0].maintenance", None),
    (QUOTE, "purchase: owned, price: 0, availability: 95}", "options.quotes[0].availability",
     'expected a share, e.g. 95 % ≤ 1, found 95 (write "95 %" for a percentage)'),
    ("options:", "limits: {spot_share: 8}\noptions:", "limits.spot_share",
     'expected a share, e.g. 8 % ≤ 1, found 8 (write "8 %" for a percentage)'),
    ("options:", "limits: {spot_share: [1]}\noptions:", "limits.spot_share",
     "expected a share, e.g. 8 % or a mapping from names to a share, e.g. 8 %, found a list"),
    ("options:", "limits: {spot_share: {chat: 80}}\noptions:", "limits.spot_share.chat", "≤ 1, found 80"),
    ("options:", "horizon:\noptions:", "horizon", "found nothing (leave the key out for the default)"),
    ("options:", "horizon: {periods: weekly}\noptions:", "horizon.periods",
     'expected one of monthly, quarterly, yearly, once, found "weekly"'),
    ("options:", "measurements: [{workload: chat, gpu: A100-80GB-SXM}]\noptions:", "measurements[0]",
     "give exactly one of requests_per_s, tokens_per_s, tokens_per_s_per_gpu, per_gpu_hour, mfu (found none)"),
    ("options:", "measurements: [{workload: chat, requests_per_s: 1}]\noptions:", "measurements[0]",
     "name what was measured: either gpu or option"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "path", "message"), [case for case in SCHEMA_CASES if case[3]])
def test_schema_mistakes_are_told_once_at_their_place(old, new, path, message):
    """A mistake against the schema gives one finding at its path, with what was found and what to write."""
    found = [finding for finding in findings_of(changed((old, new))) if finding.path == path]
    assert len(found) == 1, found
    assert message in str(found[0])
    assert found[0].line is not None
    assert found[0].column is not None
    assert found[0].snippet


RULE_CASES = [
    ("name: train", "name: chat", "workloads[1].name", 'workload name "chat" is used twice'),
    ("gpus: [A100-80GB-SXM]", "gpus: []", "options.gpus", "an empty list allows nothing"),
    (TRAFFIC, "{}", "workloads[0].traffic",
     "expected exactly one of requests_per_day, mean_requests_per_s, peak_requests_per_s; found none"),
    (TRAFFIC, "{requests_per_day: 5, mean_requests_per_s: 1}", "workloads[0].traffic",
     "found requests_per_day and mean_requests_per_s"),
    (TRAFFIC, "{requests_per_day: 5, profile: office-hour}", "workloads[0].traffic.profile",
     'unknown profile "office-hour"'),
    (TRAFFIC, "{requests_per_day: 5, profile: [1, 2]}", "workloads[0].traffic.profile", "expected 24 numbers"),
    (TRAFFIC, "{requests_per_day: 5, peak_to_mean: 3}", "workloads[0].traffic.peak_to_mean",
     "peak_to_mean 3 is out of reach of this profile (1 only) (choose a profile with a peak)"),
    (TRAFFIC, "{requests_per_day: 5, by_slice: {day: 1}}", "workloads[0].traffic.by_slice", "lists no slices"),
    (TRAFFIC, "{requests_per_day: 5, by_period: [1]}", "workloads[0].traffic.by_period",
     "1 multiplier for 4 periods"),
    ("options:", "slices: [{name: day, share_of_hours: 0.4}, {name: night, share_of_hours: 0.5}]\noptions:", "slices",
     "the shares of hours add up to 0.9 (they must add up to 1)"),
    ("options:", "slices: [{name: a, share_of_hours: 0.5}, {name: a, share_of_hours: 0.5}]\noptions:",
     "slices[1].name", 'slice name "a" is used twice'),
    ("tokens: {input: 100, output: 50}", "classes: [{share: 50 %}, {share: 40 %}]", "workloads[0].classes",
     "the shares add up to 0.9"),
    ("tokens: {input: 100, output: 50}", "classes: [{share: 50 %}, {requests_per_s: 1}]", "workloads[0].classes",
     "1 share and 1 rate for 2 classes"),
    ("tokens: {input: 100, output: 50}", "classes: [{requests_per_s: 1, input: 1}]",
     "workloads[0].traffic.requests_per_day", "the classes have rates already"),
    ("tokens: {input: 100, output: 50}", "tokens: {input: 1, output: 1}\n    classes: [{input: 1}]",
     "workloads[0].tokens", "tokens and classes both give lengths"),
    ("tokens: {input: 100, output: 50}", "classes: [{name: a, share: 50 %}, {name: a, share: 50 %}]",
     "workloads[0].classes[1].name", 'class name "a" is used twice'),
    ("deadline: 10 days", "deadline: 2 years", "workloads[1].deadline", "after the horizon (12 months)"),
    ("deadline: 10 days", "start: month 12", "workloads[1].start", "when the horizon (12 months) is over"),
    ("deadline: 10 days", "deadline: 0 h", "workloads[1].deadline", "no time to run in"),
    ("deadline: 10 days", 'window: {daily: "22:30-06:00"}', "workloads[1].window.daily", "write whole hours"),
    ("deadline: 10 days", 'window: {daily: "22:00-25:00"}', "workloads[1].window.daily", "write whole hours"),
    ("deadline: 10 days", 'window: {daily: "6:00-6:00"}', "workloads[1].window.daily", "from an hour to itself"),
    ("deadline: 10 days", "min_gpus: 8\n    max_gpus: 4", "workloads[1].min_gpus",
     "min_gpus 8 is more than max_gpus 4"),
    ("    tokens: 1e9\n", "", "workloads[1]", "expected exactly one of tokens, dataset, work; found none"),
    ("tokens: 1e9", "tokens: 1e9\n    dataset: {size: 1 GB}", "workloads[1]", "found tokens and dataset"),
    ("kind: training\n    model: llama-2-7b\n    tokens: 1e9", "kind: batch\n    requests: {count: 5, per_day: 5}",
     "workloads[1].requests", "expected exactly one of count, per_day; found count and per_day"),
    ("kind: training\n    model: llama-2-7b\n    tokens: 1e9",
     "kind: batch\n    repeat: weekly\n    requests: {per_day: 5}", "workloads[1].repeat", "per_day repeats"),
    ("model: llama-2-7b\n    tokens", "model: {architecture: {layers: 2, hidden: 100, heads: 7}}\n    tokens",
     "workloads[1].model.architecture.heads", "hidden 100 is not a multiple of heads 7"),
    ("model: llama-2-7b\n    tokens",
     "model: {architecture: {layers: 2, hidden: 64, heads: 8, kv_heads: 3}}\n    tokens",
     "workloads[1].model.architecture.kv_heads", "heads 8 is not a multiple of kv_heads 3"),
    ("model: llama-2-7b\n    tokens",
     "model: {architecture: {layers: 2, hidden: 64, heads: 8, experts_per_token: 2}}\n    tokens",
     "workloads[1].model.architecture.experts_per_token", "experts_per_token 2 of 1 experts"),
    ("model: llama-2-7b\n    tokens",
     "model: {architecture: {layers: 2, hidden: 64, heads: 8, dense_layers: 3}}\n    tokens",
     "workloads[1].model.architecture.dense_layers", "dense_layers 3 of 2 layers"),
    ("model: llama-2-7b\n    tokens",
     "model: {architecture: {layers: 2, hidden: 64, heads: 8, kv_lora_rank: 16, rope_head_dim: 9}}\n    tokens",
     "workloads[1].model.architecture.rope_head_dim", "rope_head_dim 9 of 8 (head_dim)"),
    ("options:", "measurements: [{workload: chta, gpu: A100-80GB-SXM, requests_per_s: 1}]\noptions:",
     "measurements[0].workload", 'unknown workload "chta" (did you mean "chat"?)'),
    ("options:", "measurements: [{workload: chat, option: hgy, requests_per_s: 1}]\noptions:",
     "measurements[0].option", 'unknown offer "hgy" (did you mean "hgx"?)'),
    ("options:", "measurements: [{workload: chat, gpu: A100-80GB-SXM, class: a, requests_per_s: 1}]\noptions:",
     "measurements[0].class", 'unknown class "a" (there are no classes)'),
    ("options:", "measurements: [{workload: chat, gpu: A100-80GB-SXM, mfu: 0.4}]\noptions:", "measurements[0].mfu",
     'mfu does not say how fast the service "chat" runs (write requests_per_s or tokens_per_s)'),
    ("options:", "measurements: [{workload: chat, option: hgx, requests_per_s: 1}, "
     "{workload: chat, option: hgx, requests_per_s: 2}]\noptions:", "measurements[1]", "measured twice"),
    ("options:", "horizon: {periods: [{start_month: 1, months: 11}]}\noptions:", "horizon.periods[0].start_month",
     "this period starts at month 1, the one before ends at 0 (the first starts at month 0)"),
    ("options:", "horizon: {periods: [{start_month: 0, months: 6}, {start_month: 7, months: 5}]}\noptions:",
     "horizon.periods[1].start_month", "(write start_month: 6)"),
    ("options:", "horizon: {periods: [{start_month: 0, months: 6}]}\noptions:", "horizon.periods",
     "the periods end at month 6, the horizon at 12"),
    ("name: rent", "name: hgx", "options.quotes[1].name", 'offer name "hgx" is used twice'),
    (", price: 120_000 USD", "", "options.quotes[0].price", 'quote "hgx" has no price (write e.g. 265_000 USD'),
    ("price: 120_000 USD", "price: 21.6 USD/h", "options.quotes[0].price", 'one price, found "21.6 USD/h"'),
    ("price: 1.1 USD/h", "price: 800 USD", "options.quotes[1].price",
     'a reserved node has a price per time, found "800 USD" (write "800 USD/h", or /month, /year)'),
    ("price: 1.1 USD/h", "price: 2", "options.quotes[1].price", 'found 2 (write "2 USD/h"'),
    ("term: 12 months, ", "", "options.quotes[1].term", 'quote "rent" is reserved but has no term'),
    ("purchase: owned", "purchase: owned, term: 2 months", "options.quotes[0].term",
     "term has no meaning for purchase: owned (it is for reserved and committed-use)"),
    ("purchase: reserved", "purchase: reserved, installation: 5 USD", "options.quotes[1].installation",
     "installation has no meaning for purchase: reserved"),
    ("purchase: owned", "purchase: owned, min_nodes: 4, max_nodes: 2", "options.quotes[0].min_nodes",
     "min_nodes 4 is more than max_nodes 2"),
    ("purchase: owned", "purchase: owned, residual: []", "options.quotes[0].residual", "an empty list"),
    ("purchase: owned", "purchase: owned, residual: [{age: 2 months, fraction: 1}, {age: 1 month, fraction: 1}]",
     "options.quotes[0].residual[1].age", "age 1 month after age 2"),
    ("purchase: owned", "purchase: owned, residual: [{age: 0 months, fraction: 0.5}, {age: 1 month, fraction: 1}]",
     "options.quotes[0].residual[1].fraction", "worth 1 at 1 month, 0.5 before"),
    ("purchase: owned", "purchase: owned, power: 1 kW, load_power: 2 kW", "options.quotes[0].load_power",
     "load_power 2 kW is more than power 1 kW"),
    ("  quotes:", "  existing: [{gpu: A100-80GB-SXM, nodes: 1, term: 5 months}]\n  quotes:",
     "options.existing[0].fee", "a signed reservation without its fee"),
    ("  quotes:", "  existing: [{gpu: A100-80GB-SXM, nodes: 1, fee: 2 USD/h}]\n  quotes:",
     "options.existing[0].fee", "a fee without the term"),
    ("options:", "limits: {spot_share: {chatt: 5 %}}\noptions:", "limits.spot_share.chatt",
     'unknown workload "chatt" (did you mean "chat"?)'),
    ("  quotes:", "  catalog: false\n  quotes:", "", None),
    ("options:", "exchange_rates: {USD: {rate: 1, date: 2026-12-01}}\noptions:", "exchange_rates.USD",
     "USD is the problem's currency"),
    ("options:", "exchange_rates: {eur: {rate: 1, date: 2026-12-01}}\noptions:", "exchange_rates.eur",
     '"eur" is not a currency'),
    ("name: base", "name: base\ncurrency: EUR\nexchange_rates: {CHF: {rate: 1, date: 2026-12-01}}", "currency",
     "the catalog's prices are in USD, the problem's in EUR"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "path", "message"), [case for case in RULE_CASES if case[3]])
def test_rules_between_fields_are_told_once_at_their_place(old, new, path, message):
    """What contradicts itself gives one finding at its path, with what was found and what to write."""
    found = [finding for finding in findings_of(changed((old, new))) if finding.path == path]
    assert len(found) == 1, found
    assert message in str(found[0])
    assert found[0].line is not None


SLICES = "slices: [{name: day, share_of_hours: 0.4}, {name: night, share_of_hours: 0.6}]\noptions:"
SLICE_CASES = [
    ("{requests_per_day: 5, by_slice: {dya: 2}}", "workloads[0].traffic.by_slice.dya", '(did you mean "day"?)'),
    ("{requests_per_day: 5, by_slice: {day: 0, night: 0}}", "workloads[0].traffic.by_slice", "no slice has any"),
    ("{requests_per_day: 5, profile: global}", "workloads[0].traffic.profile", "lists its own slices"),
    ("{requests_per_day: 5, peak_to_mean: 2}", "workloads[0].traffic.peak_to_mean", "needs an hourly profile"),
]


@pytest.mark.parametrize(("traffic", "path", "message"), SLICE_CASES)
def test_traffic_must_fit_the_slices(traffic, path, message):
    """Where the problem lists slices, multipliers name them and hourly profiles have no place."""
    findings = findings_of(changed((TRAFFIC, traffic), ("options:", SLICES)))
    assert [finding.path for finding in findings] == [path]
    assert message in str(findings[0])


NO_CATALOG = [
    ("limits: {stock: {hgy: 1}}", "limits.stock.hgy", 'unknown offer "hgy" (did you mean "hgx"?)'),
    ("limits: {providers: {rant: {max_nodes: 1}}}", "limits.providers.rant", '(did you mean "rent"?)'),
]


@pytest.mark.parametrize(("limits", "path", "message"), NO_CATALOG)
def test_limits_name_what_is_there(limits, path, message):
    """Without the catalog, limits can only name quotes and existing hardware."""
    findings = findings_of(changed(("options:\n", f"{limits}\noptions:\n  catalog: false\n")))
    assert [finding.path for finding in findings] == [path]
    assert message in str(findings[0])


def test_nothing_to_choose_from():
    """Without catalog, quotes and existing hardware there is no plan to look for."""
    findings = findings_of(BASE.partition("options:")[0] + "options: {catalog: false}\n")
    assert [finding.message for finding in findings] == ["without the catalog there is nothing to buy or rent"]


NAME_CASES = [
    ("gpus: [A100-80GB-SXM]", "gpus: [A100]", "options.gpus[0]",
     'GPU "A100" could mean several (write "A100-40GB-PCIe" or'),
    ("gpus: [A100-80GB-SXM]", "gpus: [H200-SXN]", "options.gpus[0]", '(did you mean "H200-SXM"'),
    ("gpus: [A100-80GB-SXM]", "gpus: [Foo-1]", "options.gpus[0]", "or declare it under gpus:"),
    ("{name: rent, gpu: A100-80GB-SXM", "{name: rent, gpu: mine", "options.quotes[1].gpu",
     'unknown GPU "mine" (or declare it under gpus:)'),
    ("model: llama-2-7b", "model: llama-2-7", "workloads[0].model", 'unknown model "llama-2-7" (did you mean'),
    ("options:", "limits: {gpus: {RTX 6000: 1}}\noptions:", "limits.gpus.RTX 6000", "could mean several"),
    ("options:", "limits: {gpus: {H100-80GB-SXM: 1, H100-SXM-80GB: 1}}\noptions:", "limits.gpus.H100-SXM-80GB",
     "a second limit on H100-80GB-SXM"),
    ("options:", "limits: {providers: {awz: {max_nodes: 1}}}\noptions:", "limits.providers.awz",
     'unknown provider "awz" (did you mean "aws"?)'),
    ("options:", "limits: {stock: {hgz: 1}}\noptions:", "limits.stock.hgz", 'unknown offer "hgz"'),
    ("options:", "options:\n  providers: {deny: [vats]}", "options.providers.deny[0]", 'unknown provider "vats"'),
    ("options:", "measurements: [{workload: chat, gpu: L4S, requests_per_s: 1}]\noptions:", "measurements[0].gpu",
     'unknown GPU "L4S"'),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "path", "message"), NAME_CASES)
def test_names_must_be_in_the_catalog_or_the_file(old, new, path, message):
    """Names that are unknown or ambiguous are findings with their place and the choices."""
    findings = findings_of(changed((old, new)), catalog=load_catalog())
    assert [finding.path for finding in findings] == [path]
    assert message in str(findings[0])


def test_all_mistakes_come_at_once_in_file_order():
    """Scalars, schema, rules and names: one reading tells of all of them, by line."""
    text = changed(
        ("name: base", "name: base\nregion: 010"),
        ("output: 50", "output: -5"),
        ("deadline: 10 days", "deadline: 2 years"),
        ("gpus: [A100-80GB-SXM]", "gpus: [A100]"),
        ("price: 120_000 USD", "price: 21.6 USD/h"),
    )
    findings = findings_of(text, catalog=load_catalog())
    assert [finding.path for finding in findings] == [
        "region",
        "workloads[0].tokens.output",
        "workloads[1].deadline",
        "options.gpus[0]",
        "options.quotes[0].price",
    ]
    lines = [finding.line for finding in findings]
    assert lines == sorted(lines)


def test_one_mistake_does_not_cause_others():
    """A name that could not be read is not also reported as missing where others refer to it."""
    bad_name = changed(("name: train", "name: 7"), ("options:", "limits: {spot_share: {train: 0}}\noptions:"))
    assert [finding.path for finding in findings_of(bad_name)] == ["workloads[1].name"]
    bad_price = changed(("price: 120_000 USD", "price: [1]"))
    assert [finding.path for finding in findings_of(bad_price)] == ["options.quotes[0].price"]


def test_an_explicit_zero_is_a_price():
    """A price that is left out is unknown; 0 says that the node is free."""
    problem = parse_problem(changed(("price: 120_000 USD", "price: 0"))).problem
    assert problem.options.quotes[0].price == 0


UNREADABLE = [
    ("missing.yaml", None, "missing.yaml: error: no such file"),
    ("folder", "folder", "this is a directory"),
    ("latin.yaml", b"name: caf\xe9\n", "latin.yaml:1:10: error: byte 0xe9 is not UTF-8 (save the file as UTF-8)"),
    ("utf16.yaml", "name: x".encode("utf-16"), "utf16.yaml:1:1: error: byte 0xff is not UTF-8"),
    ("empty.yaml", b"", "empty.yaml:1:1: error: expected a mapping of keys, found nothing"),
]


@pytest.mark.parametrize(("name", "content", "message"), UNREADABLE)
def test_files_that_cannot_be_read_are_told_in_one_line(tmp_path, name, content, message):
    """Missing files, directories, other encodings and empty files are findings, not tracebacks."""
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(ProblemFileError) as caught:
        load_problem(path)
    assert message in str(caught.value)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    """Editors that write a UTF-8 mark at the start do no harm."""
    path = tmp_path / "p.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + BASE.encode())
    assert load_problem(path).problem.name == "base"


WORDING_CASES = [
    (TRAFFIC, "{requests_per_day: 5, profile: hours.csv}", "workloads[0].traffic.profile",
     "no such file (the path counts from the problem file; write there 24 or 48 rows"),
    (TRAFFIC, "{requests_per_day: 5, profile: ./}", "workloads[0].traffic.profile", "this is a directory"),
    ("model: llama-2-7b", "model: my/config.json", "workloads[0].model", "put the model's Hugging Face config.json"),
    ("term: 12 months", "term: 0 months", "options.quotes[1].term", 'quote "rent" is reserved but has a term of 0'),
    ("deadline: 10 days", "deadline: 2027-01-01", "workloads[1].deadline",
     'expected a duration (counted from the start), found the date 2027-01-01 (write e.g. "5 days")'),
    ("deadline: 10 days", "deadline: 20 months", "workloads[1].deadline", "due at 20 months (start 0 h + 20 months)"),
    ("options:", "measurements: [{workload: chat, gpu: L4, requests_per_s: .nan}]\noptions:",
     "measurements[0].requests_per_s", "found .nan"),
    ("options:", "measurements: [{workload: chat, gpu: L4, class: a, requests_per_s: 1}]\noptions:",
     "measurements[0].class", "(there are no classes)"),
    ("options:", "measurements: 5\noptions:", "measurements", "expected a list of mappings (keys: workload, gpu"),
    ("workloads:\n", "limits: {stock: {hgy: 1}}\nworkloads:\n", "limits.stock.hgy", "(there are no offers)"),
    ("1.1 USD/h}", "1.1 USD/h}\n    - {name: now, gpu: A100-80GB-SXM, purchase: on-demand, price: 8 USD}",
     "options.quotes[2].price", "an on-demand node has a price per time"),
    ("options:\n", "horizon: {months: 1, periods: once}\noptions:\n", "workloads[0].traffic.by_period",
     "2 multipliers for 1 period "),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "path", "message"), WORDING_CASES)
def test_messages_say_what_to_write_in_plain_words(old, new, path, message):
    """One mistake is one finding; hints fit the place, nouns their number, articles their noun."""
    changes = [(old, new)]
    if "by_period" in path:
        changes.append((TRAFFIC, "{requests_per_day: 5, by_period: [1, 2]}"))
    text = changed(*changes)
    if "stock" in path:
        text = text.partition("options:")[0] + "options: {catalog: false, existing: [{gpu: L4, nodes: 1}]}\n"
    found = findings_of(text)
    assert [finding.path for finding in found] == [path], found
    assert message in f"{found[0]} "


@pytest.mark.parametrize("daily", ["00:00-24:00", "0:00-24:00", "24:00-06:00"])
def test_a_window_may_be_the_whole_day(daily):
    """From 0:00 to 24:00 is the whole day, and 24:00 is also midnight."""
    problem = parse_problem(changed(("deadline: 10 days", f'window: {{daily: "{daily}"}}'))).problem
    assert len(window_hours(problem.workloads[1].window.daily)) == (24 if daily.endswith("24:00") else 6)
