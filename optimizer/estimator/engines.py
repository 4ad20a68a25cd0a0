"""Serving engines: what sets their kernels, their caps and their loop apart. Read from `engines.csv`."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from optimizer.estimator.constants import constant

DEFAULT_ENGINE = "vllm"
_TTFT_FITTED = {"vllm", "sglang", "tensorrt-llm"}


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine family.

    `words` of its name in tables of measurements; caps of running sequences on large and small cards; `single_stream`
    engines multiply a vector by the weights on the vector units instead of the tensor cores; `prompt_chunk_tokens`
    is the size of pieces in which prompts are processed, each reading the weights again (None: large enough not to
    matter); `host_loop`: a Python loop launches the work, which then takes at least its time per layer.
    """

    name: str
    words: tuple[str, ...]
    batch_cap_large: int
    batch_cap_small: int
    single_stream: bool
    prompt_chunk_tokens: int | None
    fp16_accumulation: bool
    host_loop: bool
    source: str
    date: str

    @property
    def ttft_contention_share(self) -> float:
        """Share of the other sequences' prompts that a prompt waits for; one for all engines but SGLang.

        Engine by engine, with the fixed time below, the median error of the time to first token under load is
        27–29 % with the GPU or the model left out of the fit; one pair for all engines misses by 34 % on its own rows.
        """
        return constant("ttft_contention_share" + ("_sglang" if self._fitted == "sglang" else ""))

    @property
    def ttft_fixed_ms(self) -> float:
        """Request handling before the prompt is processed, in ms; that of vLLM for engines without a fit."""
        return constant(f"ttft_fixed_ms_{self._fitted}")

    @property
    def _fitted(self) -> str:
        return (self.name if self.name in _TTFT_FITTED else DEFAULT_ENGINE).replace("-", "_")


@cache
def engines() -> tuple[Engine, ...]:
    """All engines, in the order in which names are matched."""
    text = files("optimizer.estimator").joinpath("engines.csv").read_text(encoding="utf-8")
    return tuple(_engine(row) for row in csv.DictReader(text.splitlines()))


def _engine(row: dict[str, str]) -> Engine:
    chunk = row["prompt_chunk_tokens"]
    return Engine(
        name=row["engine"],
        words=tuple(row["words"].split(";")),
        batch_cap_large=int(row["batch_cap_large"]),
        batch_cap_small=int(row["batch_cap_small"]),
        single_stream=row["streams"] == "single",
        prompt_chunk_tokens=int(chunk) if chunk else None,
        fp16_accumulation=row["fp16_accumulation"] == "true",
        host_loop=row["host_loop"] == "true",
        source=row["source"],
        date=row["date"],
    )


def engine_named(name: str) -> Engine:
    """Engine of which a word occurs in `name` (as tables of measurements write it); vLLM where none does."""
    lowered = name.casefold()
    by_name = {engine.name: engine for engine in engines()}
    found = next((e for e in engines() if any(word in lowered for word in e.words)), None)
    return found or by_name[DEFAULT_ENGINE]


@cache
def default_engine() -> Engine:
    """Engine that services and batches are planned with."""
    return engine_named(DEFAULT_ENGINE)
