"""How much of a workload there is to do, and in which unit its estimates count."""

from optimizer.errors import Finding, ProblemFileError
from optimizer.estimator.constants import constant
from optimizer.estimator.rules_of_thumb import training_flop
from optimizer.estimator.types import Demand
from optimizer.estimator.workloads import AnyJob, AnyWorkload, Batch, Dataset, Service, TrainingSettings
from optimizer.trace import Step
from optimizer.units import FLOP_PER_TFLOP

REQUESTS = "requests"
TOKENS = "tokens"
OUTPUT_TOKENS = "output tokens"
TFLOP = "TFLOP"
DEFAULT_BYTES_PER_TOKEN: float = Dataset.model_fields["bytes_per_token"].default


def demand_of(workload: AnyWorkload, parameters: float | None = None) -> Demand:
    """Demand of a workload, a job's headroom included; `parameters` of its model are needed for the rule of thumb.

    Raises
    ------
    ProblemFileError
        If a job says nothing of its amount.
    """
    if isinstance(workload, Service):
        return Demand(workload.name, REQUESTS)
    if workload.work is not None:
        return _amount(workload, workload.work.unit, workload.work.amount, (), "work.amount")
    if isinstance(workload, Batch):
        return _batch_demand(workload)
    if workload.estimate_by == "rule-of-thumb":
        return _rule_demand(workload, parameters)
    tokens, steps = training_tokens(workload)
    return _amount(workload, TOKENS, tokens, steps, "tokens")


def training_tokens(job: TrainingSettings) -> tuple[float, tuple[Step, ...]]:
    """Tokens trained in all: as given, or the data set's bytes ÷ bytes per token × epochs."""
    if job.tokens is not None:
        return job.tokens, (Step("tokens", job.tokens, "tokens", "as given", (), "problem file"),)
    if job.dataset is None:
        raise _says_no_amount(job.name, "tokens: 10e9, or dataset: {size: 50 GB}")
    data = job.dataset
    tokens = data.size / data.bytes_per_token * data.epochs
    step = Step(
        "tokens",
        tokens,
        "tokens",
        "size ÷ bytes_per_token × epochs",
        (("size", data.size), ("bytes_per_token", data.bytes_per_token), ("epochs", data.epochs)),
        "problem file",
    )
    return tokens, (step,)


def training_bytes(job: TrainingSettings) -> float:
    """Bytes of text trained on (epochs included), where only tokens are given at 4.3 bytes each."""
    if job.dataset is not None:
        return job.dataset.size * job.dataset.epochs
    return training_tokens(job)[0] * DEFAULT_BYTES_PER_TOKEN


def batch_lengths(job: Batch) -> tuple[float, float]:
    """Prompt and output tokens of a request; defaults where only tokens are given."""
    if job.requests is not None and (job.requests.input or job.requests.output):
        return float(job.requests.input), float(job.requests.output)
    return constant("default_batch_input"), constant("default_batch_output")


def _batch_demand(job: Batch) -> Demand:
    requests = job.requests
    if requests is not None and requests.per_day is not None:
        return _amount(job, REQUESTS, requests.per_day, (), "requests.per_day", per_day=True)
    if requests is not None and requests.count is not None:
        return _amount(job, REQUESTS, requests.count, (), "requests.count")
    if job.tokens is not None:
        return _amount(job, OUTPUT_TOKENS, job.tokens, (), "tokens")
    raise _says_no_amount(job.name, "requests: {count: 1000, input: 500, output: 200}, or tokens: 2e6")


def _rule_demand(job: TrainingSettings, parameters: float | None) -> Demand:
    if parameters is None:
        raise _says_no_amount(job.name, "a model: the rule of thumb scales with its parameters")
    data = training_bytes(job)
    flop = training_flop(parameters, data) / FLOP_PER_TFLOP
    step = Step(
        "need",
        flop,
        TFLOP,
        "(parameters ÷ 175e9) · (GB ÷ 45) · 1.75e23 FLOP",
        (("parameters", parameters), ("bytes", data)),
        "rule of thumb, scaled from GPT-3 (docs/estimator.md)",
    )
    return Demand(job.name, TFLOP, flop * (1 + job.headroom), steps=(step,))


def _amount(
    job: AnyJob, unit: str, amount: float, steps: tuple[Step, ...], formula: str, *, per_day: bool = False
) -> Demand:
    planned = amount * (1 + job.headroom)
    inputs = (("amount", amount), ("headroom", job.headroom))
    step = Step("demand", planned, unit, f"{formula} · (1 + headroom)", inputs, "problem file")
    return Demand(job.name, unit, planned, per_day, (*steps, step))


def _says_no_amount(name: str, hint: str) -> ProblemFileError:
    finding = Finding(f'workload "{name}" does not say how much there is to do', path="workloads", hint=f"add {hint}")
    return ProblemFileError([finding])
