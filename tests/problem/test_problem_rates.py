import pytest

from catalog.load import load_catalog
from optimizer.errors import ProblemFileError
from optimizer.problem.load import parse_problem

CHAT = """\
name: rates
workloads:
  - name: chat
    kind: service
    model: llama-2-7b
    traffic: {requests_per_day: 1000}
    tokens: {input: 100, output: 50}
  - {name: night, kind: batch, model: llama-2-7b, requests: {count: 1000, input: 9, output: 9}}
options:
  catalog: false
  gpus: [A100-80GB-SXM]
  quotes:
    - {name: hgx, gpu: A100-80GB-SXM, gpus_per_node: 8, purchase: owned, price: 120_000 USD}
"""
TOKENS = "    tokens: {input: 100, output: 50}\n"
MODEL = "    model: llama-2-7b\n"
REQUESTS = "requests: {count: 1000, input: 9, output: 9}"
RATE = "measurements: [{{workload: chat, gpu: A100-80GB-SXM, {}}}]\noptions:"


def changed(*replacements):
    text = CHAT
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def findings_of(text):
    try:
        parse_problem(text, "p.yaml", catalog=load_catalog())
    except ProblemFileError as error:
        return [(finding.path, str(finding)) for finding in error.findings]
    return []


def rate(words):
    return ("options:", RATE.format(words))


WRONG = {
    "service without tokens": ([(TOKENS, "")], "workloads[0].tokens", "write tokens: {input: 300, output: 50}"),
    "service of 0 tokens": ([("input: 100, output: 50", "input: 0, output: 0")], "workloads[0].tokens", "how many"),
    "rule of thumb without tokens": (
        [(TOKENS, "    estimate_by: rule-of-thumb\n")], "workloads[0].tokens", "write tokens:"),
    "class without tokens": (
        [(TOKENS, "    classes: [{share: 0.5, input: 1, output: 1}, {share: 0.5}]\n")],
        "workloads[0].classes[1]", "(input and output)"),
    "class of 0 tokens": (
        [(TOKENS, "    classes: [{input: 0, output: 0}]\n")], "workloads[0].classes[0]", "write input: 300"),
    "measured in part": (
        [(TOKENS, ""), rate("requests_per_s: 4, gpus_per_node: 8")], "workloads[0].tokens", "how many tokens"),
    "batch of 0 tokens": ([(REQUESTS, "requests: {count: 9}")], "workloads[1].requests", "write input: 300"),
    "tokens_per_s without output": (
        [(MODEL + "    traffic", "    traffic"), (TOKENS, ""), rate("tokens_per_s: 400")],
        "measurements[0].tokens_per_s", "or measure requests_per_s"),
    "tokens_per_s of a batch without output": (
        [(REQUESTS, "requests: {count: 9, input: 9}"),
         ("options:", "measurements: [{workload: night, option: hgx, tokens_per_s: 4}]\noptions:")],
        "measurements[0].tokens_per_s", "without output tokens"),
    "neither model nor measurement": ([(MODEL, "")], "workloads[0].model", "it has no model and no measurement"),
    "job with neither": ([("model: llama-2-7b, requests", "requests")], "workloads[1].model", "no measurement"),
    "own unit": ([(REQUESTS, "work: {amount: 9}")], "workloads[1].work", "workload: night, gpu: …, per_gpu_hour"),
    "mfu without model": (
        [(f"kind: batch, model: llama-2-7b, {REQUESTS}", "kind: training, tokens: 1e9"),
         ("options:", "measurements: [{workload: night, option: hgx, mfu: 0.4}]\noptions:")],
        "measurements[0].mfu", "an MFU needs the model"),
    "gpus not considered": (
        [(TOKENS, TOKENS + "    gpus: [H100-80GB-SXM]\n")], "workloads[0].gpus", "options hold A100-80GB-SXM"),
    "gpus not considered with the catalog": (
        [(TOKENS, TOKENS + "    gpus: [L4]\n"), ("  catalog: false\n", "")], "workloads[0].gpus", "is considered"),
    "other weights": ([rate("requests_per_s: 1, weights: int4")], "measurements[0].weights", "has weights in bf16"),
    "replica of another size": (
        [(TOKENS, TOKENS + "    gpus_per_replica: [1, 2]\n"), rate("requests_per_s: 1, gpus_per_replica: 4")],
        "measurements[0].gpus_per_replica", 'replicas of "chat" have 1 or 2 GPUs'),
    "replica larger than a node": (
        [rate("requests_per_s: 1, gpus_per_replica: 16")], "measurements[0].gpus_per_replica", "nodes have 8"),
    "node nobody offers": (
        [rate("requests_per_s: 1, gpus_per_node: 4")], "measurements[0].gpus_per_node", "nodes have 8"),
    "GPU not considered": (
        [rate("requests_per_s: 1"), ("chat, gpu: A100-80GB-SXM", "chat, gpu: h100 sxm 80gb")], "measurements[0].gpu",
        "used nowhere: H100-80GB-SXM is not considered"),
    "GPU the workload may not use": (
        [(TOKENS, TOKENS + "    gpus: [L4]\n"), ("options:\n  catalog: false\n  gpus: [", "options:\n  gpus: [L4, "),
         rate("requests_per_s: 1")], "measurements[0].gpu", '"chat" may not run on A100-80GB-SXM'),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_rates_that_nothing_tells_and_measurements_that_nothing_uses(case):
    """What leaves a workload without a rate, or a measurement without use, is one finding at its place."""
    replacements, path, message = WRONG[case]
    found = findings_of(changed(*replacements))
    assert [place for place, _ in found] == [path], found
    assert message in found[0][1]


RIGHT = {
    "as it is": [],
    "all measured by GPU": [(TOKENS, ""), rate("requests_per_s: 4")],
    "all measured by offer": [
        (TOKENS, ""), ("options:", "measurements: [{workload: chat, option: hgx, requests_per_s: 4}]\noptions:")],
    "measured, no model": [(MODEL, ""), (TOKENS, ""), rate("requests_per_s: 4, weights: int4")],
    "prompts only": [("input: 100, output: 50", "input: 100, output: 0")],
    "batch by tokens": [(REQUESTS, "tokens: 1e6")],
    "a stage per node half": [
        (TOKENS, TOKENS + "    gpus_per_replica: 2\n    pipeline_parallel: [1, 2]\n"),
        rate("requests_per_s: 4, gpus_per_replica: 4")],
    "gpus by another name": [(TOKENS, TOKENS + "    gpus: [A100 SXM 80GB]\n")],
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_rates_that_are_told_are_taken(case):
    """What a workload does not need is not asked for."""
    assert findings_of(changed(*RIGHT[case])) == []
